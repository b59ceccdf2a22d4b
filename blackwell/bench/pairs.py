"""Points of two arms that belong together: measured at one level in one repeat."""

import math
from collections.abc import Iterable, Mapping

from .errors import BenchError
from .points import Name, name


def gains(rows: Iterable[Mapping], above: str, below: str) -> dict[int, list[float]]:
    """Logarithms of how many times as fast ``above`` is as ``below``, by level, one for each pair.

    A pair is one level in one repeat: its points were measured close after each other, and what slows the host for a
    while slows both. A point that is marked, or whose partner is marked or missing, does not count; a level without a
    pair is left out. All rows are of one context length.

    Raises BenchError, naming the point, if one is there twice or gave no tokens.
    """
    speeds = _speeds(rows, (above, below))
    found: dict[int, list[float]] = {}
    for level, repeat in sorted({(at.c, at.repeat) for at in speeds}):
        fast, slow = speeds.get(Name(above, level, repeat)), speeds.get(Name(below, level, repeat))
        if fast is not None and slow is not None:
            found.setdefault(level, []).append(math.log(fast / slow))
    return found


def _speeds(rows: Iterable[Mapping], arms: tuple[str, str]) -> dict[Name, float]:
    speeds: dict[Name, float] = {}
    for row in rows:
        if row["arm"] not in arms or row["marked"] is not None:
            continue
        at = name(row)
        if at in speeds:
            raise BenchError(f"{at} is there twice: the rows must be of one run and one context length")
        if not row["tok_s"] > 0:
            raise BenchError(f"{at} gave {row['tok_s']} tokens/s, which is no speed to compare")
        speeds[at] = row["tok_s"]
    return speeds


def unpaired(rows: Iterable[Mapping], above: str, below: str) -> dict[int, str]:
    """Why a level at which one of two arms was measured has no pair, as a sentence without a full stop."""
    repeats: dict[int, dict[str, set[int]]] = {}
    for row in rows:
        if row["arm"] in (above, below):
            counting = repeats.setdefault(row["c"], {above: set(), below: set()})[row["arm"]]
            counting |= {row["repeat"]} if row["marked"] is None else set()
    return {
        level: f"at {level} clients {_lacking(at)}"
        for level, at in sorted(repeats.items())
        if not set.intersection(*at.values())
    }


def _lacking(repeats: Mapping[str, set[int]]) -> str:
    empty = [arm for arm, found in repeats.items() if not found]
    if empty:
        return f"no point of {' and none of '.join(empty)} counts"
    return f"{' and '.join(repeats)} have no repeat in common"
