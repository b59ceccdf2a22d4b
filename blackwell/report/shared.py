"""What two runs have in common: the arms and levels that count in both, and how many times as fast they are."""

from collections.abc import Sequence
from dataclasses import dataclass

from . import series
from .groups import Group
from .series import Cell, Estimate


@dataclass(frozen=True)
class Shared:
    """One arm at one level that both runs have; ``ratio``: how many times as fast the second is."""

    first: Cell
    second: Cell
    ratio: Estimate


@dataclass(frozen=True)
class Pair:
    """The same settings and context of two runs."""

    first: Group
    second: Group
    shared: tuple[Shared, ...]


def pairs(first: Sequence[Group], second: Sequence[Group]) -> list[Pair]:
    """What two runs have in common; a level that does not count in both is left out."""
    before = {(group.settings, group.context): group for group in first}
    found = [
        Pair(before[group.settings, group.context], group, _shared(before[group.settings, group.context], group))
        for group in second
        if (group.settings, group.context) in before
    ]
    return [pair for pair in found if pair.shared]


def _shared(first: Group, second: Group) -> tuple[Shared, ...]:
    before = {(cell.arm, cell.c): cell for cell in first.cells}
    return tuple(
        Shared(before[cell.arm, cell.c], cell, found)
        for cell in second.cells
        if (cell.arm, cell.c) in before and (found := series.ratio(cell.tok_s, before[cell.arm, cell.c].tok_s))
    )
