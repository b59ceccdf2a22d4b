"""The order of arms: none gains from its place."""

import itertools
from collections import Counter

import pytest

from blackwell.bench.order import balanced, interleaved
from blackwell.bench.points import ARMS

LEVELS = (1, 2, 5, 10, 30, 70, 100, 250)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_each_arm_comes_first_and_after_each_other_one_equally_often(count):
    orders = balanced(ARMS[:count])
    assert all(sorted(order) == sorted(ARMS[:count]) for order in orders)
    assert len(set(Counter(order[0] for order in orders).values())) == 1
    pairs = Counter(pair for order in orders for pair in itertools.pairwise(order))
    assert len(pairs) == count * (count - 1)
    assert len(set(pairs.values())) == 1


def test_one_arm():
    assert set(map(tuple, balanced(["base"]))) == {("base",)}


def test_every_point_once_and_level_by_level():
    names = list(interleaved(ARMS, LEVELS, (1, 2, 3)))
    assert len(set(names)) == len(names) == 7 * 8 * 3
    assert [name.repeat for name in names] == sorted(name.repeat for name in names)
    assert [name.c for name in names[:56]] == [level for level in LEVELS for _ in ARMS]


@pytest.mark.parametrize("arms", [ARMS[:count] for count in range(2, 8)])
def test_at_one_level_neither_the_first_arm_nor_what_follows_what_stays_the_same(arms):
    names = list(interleaved(arms, LEVELS, (1, 2, 3)))
    for level in LEVELS:
        orders = [[name.arm for name in names if (name.c, name.repeat) == (level, repeat)] for repeat in (1, 2, 3)]
        assert len({order[0] for order in orders}) == min(3, len(arms))
        after = [dict(itertools.pairwise(order)) for order in orders]
        assert all(len({follower.get(arm) for follower in after}) > 1 for arm in arms)
