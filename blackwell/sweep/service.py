"""A bench's server in the place of the service, and the service back in its own."""

import os
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blackwell.bench.errors import BenchError

from . import bench_unit, deployed, server_words, systemd
from .deployed import Deployed
from .server_words import Settings
from .systemd import RUNNER, SERVER, SERVICE

RUNS = ("active", "reloading")
TAKES = (*RUNS, "activating")
SETTLE_SECONDS = 5.0
"""A server whose last answer failed may be about to end; so long it is given to have ended."""

POLL_SECONDS = 0.2
UNIT_MODE, VARIABLES_MODE = 0o644, 0o600


class StartError(BenchError):
    """A bench's server did not become ready; ``journal``: what it printed last."""

    def __init__(self, sentence: str, journal: Sequence[str]) -> None:
        """``sentence`` has the most telling line of the journal."""
        super().__init__(sentence)
        self.journal = tuple(journal)


class TakenError(BenchError):
    """Somebody started the service, to which a bench's server gives way; nothing is to be started after that."""


@dataclass(frozen=True)
class Server:
    """A bench's server that generates. ``pid``: its first process. ``start_s``: seconds that its start took."""

    url: str
    pid: int
    start_s: float


@dataclass(frozen=True)
class Host:
    """The servers of a sweep on this host, one at a time; ``held``: the draft steps that its arms are held at."""

    deployed: Deployed
    held: Collection[int | str]

    def start(self, settings: Settings, *, speculates: bool) -> Server:
        """The server with these settings, and with speculation or without, when it generates.

        Raises BenchError as ``start_server`` does, and naming the settings if they cannot be.
        """
        port = free_port(self.deployed.address[1])
        if speculates:
            argv = server_words.speculative(self.deployed.argv, settings, port, self.held)
        else:
            argv = server_words.baseline(self.deployed.argv, settings, port)
        return start_server(self.deployed, argv, server_words.environment(settings, speculates=speculates))

    def stop(self) -> None:
        """Stop it, if one runs; the service stays as it is."""
        stop_server()

    def ended(self) -> str | None:
        """Why it does not run, a clause without a full stop; None if it does. Raises TakenError as ``ended`` does."""
        return ended(SETTLE_SECONDS)


def free_port(beside: int) -> int:
    """The first port of loopback above another one on which nothing listens.

    Not any free one: from those that the kernel picks, it may give one to a connection while the server loads.
    """
    for port in (*range(beside + 1, 1 << 16), *range(1 << 10, beside)):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((server_words.LOOPBACK, port))
            except OSError:
                continue
            return port
    raise BenchError(f"no port of {server_words.LOOPBACK} is free")


def start_server(
    found: Deployed,
    argv: Sequence[str],
    environment: Mapping[str, str | None],
    seconds: float | None = None,
) -> Server:
    """Stop the service, if it still is the one that was ``found``, and start a bench's server; returns when that
    generates.

    ``environment``: what differs, null for what is removed. ``seconds``: time to become ready, that of the service
    without. Raises TakenError if somebody started the service since, StartError if the server does not get there, and
    BenchError if systemd refuses or what runs is not what was asked for.
    """
    text = bench_unit.text(found.settings, argv, environment, seconds=seconds, with_runner=_is_runner())
    _give_way(found.invocation)
    systemd.stop(SERVER)
    systemd.stop(SERVICE)
    _write(bench_unit.VARIABLES, bench_unit.variables(environment), VARIABLES_MODE)
    _write(bench_unit.UNIT, text, UNIT_MODE)
    systemd.run(["systemctl", "daemon-reload"])
    systemd.forget_failures(SERVER)
    begun = time.monotonic()
    try:
        systemd.run(["systemctl", "start", SERVER], None)
    except BenchError as error:
        raise _start_error(error) from error
    server = Server(server_words.url(argv), main_pid(), round(time.monotonic() - begun, 1))
    _compare(server.pid, argv, environment)
    return server


def _is_runner() -> bool:
    """Whether this process is in the unit of a sweep."""
    lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    return any(RUNNER in line.split("/") for line in lines)


def _give_way(invocation: str) -> None:
    """Raises TakenError if the service runs, but for the start that the bench knows of."""
    told = systemd.show(SERVICE, "ActiveState", "InvocationID", "Job", "InactiveExitTimestamp")
    if _takes(told) and told.get("InvocationID") != invocation:
        raise _taken(told)


def _takes(told: Mapping[str, str]) -> bool:
    # A start that waits until the bench's server has ended is a job.
    waits = told["ActiveState"] != "deactivating" and told.get("Job", "") not in ("", "0")
    return told["ActiveState"] in TAKES or waits


def _taken(told: Mapping[str, str]) -> TakenError:
    began = told.get("InactiveExitTimestamp", "").removeprefix("@")
    known = told["ActiveState"] in TAKES and began.isdecimal()
    at = f" at {time.strftime('%H:%M:%S UTC', time.gmtime(int(began)))}" if known else ""
    return TakenError(f"somebody started {SERVICE}{at}, to which a bench's server gives way")


def _start_error(refusal: BenchError) -> BenchError:
    lines = systemd.journal(systemd.show(SERVER, "InvocationID").get("InvocationID", ""))
    try:
        why = ended()
    except TakenError as taken:
        return taken
    return StartError(f"the bench's server did not become ready: {why if why and lines else refusal}", lines)


def _compare(pid: int, argv: Sequence[str], environment: Mapping[str, str | None]) -> None:
    """Raises BenchError if the process is not what was asked for, as when something else changes its unit."""
    process = Path("/proc") / str(pid)
    words = process.joinpath("cmdline").read_text(encoding="utf-8", errors="surrogateescape")
    if words.removesuffix("\0").split("\0") != list(argv):
        raise BenchError(f"{SERVER} runs with another command line than it was given: see systemctl cat {SERVER}")
    entries = process.joinpath("environ").read_text(encoding="utf-8", errors="surrogateescape").split("\0")
    runs = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    if other := [name for name, value in environment.items() if runs.get(name) != value]:
        raise BenchError(f"{SERVER} runs with another {other[0]} than it was given: see systemctl cat {SERVER}")


def main_pid() -> int:
    """The first process of a bench's server; 0 if none runs."""
    return int(systemd.show(SERVER, "MainPID").get("MainPID", 0))


def stop_server() -> None:
    """Stop a bench's server, if one runs; the service stays as it is. Raises BenchError if it cannot be stopped."""
    systemd.stop(SERVER)


def ended(settle: float = 0.0) -> str | None:
    """Why a bench's server does not run, a clause without a full stop; None if it runs, even after ``settle`` seconds.

    Raises TakenError if it gave way to the service.
    """
    until = time.monotonic() + settle
    while (state := systemd.state(SERVER)) in RUNS:
        if time.monotonic() >= until:
            return None
        time.sleep(POLL_SECONDS)
    service = systemd.show(SERVICE, "ActiveState", "InactiveExitTimestamp", "Job")
    if _takes(service):
        raise _taken(service)
    told = systemd.show(SERVER, "InvocationID", "Result", "LoadState")
    if told["LoadState"] == "not-found":
        return f"{SERVER} is not there any more"
    line = systemd.telling(systemd.journal(told.get("InvocationID", "")))
    return f"{line or 'it printed nothing'} (systemd: {state}, {told['Result']}; journalctl --unit={SERVER})"


def put_back(run: Path, *, wait: bool) -> str:
    """End a bench's server, remove every trace of it, and start the service if it ran when the run of a directory
    began.

    Returns what was done, a clause without a full stop. Can be cut off anywhere and called again. ``wait``: until the
    service generates. Raises BenchError if the service cannot be started, or, where it waits, does not get there.
    """
    wanted, refused = _ran(run), None
    if wanted:
        systemd.forget_failures(SERVICE)
        # First of all and at once: from here on systemd starts it, whatever becomes of this process. The unit of the
        # bench's server, as long as it is there, has it end before.
        try:
            systemd.run(["systemctl", "start", "--no-block", SERVICE])
        except BenchError as error:
            refused = error
    systemd.stop(SERVER)
    for file in (bench_unit.UNIT, bench_unit.VARIABLES):
        file.unlink(missing_ok=True)
    systemd.run(["systemctl", "daemon-reload"])
    systemd.forget_failures(SERVER)
    if refused:
        raise refused
    if not wanted:
        return f"{SERVICE} was left as it is"
    if wait:
        wait_for_service()
    return f"{SERVICE} {'is ready' if systemd.state(SERVICE) in RUNS else 'is being started'}"


def _ran(run: Path) -> bool:
    try:
        found = deployed.kept(run)
    except BenchError:
        # A run begins with a service that is active.
        return True
    return found is not None and found.active


def wait_for_service() -> None:
    """Wait until the service generates; raises BenchError, with its own words, if it does not get there."""
    try:
        # A start that is under way is joined.
        systemd.run(["systemctl", "start", SERVICE], None)
    except BenchError as error:
        line = systemd.telling(systemd.journal(systemd.show(SERVICE, "InvocationID").get("InvocationID", "")))
        raise BenchError(f"{SERVICE} did not become ready: {line or error} (journalctl --unit={SERVICE})") from error


def _write(file: Path, text: str, mode: int) -> None:
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as opened:
            # Before its content: one that was left may be open to more.
            os.fchmod(handle, mode)
            opened.write(text)
    except OSError as error:
        raise BenchError(f"{file} cannot be written: {error.strerror}") from error
