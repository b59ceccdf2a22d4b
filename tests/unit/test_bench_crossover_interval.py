"""The crossover as an interval, on curves whose crossing is known."""

import math

import pytest
from curves import node, points

from blackwell.bench import batches, crossover, curve
from blackwell.bench.crossover import ALWAYS, NEVER, Crossover, Range


def exact(ratios):
    return [node(batch, ratio, ratio, ratio) for batch, ratio in ratios.items()]


def found(nodes):
    """Point, certain, lost, and the unclear ranges, rounded."""
    at = crossover.find(nodes)
    return at.point, at.certain, at.lost, [(round(r.low, 3), round(r.high, 3)) for r in at.unclear]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ({4: 2.0, 16: 0.5}, (7, 7, 9, [(8, 8)])),
        ({1: 2.0, 10: 1.5, 30: 0.7}, (17, 17, 18, [(17.94, 17.94)])),
        ({3.8: 2.0, 15.2: 0.5}, (7, 7, 8, [(7.6, 7.6)])),
        ({10: 1.5, 30: 1.0}, (29, 29, None, [(30, 30)])),  # equal at the last
        ({1: 0.9, 10: 0.8}, (NEVER, 0, 1, [])),
        ({1: 1.0, 10: 0.8}, (NEVER, 0, 2, [(1, 1)])),
        ({1: 1.0, 10: 1.0}, (NEVER, 0, None, [(1, 10)])),
        ({1: 2.0, 10: 1.1}, (ALWAYS, 10, None, [])),
        ({10: 2.0}, (ALWAYS, 10, None, [])),
        ({10: 0.5}, (NEVER, 0, 10, [])),
        ({10: 1.0}, (NEVER, 0, None, [(10, 10)])),
    ],
)
def test_a_curve_without_noise(ratios, expected):
    assert found(exact(ratios)) == expected


def test_the_interval_is_where_the_ratio_may_be_one():
    # The lower end crosses 1 half-way from 4 to 16, the median and the upper end further on.
    nodes = [node(4, 2.0, 4.0, 8.0), node(16, 0.5, 1.0, 2.0), node(64, 0.125, 0.25, 0.5)]
    assert found(nodes) == (15, 7, 33, [(8, 32)])


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node(4, 0.5, 1.5, 4.0), node(16, 0.25, 0.5, 0.9)], (6, 0, 15, [(4, 14.508)])),  # not certain from the first
        ([node(4, 2.0, 3.0, 4.0), node(16, 0.5, 0.8, 1.2)], (12, 7, None, [(8, 16)])),  # nor up to the last
        ([node(4, 0.5, 0.9, 2.0), node(16, 0.2, 0.25, 0.5)], (NEVER, 0, 9, [(4, 8)])),
        ([node(4, 2.0, 3.0, 4.0), node(16, 0.5, 1.5, 4.0)], (ALWAYS, 7, None, [(8, 16)])),
        ([node(4, 0.5, 1.5, 2.0), node(16, 0.5, 1.5, 4.0)], (ALWAYS, 0, None, [(4, 16)])),
        ([node(4, 0.5, 0.9, 2.0)], (NEVER, 0, None, [(4, 4)])),
    ],
)
def test_an_interval_that_is_not_closed(nodes, expected):
    assert found(nodes) == expected


def test_of_several_crossings_the_one_with_the_smallest_worst_loss():
    early = crossover.find(exact({1: 1.5, 4: 0.5, 16: 1.05, 64: 0.5}))
    assert (early.point, early.certain, early.lost, early.against) == (1, 1, 2, (16,))
    late = crossover.find(exact({4: 1.5, 16: 0.98, 64: 2.0, 256: 0.5}))
    assert (late.point, late.certain, late.lost, late.against) == (127, 127, 129, (16,))
    assert [round(at.low, 1) for at in late.unclear] == [15.0, 16.6, 128.0]
    none = crossover.find(exact({4: 0.5, 16: 1.05, 64: 0.5}))
    assert (none.point, none.certain, none.lost, none.against) == (NEVER, 0, 4, (16,))


def test_a_doubt_beside_the_crossover_is_not_part_of_it():
    nodes = [node(4, 1.4, 1.5, 1.6), node(16, 0.9, 0.98, 1.1), node(64, 1.9, 2.0, 2.1), node(256, 0.4, 0.5, 0.6)]
    at = crossover.find(nodes)
    assert (at.point, at.against) == (127, ())
    beside, around = at.unclear
    assert beside.holds(16)
    assert not beside.holds(64)
    assert at.certain == math.ceil(around.low) - 1
    assert at.lost == math.floor(around.high) + 1


def test_where_a_doubt_ends_with_the_other_winner_nothing_is_certain_there():
    # Certainly slower at 4, perhaps faster at 16, certainly faster at 64, slower at 256 by less than it was faster.
    nodes = [node(4, 0.94, 0.95, 0.96), node(16, 0.9, 1.2, 1.5), node(64, 0.8, 0.9, 1.1), node(256, 1.01, 1.02, 1.03)]
    at = crossover.find(nodes)
    assert (at.certain, at.lost) == (0, None)
    assert at.against == (4, 256)


TRUTH = 40
LEVELS = (1, 2, 5, 10, 30, 70, 100, 250)


def drawn(seed, noise, repeats):
    """A curve that crosses at a batch of 40, as it is measured once."""
    ratios = {level: 2.0 ** (1 - math.log(level) / math.log(TRUTH)) for level in LEVELS}
    rows = points({"full": ratios}, repeats, noise, seed)
    return curve.curve(rows, "full", "plain", batches.batches(rows, ("full", "plain")))


@pytest.mark.parametrize(("noise", "repeats", "widest"), [(0.02, 3, 1.9), (0.05, 3, 3.8), (0.05, 5, 2.6), (0.02, 2, 2)])
def test_nearly_all_intervals_have_the_known_crossing_in_them(noise, repeats, widest):
    runs, held, widths = 60, 0, []
    for seed in range(runs):
        at = crossover.find(drawn(seed, noise, repeats))
        # What is certain below, and certainly lost from, shuts the truth in.
        held += at.certain < TRUTH and (at.lost is None or at.lost > TRUTH)
        around = next(r for r in at.unclear if r.holds(at.point + 0.5) or r.holds(at.point) or r.holds(at.point + 1))
        widths.append(around.high / around.low)
    assert held >= 0.95 * runs
    assert sorted(widths)[runs // 2] < widest


def test_it_says_what_it_is():
    at = crossover.find(exact({4: 2.0, 16: 0.5}))
    assert at == Crossover(7, 7, 9, (Range(pytest.approx(8), pytest.approx(8)),), ())
