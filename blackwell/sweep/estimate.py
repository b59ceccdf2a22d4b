"""How long a sweep may take."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from blackwell.bench import known_generator
from blackwell.bench.length import Length, whole_answers

from . import cross_check
from .plan import FULL, Plan
from .points import BASELINE, DYNAMIC, Key

POINT_SECONDS = 1.0
"""Of a point, what is neither ramp nor window: changing the arm, emptying the cache, aborting, writing."""

WARM_UP_PASSES = 2
"""Passes of a warm-up at least; it ends when two agree."""

BUSY_CLIENTS = 60
"""A guess: with so many clients an answer takes twice as long as with one (8B on an H200: docs/performance.md)."""

Life = Callable[[Key], float]
"""Seconds that an answer takes at a point."""


@dataclass(frozen=True)
class Guess:
    """``start_s``: seconds until a server is ready. ``token_s``: seconds for each output token of one client."""

    start_s: float
    token_s: float

    def life(self, plan: Plan, key: Key) -> float:
        """Seconds that an answer may take."""
        return plan.new_tokens * self.token_s * (1 + key.c / BUSY_CLIENTS)


def window(plan: Plan, life: float) -> Length:
    """How long a window is open: whole answers of every client, at least as long as the plan says."""
    return whole_answers(max(plan.window_s, plan.window_lives * life), life)


def point_seconds(plan: Plan, life: float) -> float:
    """Seconds that a point takes, with the answer of every client before its window."""
    return (1 + window(plan, life).answers) * life + POINT_SECONDS


def warm_up_seconds(life: float) -> float:
    """Seconds that the warm-up of an arm at a level and context takes at least."""
    return WARM_UP_PASSES * (2 * life + POINT_SECONDS)


def points_seconds(plan: Plan, keys: Iterable[Key], life: Life, warm: frozenset[tuple] = frozenset()) -> float:
    """Seconds that points take, with the warm-up of what is not in ``warm``: (settings, context, arm, level)."""
    keys = list(keys)
    cold = {place(key): key for key in keys if place(key) not in warm}
    return sum(point_seconds(plan, life(key)) for key in keys) + sum(
        warm_up_seconds(life(key)) for key in cold.values()
    )


def place(key: Key) -> tuple:
    """What has to be warm before a point of it counts."""
    return (key.settings, key.context, key.arm, key.c)


def servers(plan: Plan, missing: Iterable[Key]) -> list[tuple[str, bool]]:
    """The servers that missing points need, in order: settings, and whether it speculates."""
    needed = {(key.settings, key.arm != BASELINE) for key in missing}
    return [
        (settings.name, speculates)
        for settings in plan.settings
        for speculates in (False, True)
        if (settings.name, speculates) in needed
    ]


def whole(plan: Plan, missing: Iterable[Key], guess: Guess) -> float:
    """Seconds that a sweep takes from now on."""
    missing = list(missing)
    needed = servers(plan, missing)
    checked = [
        key
        for name, speculates in needed
        for key in cross_check.keys(plan, name, cross_check.arm_of(speculates=speculates))
    ]
    checks = sum(known_generator.ANSWERS * guess.life(plan, key) for key in checked)
    return len(needed) * guess.start_s + checks + points_seconds(plan, missing, lambda key: guess.life(plan, key))


def expected(plan: Plan) -> list[Key]:
    """Every point of a plan in order; ``full`` stands for the static arm of a proof, which is not known yet."""
    found: list[Key] = []
    for settings in plan.settings:
        found += [*plan.baseline(settings.name), *plan.static(settings.name)]
        for context in plan.contexts:
            found += plan.proof(settings.name, context, dict.fromkeys(plan.levels, FULL))
    return found


def missing(plan: Plan, known: Collection[Key]) -> list[Key]:
    """The expected points that are not there.

    A point of a proof is there if its level was measured in that repeat with any static arm.
    """
    proven = {replace(key, arm=FULL) for key in known if key.repeat > plan.repeats and key.arm != DYNAMIC}
    return [key for key in expected(plan) if key not in known and key not in proven]
