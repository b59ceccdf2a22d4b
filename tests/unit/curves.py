"""Made-up points of servers whose speeds are known."""

import math
import random

from blackwell.bench.bootstrap import Interval
from blackwell.bench.curve import Node


def point(arm, level, repeat, speed, batch=None, *, marked=None):
    return {
        "arm": arm,
        "c": level,
        "repeat": repeat,
        "tok_s": speed,
        "running_batch": level if batch is None else batch,
        "marked": marked,
    }


def points(ratios, repeats=3, noise=0.0, seed=0, batch=float):
    """Points of a plain server and of arms so many times as fast, by level; speeds are off by a share of ``noise``."""
    rng = random.Random(f"noise {seed}")
    return [
        point(arm, level, repeat, 1000.0 * ratio * math.exp(rng.gauss(0, noise)), batch(level))
        for arm, levels in ({"plain": dict.fromkeys(ratios["full"], 1.0)} | ratios).items()
        for level, ratio in levels.items()
        for repeat in range(1, repeats + 1)
    ]


def node(batch, low, middle, high, spread=0.0):
    """A node by its ratios."""
    return Node(batch, (batch,), Interval(math.log(low), math.log(middle), math.log(high)), spread)
