"""Whether a policy keeps up with the better static arm at every level: pure functions over points."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from blackwell.bench import bootstrap, pairs
from blackwell.bench.bootstrap import Interval

from .plan import Plan
from .points import DYNAMIC, Key, rows

MOST_ROUNDS = 3
"""Times that a level is measured again whose points do not tell whether it holds."""


@dataclass(frozen=True)
class Level:
    """The policy beside ``best``, the better static arm, at one level: median tokens/s of both, and their ratio.

    ``low`` and ``high``: where the ratio would be in 95 of 100 such measurements; None from one pair.
    ``ok``: whether the ratio reaches the margin; None if nothing there counts, for the reason ``why``.
    """

    settings: str
    context: int
    c: int
    best: str
    dynamic: float | None = None
    static: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    ok: bool | None = None
    why: str = ""

    def content(self) -> dict:
        """The level as JSON has it."""
        return asdict(self)


def best(plan: Plan, points: Mapping[Key, Mapping], settings: str, context: int) -> dict[int, str]:
    """The static arm that is fastest at each level, by the medians of the points that a policy is derived from.

    A tie goes to fewer draft steps. A level without a point that counts is left out.
    """
    speeds: dict[int, dict[str, list[float]]] = {}
    for row in derived_from(plan, points, settings, context):
        if row["marked"] is None:
            speeds.setdefault(row["c"], {}).setdefault(row["arm"], []).append(row["tok_s"])
    order = {arm: number for number, arm in enumerate(plan.speculative)}
    return {
        level: max(arms, key=lambda arm: (statistics.median(arms[arm]), order[arm]))
        for level, arms in sorted(speeds.items())
    }


def derived_from(plan: Plan, points: Mapping[Key, Mapping], settings: str, context: int) -> list[dict]:
    """The rows from which the policy of one server setting and context is derived; those of its proof are not there."""
    static = {key: found for key, found in points.items() if key.repeat <= plan.repeats}
    return rows(static, settings, context, plan.speculative)


def levels(plan: Plan, points: Mapping[Key, Mapping], settings: str, context: int) -> list[Level]:
    """The proof of one server setting and context, by rising level."""
    arms = best(plan, points, settings, context)
    proving = {key: found for key, found in points.items() if key.repeat > plan.repeats}
    gains: dict[int, list[float]] = {}
    found_rows = rows(proving, settings, context)
    for level, arm in arms.items():
        at = [row for row in found_rows if row["c"] == level]
        gains[level] = pairs.gains(at, DYNAMIC, arm).get(level, [])
    intervals = _intervals(gains)
    found = []
    for c in plan.levels:
        level = Level(settings, context, c, arms.get(c, ""))
        at = [row for row in found_rows if row["c"] == c and row["marked"] is None]
        found.append(_measured(level, at, gains.get(c, []), intervals.get(c), plan.margin))
    return found


def _intervals(gains: Mapping[int, Sequence[float]]) -> dict[int, Interval]:
    measured = {level: sample for level, sample in sorted(gains.items()) if sample}
    if all(len(sample) < 2 for sample in measured.values()):
        return {}
    return dict(zip(measured, bootstrap.intervals(list(measured.values())), strict=True))


def _measured(
    level: Level, at: Sequence[Mapping], gains: Sequence[float], interval: Interval | None, margin: float
) -> Level:
    """A level with what its rows say; ``gains``: logarithms of its ratios."""
    if not level.best:
        return replace(level, why="no static arm has a point there that counts")
    if not gains:
        return replace(level, why=f"{DYNAMIC} and {level.best} have no pair of points that counts")
    ratio = math.exp(statistics.median(gains))
    medians = {
        arm: round(statistics.median(row["tok_s"] for row in at if row["arm"] == arm), 2)
        for arm in (DYNAMIC, level.best)
    }
    measured = replace(
        level, dynamic=medians[DYNAMIC], static=medians[level.best], ratio=round(ratio, 4), ok=ratio >= margin
    )
    if interval is None:
        return measured
    return replace(measured, low=_figure(interval.low), high=_figure(interval.high))


def _figure(logarithm: float) -> float:
    """A ratio to four digits; even one of nothing but noise is above 0."""
    return float(f"{math.exp(logarithm):.4g}")


def open_levels(plan: Plan, found: Sequence[Level]) -> list[int]:
    """Levels that miss the margin by their median, while their interval reaches it: noise, or a loss."""
    return [level.c for level in found if level.ok is False and level.high is not None and level.high >= plan.margin]


def verdict(plan: Plan, found: Sequence[Level]) -> str:
    """Which levels miss the margin, a sentence without a full stop; empty if none does and one counts."""
    missed = [level for level in found if level.ok is False]
    if missed:
        told = ", ".join(
            f"{level.ratio:.3f} of {level.best} at {level.c} clients ({level.context} tokens)" for level in missed
        )
        return f"the policy gives {told}, and has to give {plan.margin:g}"
    if not any(level.ok for level in found):
        return "no level of the proof has points that count"
    return ""
