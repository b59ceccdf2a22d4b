"""Up to which load speculation pays, by what was measured with and without it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .bootstrap import Interval
from .curve import Node
from .errors import BenchError
from .medians import medians

NEVER, ALWAYS = 0, None
"""Thresholds where speculation pays at no load, and at every one that was measured."""

ROUNDED = 1e-9
"""More than what logarithms of loads have rounded, less than any difference that counts."""


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
    cut = _cut(gains)
    if cut == 0:
        return NEVER
    if cut == len(levels):
        return ALWAYS
    return last_gain(levels[cut - 1], levels[cut], gains[cut - 1], gains[cut])


def _cut(gains: Sequence[float]) -> int:
    """How many levels, from the first, are to speculate."""
    return min(range(len(gains) + 1), key=lambda count: (*_losses(gains, count), count))


def _losses(gains: Sequence[float], cut: int) -> tuple[float, float]:
    """Worst and total loss if the first ``cut`` levels speculate and the others do not."""
    losses = [max(0.0, -gain) for gain in gains[:cut]] + [max(0.0, gain) for gain in gains[cut:]]
    return max(losses), sum(losses)


def last_gain(low: float, high: float, gain: float, loss: float) -> int:
    """The whole load from ``low`` to below ``high`` up to which there is a gain: ``gain`` > 0 >= ``loss``."""
    # Where both are equal there is no gain.
    return min(max(_below(_at(low, high, gain / (gain - loss))), math.floor(low)), _below(high))


def _at(low: float, high: float, share: float) -> float:
    """The load at a share of the way between two, on a logarithmic scale."""
    # The ends are exactly themselves: whether a range reaches a level is asked of them.
    return {0.0: low, 1.0: high}.get(share) or math.exp(math.log(low) + share * (math.log(high) - math.log(low)))


def _below(load: float) -> int:
    return math.ceil(load - ROUNDED) - 1


def _beyond(load: float) -> int:
    return math.floor(load + ROUNDED) + 1


@dataclass(frozen=True)
class Range:
    """Batch sizes from ``low`` to ``high`` for which the points do not tell which of two arms is faster."""

    low: float
    high: float

    def holds(self, batch: float) -> bool:
        """Whether a batch size is one of them."""
        return self.low - ROUNDED <= batch <= self.high + ROUNDED


@dataclass(frozen=True)
class Crossover:
    """Up to which batch the first of two arms is faster, as far as the points tell.

    ``point``: the largest batch for which it is, by the medians; ``NEVER`` or ``ALWAYS``. ``certain``: up to which
    batch that is certain, 0 if nowhere. ``lost``: from which batch on it certainly is not, None if that is certain at
    none that was measured. ``unclear``: all ranges without a certain winner. ``against``: batches at which the other
    arm certainly wins, although they are on this side of the point; a curve that crosses more than once has some.
    """

    point: int | None
    certain: int
    lost: int | None
    unclear: tuple[Range, ...]
    against: tuple[float, ...]


def find(nodes: Sequence[Node]) -> Crossover:
    """The crossover of a curve, which has one node at least, and its interval.

    Medians and both ends of their intervals are straight lines from node to node, the logarithm of the ratio over that
    of the batch. Without a certain winner are the batches whose interval has a ratio of 1 in it; the interval of the
    crossover are those of them that hang together with its point. Of several crossings the one is taken with which the
    worst loss is smallest, as for ``threshold``.
    """
    cut = _cut([node.gain.middle for node in nodes])
    ranges = unclear(nodes)
    crossing = _crossing(nodes, cut)
    around = next((found for found in ranges if found.holds(crossing)), None)
    won, lost = nodes[:cut], nodes[cut:]
    return Crossover(
        _point(won, lost),
        _certain(won, around),
        _lost(lost, around),
        tuple(ranges),
        tuple([node.batch for node in won if node.gain.high < 0] + [node.batch for node in lost if node.gain.low > 0]),
    )


def _crossing(nodes: Sequence[Node], cut: int) -> float:
    """Where the medians cross; the first or the last batch if that is beyond."""
    if cut in (0, len(nodes)):
        return nodes[min(cut, len(nodes) - 1)].batch
    low, high = nodes[cut - 1], nodes[cut]
    return _at(low.batch, high.batch, low.gain.middle / (low.gain.middle - high.gain.middle))


def _point(won: Sequence[Node], lost: Sequence[Node]) -> int | None:
    if not won:
        return NEVER
    if not lost:
        return ALWAYS
    return last_gain(won[-1].batch, lost[0].batch, won[-1].gain.middle, lost[0].gain.middle)


def _certain(won: Sequence[Node], around: Range | None) -> int:
    if not won:
        return 0
    if around is None:
        return math.floor(won[-1].batch)
    before = [node for node in won if node.batch < around.low - ROUNDED]
    return _below(around.low) if before and before[-1].gain.low > 0 else 0


def _lost(lost: Sequence[Node], around: Range | None) -> int | None:
    if not lost:
        return None
    if around is None:
        return math.floor(lost[0].batch)
    after = [node for node in lost if node.batch > around.high + ROUNDED]
    return _beyond(around.high) if after and after[0].gain.high < 0 else None


def unclear(nodes: Sequence[Node]) -> list[Range]:
    """The ranges of batch sizes without a certain winner, by rising batch."""
    if len(nodes) == 1:
        (node,) = nodes
        return [Range(node.batch, node.batch)] if node.gain.low <= 0 <= node.gain.high else []
    ranges: list[Range] = []
    for left, right in pairwise(nodes):
        shares = _unclear_shares(left.gain, right.gain)
        if shares is None:
            continue
        found = Range(*(_at(left.batch, right.batch, share) for share in shares))
        # What ends at a node goes on there.
        if ranges and ranges[-1].high == found.low:
            found = Range(ranges.pop().low, found.high)
        ranges.append(found)
    return ranges


def _unclear_shares(left: Interval, right: Interval) -> tuple[float, float] | None:
    """From which to which share of the way between two nodes the interval has a ratio of 1 in it."""
    no_gain, no_loss = _not_above_zero(left.low, right.low), _not_above_zero(-left.high, -right.high)
    if no_gain is None or no_loss is None:
        return None
    begin, end = max(no_gain[0], no_loss[0]), min(no_gain[1], no_loss[1])
    return (begin, end) if begin <= end else None


def _not_above_zero(left: float, right: float) -> tuple[float, float] | None:
    """From which to which share of the way a straight line is not above zero."""
    if left > 0 and right > 0:
        return None
    return (left / (left - right) if left > 0 else 0.0), (left / (left - right) if right > 0 else 1.0)
