"""Sandbox hosts for scripts and tests: bring up, take down, list.

``settings`` is a sandbox other than the environment's, for tests that run beside it; ``say`` takes progress lines.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from blackwell import locks
from blackwell.sandbox import (
    addresses,
    commands,
    filesystem,
    firewall,
    images,
    names,
    network,
    processes,
    records,
    ssh,
    supervisor,
    teardown,
)
from blackwell.sandbox.commands import Say
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.recipe import SUITES, recipe
from blackwell.sandbox.records import Record
from blackwell.sandbox.settings import Settings, from_environment

PROGRAMS = (
    "ip",
    "mmdebstrap",
    "mount",
    "nft",
    "nsenter",
    "setpriv",
    "setsid",
    "ssh",
    "ssh-keygen",
    "systemd-nspawn",
    "umount",
    "unshare",
)

UP, STOPPED, HALF_MADE = "up", "stopped", "half-made"

SSH_SECONDS = 60.0
"""How long a host may take until it answers."""


@dataclass(frozen=True)
class Host:
    """One host of the sandbox."""

    name: str
    address: str
    suite: str
    state: str
    """``up`` (also while it boots), ``stopped`` (powered off, files kept) or ``half-made`` (its ``up`` was killed)."""


def up(
    requested: list[str], *, suite: str | None = None, settings: Settings | None = None, say: Say = commands.say
) -> tuple[Host, ...]:
    """Bring these hosts up and return when all of them answer over SSH; those that do already are left alone.

    A stopped host starts again with its files. On any error, and when interrupted, the hosts that this call made are
    removed again.
    Raises SandboxError: not root, programs missing, bad name or suite, network in use, build failed, a host that does
    not answer in 60 s.
    """
    settings = settings or from_environment()
    wanted = names.checked(requested)
    _require("up")
    with _locked(settings, say):
        left = teardown.traces(settings)
        known = {record.name: record for record in records.read(settings) if record.made}
        _check(settings, known, wanted, suite)
        fresh = [name for name in wanted if name not in known]
        try:
            for name in fresh:
                if name in left:
                    say(f"{name}: removing what an unfinished up left")
                    teardown.remove_host(settings, name)
            image = images.ensure(settings, recipe(suite or SUITES[0]), say) if fresh else None
            network.ensure(settings)
            warning = firewall.warning()
            if warning:
                say(warning)
            public_key = ssh.ensure_key(settings)
            for name in fresh:
                known[name] = _make(settings, _new(settings, name, suite or SUITES[0], image), public_key)
            began = time.monotonic()
            running = {name for name in wanted if _ensure_running(settings, known[name], say)}
            _wait(settings, [known[name] for name in wanted], running, began, say)
        except BaseException:
            _undo(settings, fresh, say)
            raise
    return tuple(host for host in hosts(settings=settings) if host.name in wanted)


def down(
    requested: list[str] | None = None, *, settings: Settings | None = None, say: Say = commands.say
) -> tuple[str, ...]:
    """Remove these hosts, or all when none is named, and return their names.

    The last one takes bridge, packet filter rules and key along.
    Raises SandboxError: not root, unknown name, something foreign is mounted in a host.
    """
    settings = settings or from_environment()
    _require("down")
    with _locked(settings, say):
        left = teardown.traces(settings)
        unknown = sorted(set(requested or ()) - left)
        if unknown:
            _remove_shared_if_empty(settings)
            raise _unknown(unknown[0], left)
        chosen = sorted(set(requested or left))
        for name in chosen:
            teardown.remove_host(settings, name)
            say(f"{name}: removed")
        ssh.write_known_hosts(settings, records.read(settings))
        _remove_shared_if_empty(settings)
    return tuple(chosen)


def hosts(*, settings: Settings | None = None) -> tuple[Host, ...]:
    """Every host of the sandbox, by name; needs no root."""
    settings = settings or from_environment()
    running = _supervised(settings)
    return tuple(_host(record, running) for record in records.read(settings))


def host(name: str, *, settings: Settings | None = None) -> Host:
    """The host with this name.

    Raises SandboxError when there is none.
    """
    found = {host.name: host for host in hosts(settings=settings)}
    if name not in found:
        raise _unknown(name, set(found))
    return found[name]


def build(suite: str = SUITES[0], *, settings: Settings | None = None, say: Say = commands.say) -> Path:
    """The directory of the suite's image, built now unless it is there.

    Raises SandboxError: not root, programs missing, unknown suite, build failed.
    """
    _require("build")
    return images.ensure(settings or from_environment(), recipe(suite), say)


def ssh_command(name: str, *, user: str = "root", settings: Settings | None = None) -> list[str]:
    """The ssh command that reaches the host; append what to run there.

    Raises SandboxError for a host that is unknown or not up.
    """
    settings = settings or from_environment()
    found = host(name, settings=settings)
    if found.state != UP:
        raise SandboxError(f"{name} is {found.state}: run scripts/sandbox up {name}")
    return ssh.command(settings, found.address, user)


def _require(action: str) -> None:
    if os.geteuid():
        raise SandboxError(f"only root can do this: run sudo scripts/sandbox {action}")
    missing = commands.missing(PROGRAMS)
    if missing:
        raise SandboxError(f"missing on this machine: {', '.join(missing)} (run scripts/bootstrap sandbox)")


@contextmanager
def _locked(settings: Settings, say: Say) -> Iterator[None]:
    with locks.held(settings.run / "lock", lambda: say("waiting for another scripts/sandbox")):
        settings.run.chmod(0o755)
        yield


def _unknown(name: str, known: set[str]) -> SandboxError:
    there = f"there is {', '.join(sorted(known))}" if known else "no sandbox host exists"
    return SandboxError(f"unknown host {name!r}: {there}")


def _check(settings: Settings, known: dict[str, Record], wanted: list[str], suite: str | None) -> None:
    """Refuse what cannot be had beside the hosts that exist, before anything changes."""
    for record in known.values():
        if record.ip not in settings.network:
            outside = f"{record.name} has {record.address}, outside {settings.network}"
            raise SandboxError(f"{outside}: run scripts/sandbox down first")
    recipe(suite or SUITES[0])
    for name in wanted:
        if suite and name in known and known[name].suite != suite:
            raise SandboxError(f"{name} exists with {known[name].suite}: run scripts/sandbox down {name} first")


def _new(settings: Settings, name: str, suite: str, image: Path | None) -> Record:
    taken = [record.ip for record in records.read(settings)]
    return Record(name, str(addresses.free(settings.network, taken)), suite, str(image))


def _make(settings: Settings, record: Record, public_key: str) -> Record:
    """Make the host's files and network, not yet running."""
    records.write(settings, record)
    filesystem.mount(settings, record)
    host_key = filesystem.personalise(settings, record, public_key)
    network.ensure_host(settings, record)
    made = replace(record, host_key=host_key, made=True)
    records.write(settings, made)
    ssh.write_known_hosts(settings, records.read(settings))
    return made


def _ensure_running(settings: Settings, record: Record, say: Say) -> bool:
    """Start the host unless it runs; whether it ran."""
    if record.name in _supervised(settings):
        return True
    # systemd-nspawn may still be shutting the host down after its supervisor was killed.
    teardown.stop(settings, record.name)
    filesystem.mount(settings, record)
    network.ensure_host(settings, record)
    say(f"{record.name}: starting {record.suite} at {record.address}")
    supervisor.start(settings, record.name)
    return False


def _wait(settings: Settings, waiting: list[Record], running: set[str], began: float, say: Say) -> None:
    """Return when all answer; a host whose supervisor ended is not waited for."""

    def all_answer() -> bool:
        for record in tuple(waiting):
            seconds = time.monotonic() - began
            if ssh.answers(settings, record.address):
                waiting.remove(record)
                how = f"already up at {record.address}" if record.name in running else f"up after {seconds:.1f} s"
                say(f"{record.name}: {how}")
            elif seconds > 3 and record.name not in _supervised(settings):
                raise SandboxError(f"{record.name} ended while starting: {_last_words(settings, record.name)}")
        return not waiting

    if not commands.wait_until(all_answer, SSH_SECONDS):
        name = waiting[0].name
        raise SandboxError(f"{name} does not answer over SSH after {SSH_SECONDS:.0f} s: {_last_words(settings, name)}")


def _last_words(settings: Settings, name: str) -> str:
    lines = settings.console(name).read_text(errors="replace").split("\n")
    return " | ".join([line.strip() for line in lines if line.strip()][-3:]) or "nothing on its console"


def _undo(settings: Settings, fresh: list[str], say: Say) -> None:
    """Remove the hosts that a failed or interrupted ``up`` made."""
    for name in sorted(teardown.traces(settings) & set(fresh)):
        teardown.remove_host(settings, name)
        say(f"{name}: removed again")
    with suppress(FileNotFoundError):
        ssh.write_known_hosts(settings, records.read(settings))
    _remove_shared_if_empty(settings)


def _remove_shared_if_empty(settings: Settings) -> None:
    if not teardown.traces(settings):
        teardown.remove_shared(settings)


def _supervised(settings: Settings) -> set[str]:
    return {name for process in processes.current() if (name := processes.supervises(settings, process))}


def _host(record: Record, running: set[str]) -> Host:
    state = (UP if record.name in running else STOPPED) if record.made else HALF_MADE
    return Host(record.name, record.address, record.suite, state)
