"""One look at all that goes wrong on a host."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from blackwell import gpus, load_state, playbooks, policy_drift, role_defaults, status
from blackwell.findings import LEVELS, OK, PROBLEM, WARNING, Finding
from blackwell.inventory import Host, Inventory
from blackwell.status import Status
from blackwell.status_screen import age, first_line, moment, size

JOURNAL_ENTRIES = 50
ANSWER_SECONDS = 200.0
ERRORS_SECONDS = 24 * 3600
CLOCK_SECONDS = 2.0
LEAST_DISK = 2**30
LEAST_MEMORY_SHARE = 0.05
COLLAPSED = 1.05
"""Tokens per verification, bonus included, at or below which drafts are as good as never accepted."""

_ONLY_WARNING = re.compile(r"\bWARNING\b(?!.*\b(ERROR|CRITICAL|FATAL)\b)(?!.*(Error|Exception)\b)", re.DOTALL)


@dataclass(frozen=True)
class Clock:
    """How far the host's clock is ahead of this machine's, and how far that may be wrong, both in seconds."""

    ahead: float
    uncertain: float


@dataclass(frozen=True)
class Look:
    """What was seen of a host. ``reported``: the body of /server_info, empty without one. ``bench``: states of the
    units of a measurement, and its run. ``memory``: bytes, available and total."""

    host: Host
    known: Inventory
    status: Status
    reported: Mapping
    memory: Mapping[str, int]
    bench: Mapping[str, str | None]
    gpus: Sequence[Finding]
    clock: Clock

    @property
    def measured(self) -> bool:
        """Whether a measurement is under way, which takes the service down for as long."""
        return self.bench["sweep"] in ("active", "activating", "deactivating")


def clock(sent: float, there: float, received: float) -> Clock:
    """The host's clock by the time there, and here before and after it was asked, in seconds since the epoch."""
    return Clock(there - (sent + received) / 2, (received - sent) / 2)


def parse(host: Host, known: Inventory, user: str, found: Mapping, clock: Clock) -> Look:
    """A look by what ``on_host.doctor`` returned; ``user`` is the one logged in."""
    information = (found.get("information") or {}).get("body")
    return Look(
        host=host,
        known=known,
        status=status.parse(host, user, found),
        reported=information if isinstance(information, dict) else {},
        memory=found["memory"],
        bench=found["bench"],
        gpus=gpus.findings(found["gpus"]),
        clock=clock,
    )


def findings(look: Look, more: Iterable[Finding] = ()) -> list[Finding]:
    """All findings, and ``more`` that took another look, problems first; each check is a function of this module."""
    found = [*(finding for check in _CHECKS for finding in check(look)), *more]
    return sorted(found, key=lambda finding: LEVELS.index(finding.level))


def _fab(look: Look, words: str) -> str:
    return f"fab -H {look.host.name} {words}"


def _reached(look: Look) -> Iterator[Finding]:
    yield Finding(OK, f"reached over SSH as {look.status.user}@{look.host.address}")


def _service(look: Look) -> Iterator[Finding]:
    if look.status.ready:
        yield Finding(OK, "sglang.service is active and generates")
    elif look.measured:
        return
    elif not look.status.unit.loaded:
        yield Finding(PROBLEM, "there is no sglang.service on the host", playbooks.deploy(look.host))
    else:
        yield Finding(PROBLEM, "; ".join(look.status.reasons), _fab(look, "logs --lines 50"))


def _bench(look: Look) -> Iterator[Finding]:
    run = f"run {look.bench['run']}" if look.bench["run"] else "of an unknown run"
    if look.measured:
        what = f"a measurement is under way, {run}: sglang.service is down for as long" if not look.status.ready else ""
        remedy = "wait for it, or on the host: systemctl stop blackwell-bench.service, which puts the service back"
        yield Finding(WARNING, what or f"a measurement is under way, {run}", remedy)
    elif look.bench["server"] in ("active", "activating", "deactivating", "failed"):
        what = (
            f"blackwell-bench-server.service is {look.bench['server']}, and no measurement is under way that it is for"
        )
        verb = "reset-failed" if look.bench["server"] == "failed" else "stop"
        yield Finding(WARNING, what, f"on the host: systemctl {verb} blackwell-bench-server.service")


# What is odd of a status: how bad that is, and what to do about it, where {fab} and {deploy} are commands.
_ODD = {
    "deployment": (WARNING, "{deploy}"),
    "release": (WARNING, "{deploy}"),
    "record": (WARNING, "on the host: systemctl restart sglang"),
    "reload": (WARNING, "{deploy}"),
    "enabled": (WARNING, "{deploy}"),
    "forced": (WARNING, "{fab} speculation auto"),
    "hidden": (WARNING, "set ansible_become: true for the host in its inventory"),
}


def _odd(look: Look) -> Iterator[Finding]:
    odd = status.oddities(look.status)
    words = {"fab": f"fab -H {look.host.name}", "deploy": playbooks.deploy(look.host)}
    for name, what in odd.items():
        level, remedy = _ODD[name]
        yield Finding(level, what, remedy.format(**words))
    if look.status.running and look.status.running == look.status.good and "record" not in odd:
        yield Finding(OK, f"deployment {look.status.good.deployment} runs, which is recorded as the last good one")


def _restarts(look: Look) -> Iterator[Finding]:
    count = look.status.unit.restarts
    if count:
        what = f"systemd has restarted sglang.service {count} times since it was started"
        yield Finding(WARNING, what, _fab(look, "logs --lines 500"))


def _patches(look: Look) -> Iterator[Finding]:
    if not look.reported.get("speculative_algorithm"):
        return
    if load_state.FIELD in look.reported:
        tree = look.reported.get("patch_tree")
        yield Finding(OK, f"the release has load policies{f', patch tree {tree}' if tree else ''}")
    else:
        version = look.reported.get("version", "unknown")
        what = f"the server (SGLang {version}) has no load policies: its release is without the patch series"
        yield Finding(WARNING, what, playbooks.deploy(look.host))


def _policy(look: Look) -> Iterator[Finding]:
    differences = policy_drift.differences(look.host, look.known, look.reported)
    yield from (Finding(WARNING, what, remedy) for what, remedy in differences)
    if not differences and load_state.FIELD in look.reported:
        yield Finding(OK, f"speculation: {load_state.summary(look.reported)}")


def _acceptance(look: Look) -> Iterator[Finding]:
    length, state = look.status.load.acceptance_length, look.status.speculation
    if length is None or (state and state.forced == 0):
        return
    if length <= COLLAPSED:
        what = f"the acceptance length is {length:.2f}: next to nothing that is drafted is accepted"
        yield Finding(WARNING, what, f"{_fab(look, 'speculation off')}, and check model_draft_path against model_path")
    else:
        yield Finding(OK, f"acceptance length {length:.2f}")


def _journal(look: Look) -> Iterator[Finding]:
    """Errors since the service became ready; where it is not ready, those of a day."""
    since = look.status.unit.since if look.status.ready else None
    oldest = max(since or 0, look.status.now - ERRORS_SECONDS)
    errors = [entry for entry in look.status.warnings if entry.time >= oldest and not _ONLY_WARNING.search(entry.text)]
    if errors:
        last = errors[-1]
        count = f"{len(errors)} errors" if len(errors) > 1 else "1 error"
        what = f"{count} in the journal, the last at {moment(last.time)} UTC: {first_line(last.text)}"
        yield Finding(WARNING, what, _fab(look, "logs --lines 500"))


def _disk(look: Look) -> Iterator[Finding]:
    disk = look.status.disk
    if disk is None:
        return
    asked = role_defaults.number(look.known.hosts.get(look.host.name, {}), "preflight", "preflight_disk_mb") or 0
    what = f"{size(disk.free)} of {size(disk.total)} free at /opt/sglang"
    if disk.free < LEAST_DISK:
        yield Finding(PROBLEM, what, "on the host: du -xh --max-depth=2 / | sort -h")
    elif disk.free < asked * 2**20:
        remedy = "on the host: du -xh --max-depth=2 / | sort -h"
        yield Finding(WARNING, f"{what}, less than the {asked} MiB that a deployment asks for", remedy)
    else:
        yield Finding(OK, what)


def _memory(look: Look) -> Iterator[Finding]:
    available, total = look.memory["available"], look.memory["total"]
    what = f"{size(available)} of {size(total)} of memory available"
    if available < total * LEAST_MEMORY_SHARE:
        yield Finding(WARNING, what, "on the host: ps -e --sort=-rss -o rss,pid,cmd | head")
    else:
        yield Finding(OK, what)


def _clock(look: Look) -> Iterator[Finding]:
    ahead, uncertain = look.clock.ahead, look.clock.uncertain
    if abs(ahead) - uncertain > CLOCK_SECONDS:
        side = "ahead of" if ahead > 0 else "behind"
        what = f"the host's clock is {age(abs(ahead))} {side} this machine's"
        yield Finding(WARNING, what, "on the host: timedatectl")
    else:
        yield Finding(OK, f"the host's clock is that of this machine, within {abs(ahead) + uncertain:.1f} s")


def _gpus(look: Look) -> Iterator[Finding]:
    yield from look.gpus


_CHECKS: tuple[Callable[[Look], Iterator[Finding]], ...] = (
    _reached,
    _service,
    _bench,
    _odd,
    _restarts,
    _patches,
    _policy,
    _acceptance,
    _journal,
    _disk,
    _memory,
    _clock,
    _gpus,
)
