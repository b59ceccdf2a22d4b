"""How far the median of a few paired measurements may be from what many would give."""

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

DRAWS = 1000
CONFIDENCE = 0.95
SEED = 59
"""Any: with one that is fixed, the same points give the same interval."""


@dataclass(frozen=True)
class Interval:
    """A median, and between which values it would be in 95 of 100 such measurements."""

    low: float
    middle: float
    high: float


def intervals(samples: Sequence[Sequence[float]]) -> list[Interval]:
    """An interval for the median of each sample; samples are in the order of their levels, none is empty.

    Three values say little of how far they scatter, and resampling these alone never leaves them: of a median of three
    that misses one time in four. So the deviations of a level and its two neighbours are one pool; noise changes slowly
    with the load. They enter with both signs: the arms are measured in balanced order, which of them has the slow
    pass is chance. Each draw is scaled by a chance of its own, a chi-square one of as many degrees of freedom as the
    pool has: from few values, the size of the noise is itself a guess.

    Raises ValueError if no sample has two values.
    """
    return [_interval(samples, number) for number in range(len(samples))]


def _interval(samples: Sequence[Sequence[float]], number: int) -> Interval:
    pool, freedom = _pool(samples, number)
    middle, count = statistics.median(samples[number]), len(samples[number])
    rng = random.Random(SEED)
    errors = sorted(
        abs(statistics.median(rng.choices(pool, k=count))) * math.sqrt(freedom / rng.gammavariate(freedom / 2, 2))
        for _ in range(DRAWS)
    )
    reach = errors[math.ceil(CONFIDENCE * DRAWS) - 1]
    return Interval(middle - reach, middle, middle + reach)


def _pool(samples: Sequence[Sequence[float]], number: int) -> tuple[list[float], int]:
    """Deviations near a level, and their degrees of freedom; levels of one value each have none."""
    for reach in range(1, len(samples) + 1):
        near = [sample for sample in samples[max(0, number - reach) : number + reach + 1] if len(sample) > 1]
        if near:
            deviations = [deviation for sample in near for deviation in _deviations(sample)]
            return [sign * deviation for deviation in deviations for sign in (1, -1)], sum(len(s) - 1 for s in near)
    raise ValueError("no sample has two values")


def _deviations(sample: Sequence[float]) -> list[float]:
    # A median lies closer to its own sample than the truth does.
    scale = math.sqrt(len(sample) / (len(sample) - 1))
    middle = statistics.median(sample)
    return [scale * (value - middle) for value in sample]
