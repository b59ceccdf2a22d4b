"""What points say of speculation, in sentences that an operator reads."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from . import arms
from .arms import FULL, PLAIN
from .crossover import ALWAYS, NEVER, ROUNDED, Crossover, Range, unclear
from .curve import Node
from .policy import Derived

WIDE = 1.5
"""A gap between levels whose ends are so many times apart is worth a level between them."""


def explained(derived: Derived) -> list[str]:
    """The sentences, without a full stop: the crossover, what speaks against it, what to measure better, the policy."""
    return [
        _crossover(derived.crossover, derived.nodes),
        *_against(derived.crossover),
        *_doubts(derived),
        *(f"{_steps(arm)} is best nowhere for certain" for arm in derived.arms if _unused(arm, derived)),
        _policy(derived),
        *(f"left out: {sentence}" for sentence in derived.left_out),
    ]


def _crossover(found: Crossover, nodes: Sequence[Node]) -> str:
    first, last = nodes[0].size, nodes[-1].size
    lost = "not certainly lost at any measured batch" if found.lost is None else f"certainly not from {found.lost} on"
    if found.point == NEVER:
        is_certain = found.lost is not None and found.lost <= first
        return f"speculation never pays: measured {_span(first, last)}" + ("" if is_certain else f" ({lost})")
    certain = f"certain up to {found.certain}" if found.certain else "certain nowhere"
    if found.point == ALWAYS:
        doubt = "" if found.certain >= math.floor(nodes[-1].batch) else f" ({certain})"
        return f"speculation pays at every level measured: measured up to {last}{doubt}"
    return f"speculation pays up to a batch of {found.point} ({certain}, {lost})"


def _span(first: int, last: int) -> str:
    return f"at a batch of {first}" if first == last else f"from a batch of {first} to {last}"


def _against(found: Crossover) -> Iterator[str]:
    below = [f"{batch:g}" for batch in found.against if found.point is ALWAYS or batch <= found.point]
    above = [f"{batch:g}" for batch in found.against if f"{batch:g}" not in below]
    if below:
        yield f"the curve crosses more than once: speculation certainly loses at a batch of {', '.join(below)}"
    if above:
        yield f"the curve crosses more than once: speculation certainly pays at a batch of {', '.join(above)}, too"


def _doubts(derived: Derived) -> Iterator[str]:
    changes = [(tier.arm, after.arm) for tier, after in pairwise(derived.tiers)]
    for pair in dict.fromkeys([(FULL, PLAIN), *changes]):
        nodes = derived.curves[pair]
        between = "" if pair == (FULL, PLAIN) else f" {_steps(pair[0])} from {_steps(pair[1])}"
        for found in unclear(nodes):
            yield from _doubt(found, nodes, between)


def _doubt(found: Range, nodes: Sequence[Node], between: str) -> Iterator[str]:
    low, high = math.ceil(found.low - ROUNDED), math.floor(found.high + ROUNDED)
    inside = [node for node in nodes if found.holds(node.batch)]
    if any(node.gain.low < node.gain.high for node in inside):
        where = f"at {low}" if low >= high else f"between {low} and {high}"
        yield f"the points are too noisy to tell{between} {where}: more repeats"
    elif not inside and found.high > WIDE * found.low:
        yield f"no level was measured between {low} and {high}, which would tell{between}: more levels"


def _unused(arm: str, derived: Derived) -> bool:
    return arm not in (FULL, PLAIN) and all(tier.arm != arm for tier in derived.tiers)


def _policy(derived: Derived) -> str:
    *bounded, last = derived.tiers
    if not bounded:
        return f"the policy: {_steps(last.arm)} at any load"
    parts = [f"{_steps(tier.arm)} up to {tier.max_batch}" for tier in bounded]
    margin, dwell = derived.policy["margin"], derived.policy["dwell"]
    return f"the policy: {', '.join(parts)}, {_steps(last.arm)} above (margin {margin}, dwell {dwell})"


def _steps(arm: str) -> str:
    count = arms.steps(arm)
    return {FULL: "all draft steps", 0: "no speculation", 1: "1 draft step"}.get(count, f"{count} draft steps")
