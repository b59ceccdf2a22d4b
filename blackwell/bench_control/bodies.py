"""What the tasks of ``fab bench`` do."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from blackwell import remote, sweep_package
from blackwell.bench_control import follow, results, screen
from blackwell.bench_control.follow import Opened
from blackwell.host_errors import HostError
from blackwell.sweep import events

FAILED = 1
BEGIN_SECONDS = 300
STOP_SECONDS = 3600
"""A server of a trillion parameters is loaded again meanwhile."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class How:
    """``new``: begin another run whatever there is. ``agreed``: the service may be stopped, nobody has to be asked."""

    new: bool = False
    dry_run: bool = False
    agreed: bool = False


def begin(opened: Opened, wanted: Mapping, how: How, say: Say) -> Mapping | None:
    """Start a sweep and return what it is, once the operator has seen the plan; None on a dry run.

    Raises HostError if it cannot be, or if nobody agrees to stop the service.
    """
    archive = sweep_package.packed()
    with opened() as (connection, host):
        asked = {"wanted": {**wanted, "host": host.name}, "new": how.new, "seconds": BEGIN_SECONDS}
        seen = remote.call_packed(connection, host, archive, "begin", dry_run=True, **asked)
        print(screen.plan(host.name, seen), flush=True)
        if how.dry_run:
            return None
        if not how.agreed:
            _consent(host.name, seen)
        begun = remote.call_packed(connection, host, archive, "begin", dry_run=False, checked=seen["argv"], **asked)
    say(f"run {begun['run']} goes on by itself now, in place of sglang.service")
    return begun


def _consent(host: str, seen: Mapping) -> None:
    what = f"sglang.service on {host} is stopped for about {screen.duration(seen['seconds'])}"
    if not sys.stdin.isatty():
        raise HostError(f"{what}, and there is no terminal to ask on: --stop-service agrees to it; nothing was changed")
    if input(f"{what}, and started again after it. Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        raise HostError(f"{host}: nothing was changed")


def watched(opened: Opened, run: str, offset: int, say: Say) -> int:
    """Show a sweep to its end, bring it home, and say what it found; returns the exit status."""
    archive = sweep_package.packed()
    with follow.detachable(say):
        found = follow.Follower(opened, archive, run, offset).follow()
    with opened() as (connection, host):
        home = results.fetch(connection, host, found["run"])
    return outcome(home, found, say)


def outcome(home: Path, found: Mapping, say: Say) -> int:
    """Say how a run ended and where it is; returns the exit status."""
    ended = found["ended"]
    say(f"run {found['run']} is in {home}; sglang.service is {found['service']}")
    if ended and ended["status"] == events.DONE:
        return 0
    how = f"ended early ({ended['reason']})" if ended else f"was cut off ({found['log'] or 'its log says no more'})"
    say(f"the sweep {how}: fab bench, with the same options, goes on with it")
    return FAILED
