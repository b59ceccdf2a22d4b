"""How much faster one arm is than another, by the number of requests that decode at once."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import bootstrap, pairs
from .batches import Batch
from .bootstrap import Interval
from .errors import BenchError


@dataclass(frozen=True)
class Node:
    """One batch size, the levels (clients) that had it, and the logarithm of the ratio of speeds there.

    ``spread``: how far the batch was apart at constant load, as a share of it.
    """

    batch: float
    clients: tuple[int, ...]
    gain: Interval
    spread: float = 0.0

    @property
    def size(self) -> int:
        """The whole number that levels of one node have in common."""
        return round(self.batch)


def curve(rows: Sequence[Mapping], above: str, below: str, batches: Mapping[int, Batch]) -> list[Node]:
    """The nodes of ``above`` over ``below``, by rising batch.

    Levels whose batch is the same whole number are one node: a full server decodes no more for more clients. Levels
    without a pair, or at which the batches of the two are apart, are left out.

    Raises BenchError, naming the arms and levels, if nothing is left or no level has two pairs.
    """
    gains = pairs.gains(rows, above, below)
    together: dict[int, list[int]] = {}
    for level in gains:
        if not batches[level].apart(above, below):
            together.setdefault(round(batches[level].middle), []).append(level)
    if not together:
        raise BenchError(f"{above} and {below} cannot be compared: {_nothing(rows, above, below, batches)}")
    groups = [levels for _, levels in sorted(together.items())]
    samples = [[gain for level in levels for gain in gains[level]] for levels in groups]
    if all(len(sample) == 1 for sample in samples):
        at = ", ".join(str(level) for levels in groups for level in levels)
        raise BenchError(
            f"{above} and {below} have one pair only at {at} clients: how far points scatter takes a second repeat"
        )
    return [
        _node(levels, batches, interval) for levels, interval in zip(groups, bootstrap.intervals(samples), strict=True)
    ]


def _node(levels: Sequence[int], batches: Mapping[int, Batch], gain: Interval) -> Node:
    middle = statistics.median(batches[level].middle for level in levels)
    return Node(middle, tuple(levels), gain, max(batches[level].spread for level in levels))


def _nothing(rows: Sequence[Mapping], above: str, below: str, batches: Mapping[int, Batch]) -> str:
    reasons = left_out(rows, above, below, batches)
    return "; ".join(reasons) if reasons else "neither was measured at any level"


def left_out(rows: Sequence[Mapping], above: str, below: str, batches: Mapping[int, Batch]) -> list[str]:
    """Why levels have no node, a sentence each without a full stop."""
    reasons = pairs.unpaired(rows, above, below)
    for level, batch in batches.items():
        if level not in reasons and {above, below} <= batch.arms.keys() and batch.apart(above, below):
            reasons[level] = (
                f"at {level} clients {above} ran {batch.arms[above]:g} requests at once and {below} "
                f"{batch.arms[below]:g}: a limit of the server differs, not the speed"
            )
    return [sentence for _, sentence in sorted(reasons.items())]
