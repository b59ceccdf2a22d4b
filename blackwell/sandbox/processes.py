"""Finding the processes of a host without trusting a number on disk, and ending them without hitting a stranger's.

A process is ours by what the kernel says about it now: the arguments of the supervisor and of systemd-nspawn, which
carry the sandbox's names, or membership of the host's cgroup.
"""

import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from blackwell.sandbox.settings import Settings

SUPERVISOR = "blackwell.sandbox.supervisor"


@dataclass(frozen=True)
class Process:
    """One process as /proc shows it."""

    pid: int
    argv: tuple[str, ...]
    groups: frozenset[str]
    """The components of its cgroup paths, in every hierarchy."""
    pids: tuple[int, ...]
    """Its process id in each nested PID namespace, the outermost first (NSpid in proc(5))."""

    @property
    def is_init(self) -> bool:
        """Whether it is PID 1 of a namespace right below this machine's."""
        return len(self.pids) == 2 and self.pids[1] == 1


Kind = Callable[[Process], bool]
"""Says whether a process is of the kind meant."""


def parse(pid: int, cmdline: bytes, cgroup: str, status: str) -> Process:
    """A process from the texts of its files in /proc."""
    argv = tuple(part.decode(errors="replace") for part in cmdline.split(b"\0")[:-1])
    groups = frozenset(part for line in cgroup.splitlines() for part in line.split(":", 2)[2].split("/") if part)
    nested = re.search(r"^NSpid:\s+(.*)$", status, re.MULTILINE)
    return Process(pid, argv, groups, tuple(int(number) for number in nested[1].split()) if nested else (pid,))


def supervises(settings: Settings, process: Process) -> str | None:
    """The name of the host that the process supervises, or is about to when systemd-run or setsid becomes the
    supervisor; else None.
    """
    start = settings.machine("")
    own = process.argv[-4:-1] == ("-m", SUPERVISOR, str(settings.run)) and process.argv[-1].startswith(start)
    return process.argv[-1].removeprefix(start) if own else None


def contains(settings: Settings, process: Process) -> str | None:
    """The name of the host that the process is the systemd-nspawn of; else None."""
    start = f"--machine={settings.machine('')}"
    own = [part for part in process.argv if part.startswith(start)] if "systemd-nspawn" in process.argv else []
    return own[0].removeprefix(start) if own else None


def belongs(settings: Settings, process: Process) -> str | None:
    """The name of the host whose cgroup the process is in; else None."""
    start = settings.machine("")
    own = [group for group in process.groups if group.startswith(start)]
    return own[0].removeprefix(start).removesuffix(".scope") if own else None


def host_of(settings: Settings, process: Process) -> str | None:
    """The name of the host that the process is part of; else None."""
    return supervises(settings, process) or contains(settings, process) or belongs(settings, process)


def has_ended(status: str) -> bool:
    """Whether a process is a zombie: it holds nothing any more, and when it goes is up to its parent."""
    return re.search(r"^State:\s+[ZX]", status, re.MULTILINE) is not None


def look(pid: int) -> Process | None:
    """The running process with this id now, or None when there is none."""
    base = Path("/proc") / str(pid)
    try:
        status = (base / "status").read_text()
        if has_ended(status):
            return None
        return parse(pid, (base / "cmdline").read_bytes(), (base / "cgroup").read_text(), status)
    except (FileNotFoundError, ProcessLookupError):
        return None


def current() -> list[Process]:
    """Every process of this machine."""
    found = (look(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [process for process in found if process]


def of(settings: Settings, name: str) -> list[Process]:
    """Every process of one host: supervisor, systemd-nspawn and all that runs inside."""
    return [process for process in current() if host_of(settings, process) == name]


def kill(pid: int, ours: Kind) -> None:
    """SIGKILL the process if it is still ours. The descriptor keeps its id from being given to another between the
    look and the signal.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        process = look(pid)
        if process and ours(process):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        os.close(handle)
