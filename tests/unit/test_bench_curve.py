"""Levels become batch sizes, and what cannot be compared says why."""

import math

import pytest
from curves import point, points

from blackwell.bench import batches, curve
from blackwell.bench.errors import BenchError


def nodes(rows):
    return curve.curve(rows, "full", "plain", batches.batches(rows, ("full", "plain")))


def left_out(rows):
    return curve.left_out(rows, "full", "plain", batches.batches(rows, ("full", "plain")))


def pair(level, full=200.0, plain=100.0, repeat=1, batch=None):
    return [point("full", level, repeat, full, batch), point("plain", level, repeat, plain, batch)]


def test_the_batch_of_a_level_is_what_the_points_that_count_saw():
    rows = [point("full", 30, repeat, 1.0, batch) for repeat, batch in ((1, 28), (2, 29.5), (3, 29))]
    rows += [point("plain", 30, 1, 1.0, 30), point("plain", 30, 2, 1.0, 2, marked="why"), point("base", 30, 1, 1.0, 3)]
    found = batches.batches(rows, ("full", "plain"))
    assert found == {30: batches.Batch(29.25, 28, 30, {"full": 29, "plain": 30})}
    assert found[30].spread == pytest.approx(2 / 29.25)


def test_a_batch_below_one_is_one_and_none_at_all_is_refused():
    assert batches.batches([point("full", 1, 1, 1.0, 0.5)], ("full",))[1].middle == 1
    with pytest.raises(BenchError, match=r"^full at 9, repeat 2 has no batch: the server counted no running request$"):
        batches.batches([point("full", 9, 2, 1.0, 0)], ("full",))


def test_nodes_rise_by_batch_and_have_the_ratio_of_their_pairs():
    rows = points({"full": {10: 1.5, 2: 2.0}}, batch=lambda level: 0.9 * level)
    assert [(node.batch, node.clients, node.spread) for node in nodes(rows)] == [(1.8, (2,), 0), (9, (10,), 0)]
    assert [math.exp(node.gain.middle) for node in nodes(rows)] == pytest.approx([2.0, 1.5])


def test_levels_that_a_full_server_runs_alike_are_one_node():
    rows = pair(50, 150.0) + pair(100, 200.0, batch=96.3) + pair(250, 300.0, batch=95.8)
    first, second = nodes(rows)
    assert (first.clients, second.clients, second.batch) == ((50,), (100, 250), pytest.approx(96.05))
    # Two pairs with ratios of 2 and 3.
    assert second.gain.middle == pytest.approx(math.log(6) / 2)


def test_a_node_is_where_its_batch_is_not_where_its_clients_are():
    rows = pair(50) + pair(50, repeat=2) + pair(100, batch=96) + pair(250, batch=90)
    assert [(node.clients, node.batch) for node in nodes(rows)] == [((50,), 50), ((250,), 90), ((100,), 96)]


def test_arms_that_a_limit_keeps_apart_are_not_compared():
    rows = points({"full": {10: 2.0, 100: 0.4}})
    held = [row | {"running_batch": 48} if (row["arm"], row["c"]) == ("full", 100) else row for row in rows]
    assert [node.clients for node in nodes(held)] == [(10,)]
    assert left_out(held) == [
        "at 100 clients full ran 48 requests at once and plain 100: a limit of the server differs, not the speed"
    ]
    near = [row | {"running_batch": 80} if (row["arm"], row["c"]) == ("full", 100) else row for row in rows]
    assert [node.clients for node in nodes(near)] == [(10,), (100,)]
    assert left_out(near) == []


def test_what_is_left_out_says_why():
    rows = [point("full", 30, 1, 9.0), *pair(10), *pair(10, repeat=2), point("full", 20, 1, 9.0, 9.0, marked="why")]
    assert [node.clients for node in nodes(rows)] == [(10,)]
    assert left_out(rows) == [
        "at 20 clients no point of full and none of plain counts",
        "at 30 clients no point of plain counts",
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "full and plain cannot be compared: neither was measured at any level"),
        (
            [point("full", 5, 1, 9.0), point("full", 9, 1, 9.0), point("plain", 9, 2, 9.0)],
            (
                "full and plain cannot be compared: at 5 clients no point of plain counts; at 9 clients full and plain "
                "have no repeat in common"
            ),
        ),
        (
            pair(1) + pair(30, repeat=2),
            "full and plain have one pair only at 1, 30 clients: how far points scatter takes a second repeat",
        ),
    ],
)
def test_points_that_are_no_curve(rows, said):
    with pytest.raises(BenchError) as caught:
        nodes(rows)
    assert str(caught.value) == said
