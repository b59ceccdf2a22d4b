"""Which arm is for which batch sizes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise

from .arms import FULL, PLAIN
from .bootstrap import Interval
from .crossover import last_gain, unclear
from .curve import Node

Curves = Mapping[tuple[str, str], Sequence[Node]]
"""The nodes of each pair of arms, that of more draft steps over that of fewer."""


@dataclass(frozen=True)
class Tier:
    """An arm, and the largest batch that it is for; the last tier is for any.

    ``spread``: how far the batch was apart at constant load at the levels around that bound, as a share. ``doubt``: how
    many requests beyond the bound the points do not tell which of the two arms is faster.
    """

    arm: str
    max_batch: int | None = None
    spread: float = 0.0
    doubt: float = 0.0


def tiers(arms: Sequence[str], curves: Curves) -> list[Tier]:
    """The tiers for ``arms``, which come from the most draft steps to none.

    More steps have to be certainly faster: an arm loses what the low end of an interval gives to more steps, or does
    not give it over fewer. So a tie goes to fewer steps. Of all ways to have the steps fall as the batch rises, the one
    is taken with which the worst loss at any node is smallest, then the loss of all, then the steps. A tier ends where
    the low end of its ratio over the next one falls to 1, on the line between the two nodes.
    """
    nodes = curves[FULL, PLAIN]
    gains = {pair: {node.size: node.gain for node in at} for pair, at in curves.items()}
    held = _assigned(arms, [_losses(arms, gains, node.size) for node in nodes])
    found: list[Tier] = []
    for (arm, left), (after, right) in pairwise(zip(held, nodes, strict=True)):
        if arm == after:
            continue
        at = gains[arm, after]
        bound = _bound(left, right, at.get(left.size), at.get(right.size))
        # Between two nodes that are one request apart there may be no batch for an arm.
        if bound > (found[-1].max_batch if found else 0):
            spread = max(left.spread, right.spread)
            found.append(Tier(arm, bound, spread, _doubt(curves[arm, after], bound)))
    return [*found, Tier(held[-1])]


def _losses(arms: Sequence[str], gains: Mapping[tuple[str, str], Mapping[int, Interval]], size: int) -> list[float]:
    """What each arm loses at one node; it is infinite for one that was not measured there beside full and plain."""
    losses = dict.fromkeys(arms, 0.0)
    for (more, fewer), at in gains.items():
        if size in at:
            losses[more] = max(losses[more], -at[size].low)
            losses[fewer] = max(losses[fewer], at[size].low)
        elif FULL in (more, fewer) or PLAIN in (more, fewer):
            losses[more if fewer == PLAIN else fewer] = math.inf
    return [losses[arm] for arm in arms]


def _assigned(arms: Sequence[str], losses: Sequence[Sequence[float]]) -> list[str]:
    """The arm of each node."""

    def cost(held: tuple[int, ...]) -> tuple[float, float, int]:
        lost = [at[number] for number, at in zip(held, losses, strict=True)]
        return max(lost), sum(lost), -sum(held)

    best = min(combinations_with_replacement(range(len(arms)), len(losses)), key=cost)
    return [arms[number] for number in best]


def _bound(left: Node, right: Node, gain: Interval | None, loss: Interval | None) -> int:
    if gain is None or loss is None or gain.low <= 0:
        return math.floor(left.batch)
    if loss.low > 0:
        return math.ceil(right.batch) - 1
    return last_gain(left.batch, right.batch, gain.low, loss.low)


def _doubt(nodes: Sequence[Node], bound: int) -> float:
    return next((found.high - found.low for found in unclear(nodes) if bound <= found.low <= bound + 1), 0.0)
