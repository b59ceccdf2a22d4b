"""Intervals of medians: how often they have the truth in them, and what they make of few points."""

import random

import pytest

from blackwell.bench.bootstrap import Interval, intervals


def drawn(seed, counts, spread=0.05):
    rng = random.Random(f"sample {seed}")
    return [[rng.gauss(level / 10, spread) for _ in range(count)] for level, count in enumerate(counts)]


def covered(counts, runs=100, spread=0.05):
    """The share of intervals that have the truth in them."""
    hits = [
        interval.low <= level / 10 <= interval.high
        for seed in range(runs)
        for level, interval in enumerate(intervals(drawn(seed, counts, spread)))
    ]
    return sum(hits) / len(hits)


@pytest.mark.parametrize("counts", [[3] * 6, [2] * 6, [5] * 4, [3, 1, 3, 1, 3], [3], [2], [9]])
def test_19_of_20_intervals_have_the_truth_in_them(counts):
    assert 0.93 <= covered(counts) <= 0.995


def test_intervals_are_not_wider_than_they_must_be():
    reach = [interval.high - interval.middle for seed in range(20) for interval in intervals(drawn(seed, [3] * 6))]
    # A median of 3 has a standard error of 0.67 of the noise, of which 1.96 are reached in 95 of 100 cases.
    assert 1.0 < sum(reach) / len(reach) / (1.96 * 0.67 * 0.05) < 1.6


def test_the_same_points_give_the_same_interval():
    assert intervals(drawn(1, [3, 3])) == intervals(drawn(1, [3, 3]))


def test_points_that_agree_leave_no_doubt():
    assert intervals([[0.5, 0.5], [0.25]]) == [Interval(0.5, 0.5, 0.5), Interval(0.25, 0.25, 0.25)]


def test_luck_at_one_level_is_measured_by_its_neighbours():
    by_luck = intervals([[0.5, 0.5], [0.3, 0.5], [0.0, 0.2]])[0]
    assert by_luck.high - by_luck.low > 0.1
    # The next but one says nothing of it.
    far = intervals([[0.5, 0.5], [0.3, 0.3], [0.0, 0.2]])
    assert far[0].high == far[0].low
    assert far[1].high > far[1].low


def test_a_level_of_one_pair_has_the_noise_of_the_nearest_that_have_more():
    lone, _, noisy = intervals([[0.5], [0.4], [0.0, 0.2]])
    assert lone.middle == 0.5
    assert lone.high - lone.low > noisy.high - noisy.low > 0.1


def test_one_value_at_every_level_has_no_interval():
    with pytest.raises(ValueError, match="no sample has two values"):
        intervals([[0.5], [0.4]])
