"""What one server setting and one context of a run say: its cells, and the policy that its points give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blackwell.bench import policy, words
from blackwell.bench.errors import BenchError
from blackwell.bench.policy import Derived
from blackwell.sweep.points import DYNAMIC
from blackwell.sweep.points import contexts as contexts_of

from . import run_files, series
from .run_files import Run
from .series import Cell


@dataclass(frozen=True)
class Group:
    """``derived``: None if the points give no policy, for the reason ``underived``, without a full stop."""

    settings: str
    context: int
    cells: tuple[Cell, ...]
    derived: Derived | None
    underived: str = ""

    @property
    def explained(self) -> list[str]:
        """The sentences of the policy, without a full stop; none without a policy."""
        return words.explained(self.derived) if self.derived else []


def groups(run: Run) -> list[Group]:
    """Every server setting and context that has points, in the order of the plan."""
    there = contexts_of(run.points)
    contexts = list(dict.fromkeys([*run.plan["contexts"], *sorted(context for _, context in there)]))
    return [
        _group(run, settings, context)
        for settings in run_files.settings(run)
        for context in contexts
        if (settings, context) in there
    ]


def _group(run: Run, settings: str, context: int) -> Group:
    cells = tuple(series.cells(run.points, settings, context))
    try:
        return Group(settings, context, cells, policy.derive(_rows(run, settings, context)))
    except BenchError as error:
        return Group(settings, context, cells, None, str(error))


def _rows(run: Run, settings: str, context: int) -> list[Mapping[str, Any]]:
    """The points that a policy comes from; those of its proof came after it, and their repeats go on after these."""
    return [
        {**found, "arm": key.arm, "c": key.c, "repeat": key.repeat}
        for key, found in run.points.items()
        if (key.settings, key.context) == (settings, context)
        and key.arm != DYNAMIC
        and key.repeat <= run.plan["repeats"]
    ]


def titled(group: Group, among: Sequence[Group]) -> str:
    """What tells a group from the others, as a title; empty if it is the only one."""
    parts = []
    if len({other.settings for other in among}) > 1:
        parts.append(f"settings {group.settings}")
    if len({other.context for other in among}) > 1:
        parts.append(f"{group.context} tokens of context")
    title = ", ".join(parts)
    return title[:1].upper() + title[1:]


def policies(run: Run) -> dict[tuple[str, int], Mapping[str, Any]]:
    """What the run has derived, by settings and context; what names none was derived for the first of the plan."""
    first = {"settings": run.plan["settings"][0]["name"], "context": run.plan["contexts"][0]}
    found = [run.policy, *run.policy.get("others", ())] if run.policy else []
    return {(at["settings"], at["context"]): at for at in ({**first, **one} for one in found)}
