"""Up to which load speculation pays, by what was measured with and without it."""

import math
from collections.abc import Iterable, Mapping

from .errors import BenchError
from .medians import medians

NEVER, ALWAYS = 0, None
"""Thresholds where speculation pays at no load, and at every one that was measured."""


def threshold(rows: Iterable[Mapping], full: str = "full", plain: str = "plain") -> int | None:
    """The largest number of requests for which ``full`` is faster than ``plain``, ``NEVER`` or ``ALWAYS``.

    Where the one stops to win between two levels, the logarithm of their ratio is taken for a straight line over the
    logarithm of the level. Of several such places the one is taken with which the worst loss at any level is smallest,
    then the loss of all, then the draft steps. A tie is no win.

    Raises BenchError if there is no level at which both were measured.
    """
    found = medians(rows)
    fast, slow = found.get(full, {}), found.get(plain, {})
    levels = sorted(fast.keys() & slow.keys())
    if not levels:
        raise BenchError(f"there is no level at which both {full} and {plain} were measured")
    gains = [math.log(fast[level] / slow[level]) for level in levels]
    cut = min(range(len(levels) + 1), key=lambda count: (*_losses(gains, count), count))
    if cut == 0:
        return NEVER
    if cut == len(levels):
        return ALWAYS
    return _between(levels[cut - 1], levels[cut], gains[cut - 1], gains[cut])


def _losses(gains: list[float], cut: int) -> tuple[float, float]:
    """Worst and total loss if the first ``cut`` levels speculate and the others do not."""
    losses = [max(0.0, -gain) for gain in gains[:cut]] + [max(0.0, gain) for gain in gains[cut:]]
    return max(losses), sum(losses)


def _between(low: int, high: int, gain: float, loss: float) -> int:
    """The whole level from ``low`` to below ``high`` up to which there is a gain: ``gain`` > 0 >= ``loss``."""
    share = gain / (gain - loss)
    crossing = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    # Where both are equal there is no gain; 1e-9 takes what the logarithms have rounded.
    return min(max(math.ceil(crossing - 1e-9) - 1, low), high - 1)
