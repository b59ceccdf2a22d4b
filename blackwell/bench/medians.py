"""Median output of each arm at each load, over the repeats that count."""

import statistics
from collections.abc import Iterable, Mapping

Speeds = Mapping[str, Mapping[int, list[float]]]
"""Output tokens per second by arm and number of clients, one for each repeat."""


def speeds(rows: Iterable[Mapping]) -> dict[str, dict[int, list[float]]]:
    """The output of all points that are not marked."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        if row["marked"] is None:
            found.setdefault(row["arm"], {}).setdefault(row["c"], []).append(row["tok_s"])
    return found


def medians(rows: Iterable[Mapping]) -> dict[str, dict[int, float]]:
    """Median output tokens per second by arm and number of clients; marked points are left out."""
    return {
        arm: {level: statistics.median(values) for level, values in levels.items()}
        for arm, levels in speeds(rows).items()
    }
