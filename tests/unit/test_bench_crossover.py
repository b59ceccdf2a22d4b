"""The threshold, with answers known beforehand."""

import pytest

from blackwell.bench import crossover
from blackwell.bench.errors import BenchError


def rows(ratios, repeat=1):
    """Points at which ``full`` is so many times as fast as ``plain``, by level."""
    return [
        {"arm": arm, "c": level, "repeat": repeat, "tok_s": speed, "marked": None}
        for level, ratio in ratios.items()
        for arm, speed in (("full", 1000.0 * ratio), ("plain", 1000.0))
    ]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ({1: 2.0, 10: 1.5, 30: 0.7}, 17),  # ln 1.5 / (ln 1.5 + ln 1/0.7) = 0.532 of the way from 10 to 30: 17.9
        ({4: 2.0, 16: 0.5}, 7),  # half-way from 4 to 16 is 8, where there is no gain any more
        ({4: 2.0, 17: 0.5}, 8),
        ({10: 1.5, 30: 1.0}, 29),  # equal at 30
        ({10: 1.5, 30: 0.99999}, 29),
        ({10: 1.00001, 30: 0.5}, 10),
        ({1: 2.0, 2: 0.5}, 1),
        ({1: 0.9, 10: 0.8}, crossover.NEVER),
        ({1: 1.0, 10: 1.0}, crossover.NEVER),  # a tie is no win
        ({1: 2.0, 10: 1.1}, crossover.ALWAYS),
        ({10: 2.0}, crossover.ALWAYS),
        # Not monotonic: what the cut loses at worst decides.
        ({1: 1.5, 4: 0.5, 16: 1.05, 64: 0.5}, 1),
        ({4: 1.5, 16: 0.98, 64: 2.0, 256: 0.5}, 127),
        ({4: 0.98, 16: 2.0, 64: 0.5}, 31),
        ({4: 0.5, 16: 1.05, 64: 0.5}, crossover.NEVER),
        ({4: 1.5, 16: 0.98, 64: 2.0}, crossover.ALWAYS),
        # The worst loss is the same with each of the last two levels: the rest of the losses decides.
        ({4: 1.5, 16: 0.6, 64: 2.0, 128: 1.05, 256: 0.5}, 133),
    ],
)
def test_threshold(ratios, expected):
    assert crossover.threshold(rows(ratios)) == expected


def test_medians_decide_and_marked_points_do_not_count():
    found = rows({4: 2.0, 16: 0.5}, 1) + rows({4: 2.0, 16: 0.5}, 2) + rows({4: 0.1, 16: 9.0}, 3)
    assert crossover.threshold(found) == 7
    assert crossover.threshold([*rows({4: 2.0, 16: 0.5}), *(row | {"marked": "why"} for row in rows({16: 9.0}))]) == 7


def test_levels_that_one_arm_lacks_do_not_count():
    found = [row for row in rows({4: 2.0, 8: 0.1, 16: 0.5}) if (row["arm"], row["c"]) != ("plain", 8)]
    assert crossover.threshold(found) == 7


def test_other_arms():
    found = [row | {"arm": {"full": "full_stock", "plain": "base"}[row["arm"]]} for row in rows({4: 2.0, 16: 0.5})]
    assert crossover.threshold(found, "full_stock", "base") == 7
    with pytest.raises(BenchError, match=r"^there is no level at which both full and plain were measured$"):
        crossover.threshold(found)
