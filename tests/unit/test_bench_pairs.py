"""Which points belong together, and which have none to belong to."""

import math

import pytest
from curves import point

from blackwell.bench import pairs
from blackwell.bench.errors import BenchError


def gains(*rows):
    found = pairs.gains(rows, "full", "plain")
    return {level: [round(math.exp(gain), 9) for gain in at] for level, at in found.items()}


def test_a_pair_is_one_level_in_one_repeat():
    rows = [point("full", 4, 1, 200.0), point("full", 4, 2, 330.0), point("full", 8, 1, 90.0)]
    rows += [point("plain", 8, 1, 100.0), point("plain", 4, 2, 110.0), point("plain", 4, 1, 100.0)]
    assert gains(*rows, point("base", 4, 1, 1.0)) == {4: [2.0, 3.0], 8: [0.9]}


def test_a_point_that_is_marked_or_alone_does_not_count():
    rows = [point("full", 4, 1, 200.0), point("full", 4, 2, 300.0), point("full", 4, 3, 500.0, marked="why")]
    rows += [point("plain", 4, 1, 100.0), point("plain", 4, 3, 100.0), point("plain", 8, 1, 100.0)]
    assert gains(*rows) == {4: [2.0]}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [point("full", 4, 1, 200.0), point("full", 4, 1, 200.0)],
            "full at 4, repeat 1 is there twice: the rows must be of one run and one context length",
        ),
        ([point("plain", 4, 2, 0.0)], "plain at 4, repeat 2 gave 0.0 tokens/s, which is no speed to compare"),
    ],
)
def test_points_that_cannot_be_compared(rows, said):
    with pytest.raises(BenchError) as caught:
        gains(*rows)
    assert str(caught.value) == said
    gains(*(row | {"marked": "why"} for row in rows))


def test_why_a_level_has_no_pair():
    rows = [point("full", 1, 1, 2.0), point("plain", 1, 1, 1.0), point("full", 2, 1, 2.0), point("plain", 2, 2, 1.0)]
    rows += [point("full", 5, 1, 2.0, marked="why"), point("plain", 5, 1, 1.0), point("full", 9, 1, 2.0)]
    rows += [point("full", 7, 1, 2.0, marked="why"), point("plain", 7, 1, 1.0, marked="why"), point("base", 8, 1, 2.0)]
    assert pairs.unpaired(rows, "full", "plain") == {
        2: "at 2 clients full and plain have no repeat in common",
        5: "at 5 clients no point of full counts",
        7: "at 7 clients no point of full and none of plain counts",
        9: "at 9 clients no point of plain counts",
    }
