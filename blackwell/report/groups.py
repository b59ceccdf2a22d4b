"""What one server setting and one context of a run say: its cells, and the policy that its points give."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blackwell.bench import crossover, policy, words
from blackwell.bench.errors import BenchError
from blackwell.bench.policy import Derived

from . import run_files, series
from .run_files import Run
from .series import DYNAMIC, Cell


@dataclass(frozen=True)
class Group:
    """``derived``: None if the points give no policy, for the reason ``underived``, without a full stop.

    ``rough``: the largest number of clients for which full is faster than plain by the medians alone, where there is no
    more to say; crossover.NEVER, crossover.ALWAYS, or -1 if not even that can be told.
    """

    settings: str
    context: int
    cells: tuple[Cell, ...]
    derived: Derived | None
    underived: str = ""
    rough: int | None = -1

    @property
    def explained(self) -> list[str]:
        """The sentences of the policy, without a full stop; none without a policy."""
        return words.explained(self.derived) if self.derived else []


def groups(run: Run) -> list[Group]:
    """Every server setting and context that has points, in the order of the plan."""
    there = {(key.settings, key.context) for key in run.points}
    contexts = list(dict.fromkeys([*run.plan["contexts"], *sorted(context for _, context in there)]))
    return [
        _group(run, settings, context)
        for settings in run_files.settings(run)
        for context in contexts
        if (settings, context) in there
    ]


def _group(run: Run, settings: str, context: int) -> Group:
    cells = tuple(series.cells(run.points, settings, context))
    rows = _rows(run, settings, context)
    try:
        return Group(settings, context, cells, policy.derive(rows))
    except BenchError as error:
        return Group(settings, context, cells, None, str(error), _rough(rows))


def _rows(run: Run, settings: str, context: int) -> list[Mapping[str, Any]]:
    """The points from which a policy comes: those of a proof, whose repeats go on after these, came after it."""
    return [
        {**found, "arm": key.arm, "c": key.c, "repeat": key.repeat}
        for key, found in run.points.items()
        if (key.settings, key.context) == (settings, context)
        and key.arm != DYNAMIC
        and key.repeat <= run.plan["repeats"]
    ]


def _rough(rows: list[Mapping[str, Any]]) -> int | None:
    try:
        return crossover.threshold(rows)
    except BenchError:
        return -1


def named(group: Group, among: list[Group]) -> str:
    """What tells a group from the others, in words; empty if it is the only one."""
    parts = []
    if len({other.settings for other in among}) > 1:
        parts.append(f"settings {group.settings}")
    if len({other.context for other in among}) > 1:
        parts.append(f"{group.context} tokens of context")
    return ", ".join(parts)


def of_policy(run: Run, among: list[Group]) -> Group | None:
    """The group that the run's policy was derived for: the one that it names, else the first of the plan."""
    names = run.policy or {}
    wanted = (
        names.get("settings", run.plan["settings"][0]["name"]),
        names.get("context", run.plan["contexts"][0]),
    )
    return next((group for group in among if (group.settings, group.context) == wanted), None)
