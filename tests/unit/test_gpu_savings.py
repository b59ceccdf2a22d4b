"""The worth of savings: which arms take turns, and what each is compared with."""

import ast
from pathlib import Path

import pytest

from blackwell.bench.records import Measurement, Record

PROBE = Path(__file__).parents[1] / "patches" / "probe" / "sitecustomize.py"


@pytest.fixture(scope="module")
def savings(load):
    """The module, found as ``run.py`` finds it."""
    load("tests/gpu/run.py")
    return __import__("savings")


def test_the_probe_can_take_out_what_the_arms_name(savings):
    (costs,) = [line for line in PROBE.read_text().splitlines() if line.startswith("COSTS = ")]
    known = ast.literal_eval(costs.removeprefix("COSTS = "))
    assert [arm.saving for arm in savings.ARMS.values() if arm.saving] == list(known)


def measured(tokens):
    return Measurement((0.0, 1.0), [], [Record(0, 0.0, 1.0, tokens, 0, aborted=False)])


def test_the_arms_take_turns_after_a_warm_up_of_each(savings):
    asked = []

    def measure(arm, clients, repeat, length):
        asked.append((arm, clients, repeat, length == savings.WARM_UP))
        return measured(100 * repeat)

    found = savings.speeds(measure)
    each = len(savings.ARMS) * len(savings.LEVELS)
    assert [warm for *_, warm in asked] == [True] * each + [False] * 3 * each
    assert {repeat for *_, repeat, warm in asked if warm} == {1}
    at = [
        [arm for arm, clients, turn, warm in asked if (clients, turn, warm) == (10, repeat, False)] for repeat in (1, 2)
    ]
    assert sorted(at[0]) == sorted(at[1]) == sorted(savings.ARMS)
    assert at[0] != at[1]
    assert found["plain"] == {level: [100.0, 200.0, 300.0] for level in savings.LEVELS}


def test_the_window_is_as_long_as_the_warm_up_said(savings):
    lengths = []

    def measure(*point):
        lengths.append(point[-1])
        # 64 tokens in a second: an answer of 128 takes two.
        return measured(64)

    savings.speeds(measure)
    assert {length.answers for length in lengths[len(savings.ARMS) * len(savings.LEVELS) :]} == {1}


def test_a_ratio_is_that_of_the_medians(savings):
    speeds = {arm: {1: [10.0, 20.0, 90.0]} for arm in savings.ARMS}
    speeds["base"][1] = [40.0, 40.0, 1.0]
    speeds["host-waits"][1] = [5.0, 5.0, 90.0]
    speeds["one-step"][1] = [80.0, 80.0, 80.0]
    ratios = savings.summary(speeds)["ratios"]
    assert ratios["plain"] == {"1": 0.5}
    assert ratios["host-waits"] == {"1": 0.25}
    assert ratios["eager-extend"] == {"1": 0.25}
    assert "base" not in ratios
