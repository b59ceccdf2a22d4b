"""From points to a load policy: what a server takes as --speculative-load-policy, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from . import arms, crossover
from .arms import FULL, PLAIN
from .batches import batches
from .crossover import Crossover
from .curve import Node, curve, left_out
from .hysteresis import margin_and_dwell
from .tiers import Curves, Tier, tiers


@dataclass(frozen=True)
class Derived:
    """A policy and what it comes from.

    ``policy``: as JSON has it. ``tiers``: the same, with arms. ``arms``: those that there were to choose from.
    ``curves``: each pair of them. ``crossover``: where all draft steps stop to pay over none. ``left_out``: why levels
    do not count for that, sentences without a full stop.
    """

    policy: dict
    tiers: tuple[Tier, ...]
    arms: tuple[str, ...]
    curves: Curves
    crossover: Crossover
    left_out: tuple[str, ...]

    @property
    def nodes(self) -> Sequence[Node]:
        """The curve of all draft steps over none, by rising batch."""
        return self.curves[FULL, PLAIN]


def derive(rows: Sequence[Mapping]) -> Derived:
    """The policy for the points of ``full``, ``plain`` and any ``reducedN`` of one server; other arms do not count.

    Its tiers go by the batch that the server counted, not by clients. Above the largest batch measured, the last tier
    goes on.

    Raises BenchError, naming arms and levels, if arms cannot be compared.
    """
    there = arms.of(rows)
    at = batches(rows, there)
    curves = {(more, fewer): curve(rows, more, fewer, at) for more, fewer in combinations(there, 2)}
    found = tuple(tiers(there, curves))
    return Derived(
        _policy(found),
        found,
        tuple(there),
        curves,
        crossover.find(curves[FULL, PLAIN]),
        tuple(left_out(rows, FULL, PLAIN, at)),
    )


def _policy(found: Sequence[Tier]) -> dict:
    policy = {"version": 1, "tiers": [_tier(tier) for tier in found]}
    if len(found) > 1:
        policy["margin"], policy["dwell"] = margin_and_dwell(found)
    return policy


def _tier(tier: Tier) -> dict:
    bound = {} if tier.max_batch is None else {"max_batch": tier.max_batch}
    return bound | {"steps": arms.steps(tier.arm)}
