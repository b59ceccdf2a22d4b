"""Points as what a figure or a table shows: medians with intervals, by settings, context, arm and level."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from blackwell.bench import arms as policy_arms
from blackwell.bench import bootstrap
from blackwell.sweep.points import BASELINE, DYNAMIC, Key

Points = Mapping[Key, Mapping[str, Any]]


@dataclass(frozen=True)
class Estimate:
    """A median, and between which values it is with 95 % confidence; None where no repeat tells how far it scatters."""

    middle: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Cell:
    """One arm at one level: over ``counted`` points; ``marked`` ones do not count.

    ``tok_s``: output tokens/s of all clients. ``user_tok_s``: of one client. ``answer_s``: seconds to the whole answer,
    the median request. The others are medians over points. None is what no point has. ``on_front``: no other cell of
    these settings and context gives more tokens/s without a longer answer time.
    """

    settings: str
    context: int
    arm: str
    c: int
    counted: int
    marked: int
    tok_s: Estimate | None = None
    user_tok_s: Estimate | None = None
    answer_s: Estimate | None = None
    answer_s_p95: float | None = None
    running_batch: float | None = None
    queued: float | None = None
    acceptance: float | None = None
    kv_tokens: float | None = None
    power_w: float | None = None
    sm_mhz: float | None = None
    temperature_c: float | None = None
    on_front: bool = False


ESTIMATED = {"tok_s": "tok_s", "user_tok_s": "user_tok_s", "answer_s": "answer_s_p50"}
"""What of a cell has an interval, and what a point calls it."""
MEDIANS = (
    *("answer_s_p95", "running_batch", "queued", "acceptance", "kv_tokens", "power_w", "sm_mhz", "temperature_c"),
)


def arm_order(arm: str) -> tuple[int, int]:
    """Sorts arms: the server without speculation, all steps, fewer and fewer, none, and what follows the load."""
    if reduced := policy_arms.REDUCED.fullmatch(arm):
        return 2, -int(reduced[1])
    return {BASELINE: 0, policy_arms.FULL: 1, policy_arms.PLAIN: 3, DYNAMIC: 4}[arm], 0


def cells(points: Points, settings: str, context: int) -> list[Cell]:
    """The cells of one server setting and one context, by arm and rising level."""
    at: dict[str, dict[int, list[Mapping]]] = {}
    for key, found in points.items():
        if (key.settings, key.context) == (settings, context):
            at.setdefault(key.arm, {}).setdefault(key.c, []).append(found)
    made = [
        cell
        for arm in sorted(at, key=arm_order)
        for cell in _arm(settings, context, arm, dict(sorted(at[arm].items())))
    ]
    best = front(made)
    return [replace(cell, on_front=(cell.arm, cell.c) in best) for cell in made]


def _arm(settings: str, context: int, arm: str, levels: Mapping[int, Sequence[Mapping]]) -> list[Cell]:
    counted = {level: [point for point in at if point["marked"] is None] for level, at in levels.items()}
    estimated = {
        name: estimates({level: _values(at, key) for level, at in counted.items()}) for name, key in ESTIMATED.items()
    }
    return [
        Cell(
            settings,
            context,
            arm,
            level,
            len(counted[level]),
            len(at) - len(counted[level]),
            **{name: found.get(level) for name, found in estimated.items()},
            **{name: _median(_values(counted[level], name)) for name in MEDIANS},
        )
        for level, at in levels.items()
    ]


def _values(points: Iterable[Mapping], name: str) -> list[float]:
    return [point[name] for point in points if point.get(name) is not None]


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def estimates(values: Mapping[int, Sequence[float]]) -> dict[int, Estimate]:
    """The estimate of each level that has values, all above 0; levels rise.

    The interval is that of the logarithm, since noise is a share of the speed and neighbours give each other theirs.
    """
    there = {level: at for level, at in values.items() if at}
    middles = {level: statistics.median(at) for level, at in there.items()}
    if all(len(at) < 2 for at in there.values()):
        return {level: Estimate(middle) for level, middle in middles.items()}
    found = bootstrap.intervals([[math.log(value) for value in at] for at in there.values()])
    reaches = [interval.high - interval.middle for interval in found]
    return {
        level: Estimate(middle, middle * math.exp(-reach), middle * math.exp(reach))
        for (level, middle), reach in zip(middles.items(), reaches, strict=True)
    }


def ratio(above: Estimate | None, below: Estimate | None) -> Estimate | None:
    """How many times as much one is as the other, both measured by themselves; None if one of them is missing.

    Their errors are independent, so the squares of their reaches add up, on the logarithmic scale.
    """
    if above is None or below is None:
        return None
    middle = above.middle / below.middle
    if above.high is None or below.high is None:
        return Estimate(middle)
    reach = math.hypot(math.log(above.high / above.middle), math.log(below.high / below.middle))
    return Estimate(middle, middle * math.exp(-reach), middle * math.exp(reach))


def verdict(found: Estimate | None) -> str:
    """What a ratio says for certain, in words."""
    if found is None:
        return "not comparable"
    if found.low is None or found.high is None:
        return "no interval"
    return "faster" if found.low > 1 else "slower" if found.high < 1 else "no certain difference"


def front(made: Iterable[Cell]) -> set[tuple[str, int]]:
    """Arm and level of the cells that no other one beats: none has more tokens/s in no more time to an answer."""
    there = [cell for cell in made if cell.tok_s and cell.answer_s]
    there.sort(key=lambda cell: (cell.answer_s.middle, -cell.tok_s.middle))
    best: set[tuple[str, int]] = set()
    most = 0.0
    for cell in there:
        if cell.tok_s.middle > most:
            most = cell.tok_s.middle
            best.add((cell.arm, cell.c))
    return best


def by_arm(made: Iterable[Cell]) -> dict[str, dict[int, Cell]]:
    """The cells by arm and level, in their order."""
    found: dict[str, dict[int, Cell]] = {}
    for cell in made:
        found.setdefault(cell.arm, {})[cell.c] = cell
    return found


def marked(points: Points) -> list[tuple[Key, str]]:
    """The points that do not count and why, in the order in which they were measured."""
    return [(key, found["marked"]) for key, found in points.items() if found["marked"] is not None]
