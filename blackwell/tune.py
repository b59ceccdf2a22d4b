"""From a sweep that has come home to a policy in force: written into the inventory and live, or refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fabric import Connection

from blackwell import load_state, policy_origin, speculation_file, speculation_setting, threshold
from blackwell.bench.errors import BenchError
from blackwell.bench_control import results
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory
from blackwell.speculation_setting import Setting
from blackwell.speculation_text import Origin
from blackwell.sweep import events, plan, runs
from blackwell.sweep.plan import DEPLOYED

REFUSED = 1


class RefusedError(HostError):
    """The policy does not hold, or is not one for this server; nothing was changed."""


@dataclass(frozen=True)
class Measured:
    """A policy and what it was measured on. ``explained``: the sweep's own sentences, the crossover first."""

    run: Path
    setting: Setting
    fingerprint: str
    explained: tuple[str, ...]

    def origin(self, host: str) -> Origin:
        """Where the policy comes from, for the file that holds it."""
        command = f"fab -H {host} tune.apply --run {self.run.name}"
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return Origin(command, date, self.run.name, self.fingerprint, self.explained[0])


def measured(host: str, run: Path) -> Measured:
    """The policy of a run that has come home.

    Raises RefusedError if it did not hold at some level, which it names, and HostError if the run is not done or has
    none.
    """
    try:
        made, begun = plan.read(run), runs.begun(run)
    except BenchError as error:
        raise HostError(f"{host}: {error}") from error
    found = results.outcome(run)
    policy, proof = found["policy"], found["proof"]
    if (events.ended(run) or {}).get("status") != events.DONE:
        raise HostError(f"{host}: run {run.name} is not done: fab bench, with the same options, goes on with it")
    if not policy or not proof:
        raise HostError(
            f"{host}: run {run.name} has no policy that was proven: that takes full, plain and dynamic, of which it "
            f"measured {', '.join(made.arms)}, and points that count"
        )
    try:
        if proof["verdict"]:
            raise RefusedError(f"{host}: refused: {proof['verdict']}; nothing was changed")
        if policy["settings"] != DEPLOYED:
            raise HostError(
                f"{host}: run {run.name} proves a policy for settings {policy['settings']}, which are not deployed"
            )
        setting = Setting(policy=policy["policy"])
        return Measured(run, setting, begun.fingerprint.digest, tuple(policy["explained"]))
    except KeyError as error:
        raise HostError(f"{host}: the policy or the proof of run {run.name} has no {error}") from error


@dataclass(frozen=True)
class Tuned:
    """What was done. ``file``: the inventory's. ``before``, ``after``: bodies of /server_info; the server does not
    change its policy while it runs where there is no ``after``, and ``why`` says why not."""

    file: Path
    before: Mapping
    after: Mapping | None
    why: str = ""


def check_valid(connection: Connection, host: Host, found: Measured) -> None:
    """Raises RefusedError, with what changed, if the server that runs is not the one that was measured."""
    if changed := policy_origin.differences(connection, host, found.run.name):
        raise RefusedError(
            f"{host.name}: refused: run {found.run.name} was measured on another server: "
            f"{'; '.join(changed)}; nothing was changed"
        )


def check(connection: Connection, host: Host, known: Inventory, setting: Setting, *, force: bool) -> Mapping:
    """The body of the server's /server_info, once nothing is known to stand in the way; raises HostError if it is."""
    speculation_file.check(known, host.name, setting, force=force)
    threshold.check_inventory(host, known, setting)
    reported = threshold.look(connection, host)
    threshold.check_right(host, setting, reported)
    return reported


def apply(connection: Connection, host: Host, known: Inventory, found: Measured, *, force: bool) -> Tuned:
    """Write the policy into the inventory and have the server take it, both or none of them.

    A server that cannot take it while it runs is left as it is: the next deployment brings it. Raises HostError if the
    inventory does not take it, or if the server refuses it.
    """
    before = check(connection, host, known, found.setting, force=force)
    why = threshold.deployed_only(found.setting, before)
    with speculation_file.written(known, host.name, found.setting, found.origin(host.name), force=force) as file:
        after = None if why else threshold.send(connection, host, found.setting, before)
        if after is not None:
            _compare(host, found.setting, after)
    return Tuned(file, before, after, why)


def _compare(host: Host, setting: Setting, after: Mapping) -> None:
    state = load_state.parse(after)
    wanted = speculation_setting.resolved(setting, after.get("speculative_num_steps") or 0)
    if state is None or state.policy != wanted:
        told = "none" if state is None else state.policy
        raise HostError(f"{host.name}: the server took the policy and reports another one: {told}")
