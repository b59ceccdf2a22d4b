"""How many requests a server decodes at once with so many clients: what a policy goes by."""

import statistics
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from .errors import BenchError
from .points import HELD_SHARE, name


@dataclass(frozen=True)
class Batch:
    """The requests that decoded at once at one level: the median, least and most of its points, the median by arm."""

    middle: float
    least: float
    most: float
    arms: Mapping[str, float]

    @property
    def spread(self) -> float:
        """How far points at this constant load are apart, as a share of the median."""
        return (self.most - self.least) / self.middle

    def apart(self, above: str, below: str) -> bool:
        """Whether two arms had batches so different that their speeds do not compare.

        A limit that holds one of them back (speculation's default is 48 requests) looks like a crossover and is none.
        """
        return min(self.arms[above], self.arms[below]) < HELD_SHARE * max(self.arms[above], self.arms[below])


def batches(rows: Iterable[Mapping], arms: Collection[str]) -> dict[int, Batch]:
    """The batch of each level, by the points of ``arms`` that are not marked.

    One below 1 counts as 1: the moments without any request are no decode rounds.

    Raises BenchError, naming the point, if the server counted no running request there.
    """
    found: dict[int, dict[str, list[float]]] = {}
    for row in rows:
        if row["arm"] in arms and row["marked"] is None:
            if not row["running_batch"] > 0:
                raise BenchError(f"{name(row)} has no batch: the server counted no running request")
            found.setdefault(row["c"], {}).setdefault(row["arm"], []).append(max(1.0, row["running_batch"]))
    return {level: _batch(by_arm) for level, by_arm in sorted(found.items())}


def _batch(by_arm: Mapping[str, list[float]]) -> Batch:
    every = [value for values in by_arm.values() for value in values]
    medians = {arm: statistics.median(values) for arm, values in by_arm.items()}
    return Batch(statistics.median(every), min(every), max(every), medians)
