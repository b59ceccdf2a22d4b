"""What each saving of the patched server is worth: its speed with the saving taken out, beside that with all of them.

And how fast it decodes plainly beside an unpatched server without a draft.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import scenarios
from scenarios import Place, Sizes
from server import Server, side_by_side
from speed_plan import WARM_UP, Plan
from speed_run import asked

from blackwell.bench import load, window
from blackwell.bench.order import interleaved
from blackwell.bench.records import Measurement

Measure = Callable[[str, int, int, load.Length], Measurement]
"""Loads an arm: its name, clients, repeat, and how long."""


@dataclass(frozen=True)
class Arm:
    """A setting of the patched server, where ``steps`` are forced, or the one without a draft: None.

    ``beside``: the arm that it is compared with. ``saving``: what the probe takes out, or nothing.
    """

    beside: str
    steps: int | None
    saving: str = ""


ARMS: Mapping[str, Arm] = {
    "base": Arm("base", None),
    "plain": Arm("base", 0),
    "one-step": Arm("base", 1),
    **{
        saving: Arm("plain", 0, saving)
        for saving in ("write-each-round", "draft-prefill", "host-waits", "eager-rounds")
    },
    "eager-extend": Arm("one-step", 1, "eager-extend"),
}

LEVELS = (1, 10, 100)
MOST_REQUESTS = 128
KV_TOKENS = 65536
"""Both for the largest of the levels."""

PLAN = Plan(tuple(ARMS), LEVELS, repeats=3, window_s=2.0, window_lives=1.0)


def savings(place: Place, trees: Mapping[str, str]) -> dict:
    """Speeds of all arms (see `summary`), the 8B model twice on the same cards.

    ``trees`` gives for ``stock`` and ``patched`` the PYTHONPATH that finds SGLang.
    """
    steer = place.out / "steer-savings"
    steer.mkdir()
    base, patched = _servers(place, trees, steer)

    def measure(name: str, clients: int, repeat: int, length: load.Length) -> Measurement:
        arm = ARMS[name]
        if arm.steps is not None:
            patched.change(speculative_force_steps=arm.steps)
        url = base.url if arm.steps is None else patched.url
        with _without(steer, arm.saving):
            return load.measure(url, clients, asked(PLAN.workload, clients, repeat), length)

    with side_by_side(base, patched):
        return summary(speeds(measure))


def _servers(place: Place, trees: Mapping[str, str], steer: Path) -> tuple[Server, Server]:
    # Each arm forces its own tier: the policy only has them captured.
    policy = ("--speculative-load-policy", scenarios.policy(8, 16))
    probed = {**scenarios.SIMULATED, **scenarios.probed(place, steer, trees["patched"])}
    sizes = Sizes(MOST_REQUESTS, KV_TOKENS)
    return scenarios.never_and_speculating(place, "savings", trees["stock"], sizes, policy=policy, environment=probed)


@contextmanager
def _without(steer: Path, saving: str) -> Iterator[None]:
    if not saving:
        yield
        return
    (steer / saving).touch()
    try:
        yield
    finally:
        (steer / saving).unlink()


def speeds(measure: Measure) -> dict[str, dict[int, list[float]]]:
    """Output tokens/s of each repeat, by arm and level; the arms take turns, after a warm-up of each at each level."""
    lives: dict[tuple[str, int], float] = {}
    found: dict[str, dict[int, list[float]]] = {arm: {level: [] for level in LEVELS} for arm in ARMS}
    for level in LEVELS:
        for arm in ARMS:
            warm = measure(arm, level, 1, WARM_UP)
            lives[arm, level] = window.life(warm.records, PLAN.workload.new_tokens)
    for name in interleaved(PLAN.arms, PLAN.levels, range(1, PLAN.repeats + 1)):
        measured = measure(name.arm, name.c, name.repeat, PLAN.window(lives[name.arm, name.c]))
        found[name.arm][name.c].append(round(window.tokens_per_second(measured), 1))
    return found


def summary(found: Mapping[str, Mapping[int, list[float]]]) -> dict:
    """``tok_s`` of each repeat by arm and level, and ``ratios``: the median over that of the arm that it is beside."""
    medians = {arm: {level: statistics.median(each) for level, each in levels.items()} for arm, levels in found.items()}
    return {
        "tok_s": {arm: {str(level): each for level, each in levels.items()} for arm, levels in found.items()},
        "ratios": {
            name: {str(level): round(speed / medians[ARMS[name].beside][level], 3) for level, speed in levels.items()}
            for name, levels in medians.items()
            if ARMS[name].beside != name
        },
    }
