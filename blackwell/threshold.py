"""Another threshold for a host, live and in its inventory, by ``fab threshold``."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fabric import Connection

from blackwell import inventory, load_control, load_policy, load_state, remote, speculation_file, speculation_setting
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory
from blackwell.speculation_setting import Setting
from blackwell.speculation_text import Origin

UNDO, LIVE_ONLY, INVENTORY_ONLY = "--undo", "--live-only", "--inventory-only"
FORCE, DRY_RUN = "--force", "--dry-run"
EXCLUDING = (
    (LIVE_ONLY, INVENTORY_ONLY, "together they change nothing"),
    (LIVE_ONLY, FORCE, "no file is written"),
    (UNDO, LIVE_ONLY, "it is the inventory's file that is put back"),
    (UNDO, FORCE, "what is there is kept, by whomever it is"),
)


@dataclass(frozen=True)
class Wish:
    """What was typed. ``threshold``, ``undo``: what is wanted, neither to look. ``live``: while the server
    runs; ``kept``: in the inventory. ``force``: a file that was changed by hand may be written over."""

    threshold: int | None
    undo: bool
    live: bool
    kept: bool
    force: bool
    dry_run: bool

    @property
    def looks(self) -> bool:
        """Whether nothing is to change."""
        return self.threshold is None and not self.undo


def wanted(word: str, options: Mapping[str, bool]) -> Wish:
    """What was typed, checked. ``word``: the threshold; ``options``: whether each of those of a Wish was given.

    Raises HostError if the threshold is no number, or two options exclude each other.
    """
    given = [name for name, is_given in options.items() if is_given]
    if word and UNDO in given:
        raise HostError(f"{word} and {UNDO} exclude each other: one sets a threshold, the other puts one back")
    if given and not word and UNDO not in given:
        raise HostError(f"{given[0]} is for a change: fab -H HOST threshold N {given[0]}")
    for one, other, reason in EXCLUDING:
        if one in given and other in given:
            raise HostError(f"{one} and {other} exclude each other: {reason}")
    return Wish(
        threshold=load_control.whole("the threshold", word, "a number of requests") if word else None,
        undo=UNDO in given,
        live=INVENTORY_ONLY not in given,
        kept=LIVE_ONLY not in given,
        force=FORCE in given,
        dry_run=DRY_RUN in given,
    )


def origin(host: Host, threshold: int) -> Origin:
    """Where a threshold comes from that was typed now."""
    return Origin(f"fab -H {host.name} threshold {threshold}", datetime.now(UTC).isoformat(timespec="seconds"))


def check_inventory(host: Host, known: Inventory, setting: Setting) -> None:
    """Raises HostError if preflight would refuse a setting, by the host's other variables."""
    variables = known.hosts[host.name]
    steps, most = speculation_setting.draft_steps(variables), speculation_setting.most_requests(variables)
    _refuse(host, speculation_setting.problems(setting, steps, most))


def check_server(host: Host, setting: Setting, reported: Mapping) -> None:
    """Raises HostError if the server cannot take a setting while it runs, by the body of its /server_info."""
    check_right(host, setting, reported)
    if why := deployed_only(setting, reported):
        raise HostError(f"{host.name}: {why}: write it into the inventory with --inventory-only, and deploy")


def check_right(host: Host, setting: Setting, reported: Mapping) -> None:
    """Raises HostError if a setting is none for the server, deployed anew or not, by the body of its /server_info."""
    load_control.check_able(host, reported)
    steps, most = reported.get("speculative_num_steps"), reported.get("max_running_requests")
    _refuse(host, speculation_setting.problems(setting, steps, most))


def deployed_only(setting: Setting, reported: Mapping) -> str:
    """Why only a deployment brings a server a setting that is right for it: a sentence without a full stop.

    Empty if the server takes it while it runs. ``reported``: the body of its /server_info.
    """
    state = load_state.parse(reported)
    if state is None:
        without = "the server was started without a threshold and a policy, so it takes none while it runs"
        return without if setting.asked else ""
    tiers = speculation_setting.resolved(setting, reported.get("speculative_num_steps") or 0)["tiers"]
    missing = [tier["steps"] for tier in tiers if tier["steps"] not in state.prepared]
    if not missing:
        return ""
    known = " and ".join(map(load_policy.counted, state.prepared))
    return (
        f"the server was started for {known} only, so it does not take {load_policy.counted(missing[0])} while it runs"
    )


def _refuse(host: Host, problems: Sequence[str]) -> None:
    if problems:
        raise HostError(f"{host.name}: {'; '.join(problems)}")


@dataclass(frozen=True)
class Plan:
    """A change that the inventory can take. ``file``: the inventory's, None where it stays as it is.

    ``setting``: None where the file goes away, which leaves it to the rest of the inventory.
    """

    host: Host
    known: Inventory
    wish: Wish
    file: Path | None
    setting: Setting | None


@dataclass(frozen=True)
class Done:
    """A plan that was carried out, or in a dry run was not. ``setting``: as for a plan.

    ``before``, ``after``: bodies of /server_info, None where it was not asked.
    """

    plan: Plan
    setting: Setting | None
    before: Mapping | None
    after: Mapping | None = None


def plan(host: Host, known: Inventory, wish: Wish) -> Plan:
    """What a wish comes to; nothing is changed. Raises HostError if the inventory cannot take it."""
    if wish.undo:
        found = speculation_file.before(known, host.name)
        return Plan(host, known, wish, speculation_file.place(known, host.name), found and found.setting)
    setting = Setting(wish.threshold or 0)
    if not wish.kept:
        return Plan(host, known, wish, None, setting)
    file = speculation_file.check(known, host.name, setting, force=wish.force)
    check_inventory(host, known, setting)
    return Plan(host, known, wish, file, setting)


def apply(connection: Connection | None, plan: Plan) -> Done:
    """Carry out a plan, as a whole or not at all. ``connection``: None where the server stays as it is.

    Raises HostError if the server or the inventory does not take it.
    """
    before = None if connection is None else look(connection, plan.host)
    if before is not None and plan.setting is not None:
        check_server(plan.host, plan.setting, before)
    if plan.wish.dry_run:
        return Done(plan, plan.setting, before)
    with _kept(plan) as setting:
        after = None if before is None else send(connection, plan.host, setting, before)
    return Done(plan, setting, before, after)


@contextmanager
def _kept(plan: Plan) -> Iterator[Setting]:
    """The inventory's file as it is planned, for as long as all goes well; yields the setting that is to apply."""
    host, known, wish = plan.host, plan.known, plan.wish
    setting = Setting(wish.threshold or 0)
    if wish.undo:
        with speculation_file.undone(known, host.name):
            variables = inventory.read(Path(known.source)).hosts[host.name]
            yield speculation_setting.of(host.name, variables)
    elif wish.kept:
        written = origin(host, setting.threshold)
        with speculation_file.written(known, host.name, setting, written, force=wish.force):
            yield setting
    else:
        yield setting


def look(connection: Connection, host: Host) -> Mapping:
    """The body of the server's /server_info. Raises HostError if the server is not ready or does not answer."""
    return load_control.information(host, remote.call(connection, host, "speculation", change={}))


def send(connection: Connection, host: Host, setting: Setting, before: Mapping) -> Mapping:
    """Have the server take a setting while it runs; ``before`` and what is returned are bodies of its /server_info.

    Raises HostError if it does not take it.
    """
    check_server(host, setting, before)
    if load_state.parse(before) is None:
        # It speculates always, and nothing else was wanted.
        return before
    found = remote.call(connection, host, "speculation", change=setting.change)
    load_control.accepted(host, found)
    return load_control.information(host, found, "after")
