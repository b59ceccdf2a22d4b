"""Points as medians with intervals."""

import math
import statistics

import pytest

from blackwell.bench import bootstrap
from blackwell.report import numbers, series
from blackwell.report.layout import Value
from blackwell.report.series import Cell, Estimate
from blackwell.sweep.points import Key


def point(speed, *, marked=None, **more):
    return {"tok_s": speed, "running_batch": 1.0, "marked": marked, **more}


def points(arm, levels, settings="deployed", context=1024, **more):
    return {
        Key(settings, context, arm, c, repeat): point(speed, **more)
        for c, speeds in levels.items()
        for repeat, speed in enumerate(speeds, start=1)
    }


def cell(arm, c, speed, seconds):
    return Cell("deployed", 1024, arm, c, 1, 0, Estimate(speed), answer_s=Estimate(seconds))


def test_a_median_and_its_interval():
    speeds = {1: [100.0, 104.0, 99.0], 5: [400.0, 380.0, 396.0]}
    found = series.estimates(speeds)
    wanted = bootstrap.intervals([[math.log(speed) for speed in at] for at in speeds.values()])
    for (level, at), interval in zip(found.items(), wanted, strict=True):
        assert at.middle == statistics.median(speeds[level])
        assert (at.low, at.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))


def test_an_even_number_of_repeats_stays_within_its_interval():
    found = series.estimates({1: [100.0, 400.0]})[1]
    assert found.middle == 250.0
    assert found.low < found.middle < found.high


def test_one_repeat_has_no_interval():
    assert series.estimates({1: [100.0], 5: [400.0]}) == {1: Estimate(100.0), 5: Estimate(400.0)}


def test_a_level_of_one_repeat_takes_the_noise_of_its_neighbour():
    found = series.estimates({1: [100.0, 110.0], 5: [400.0]})
    assert found[5].low < 400.0 < found[5].high


def test_an_interval_that_says_nothing_is_no_row_of_digits():
    assert numbers.estimate(Estimate(27.7, 0.13, 5864.0)) == Value("27.7", "too noisy to tell")
    assert numbers.ratio(Estimate(1.0, 0.2, 19.9)) == Value("1.000", "0.200 to 19.900")


def test_nothing_has_no_estimate():
    assert series.estimates({1: []}) == {}


def test_what_is_marked_does_not_count():
    found = points("full", {1: [100.0, 102.0]}) | {Key("deployed", 1024, "full", 1, 3): point(900.0, marked="late")}
    (only,) = series.cells(found, "deployed", 1024)
    assert (only.counted, only.marked, only.tok_s.middle) == (2, 1, 101.0)
    assert series.marked(found) == [(Key("deployed", 1024, "full", 1, 3), "late")]


def test_a_level_at_which_nothing_counts_stays():
    (only,) = series.cells(points("full", {1: [100.0]}, marked="late"), "deployed", 1024)
    assert (only.counted, only.marked, only.tok_s, only.running_batch) == (0, 1, None, None)


def test_cells_are_of_one_setting_and_one_context():
    found = points("full", {1: [1.0]}) | points("full", {1: [2.0]}, "ring") | points("full", {1: [3.0]}, context=8)
    assert [one.tok_s.middle for one in series.cells(found, "ring", 1024)] == [2.0]
    assert [one.tok_s.middle for one in series.cells(found, "deployed", 8)] == [3.0]


def test_what_only_some_points_have_is_of_these():
    found = points("full", {1: [100.0]}, power_w=300.0) | {
        Key("deployed", 1024, "full", 1, 2): point(101.0, power_w=None),
        Key("deployed", 1024, "full", 1, 3): point(102.0),
    }
    (only,) = series.cells(found, "deployed", 1024)
    assert (only.power_w, only.acceptance) == (300.0, None)


def test_arms_go_from_no_draft_over_fewer_steps_to_the_policy():
    arms = ["dynamic", "plain", "reduced2", "baseline", "reduced10", "full", "reduced1"]
    wanted = ["baseline", "full", "reduced10", "reduced2", "reduced1", "plain", "dynamic"]
    assert sorted(arms, key=series.arm_order) == wanted


def test_the_front_has_what_no_other_cell_beats():
    made = [
        cell("full", 1, 100.0, 1.0),
        cell("plain", 1, 60.0, 2.0),  # slower for each and for all
        cell("full", 5, 300.0, 2.0),
        cell("plain", 5, 300.0, 2.5),  # as fast for all, slower for each
        cell("plain", 9, 400.0, 3.0),
        cell("full", 9, 350.0, 3.0),  # as fast for each, slower for all
    ]
    assert series.front(made) == {("full", 1), ("full", 5), ("plain", 9)}


def test_a_cell_without_an_answer_time_is_on_no_front():
    assert series.front([Cell("deployed", 1024, "full", 1, 1, 0, Estimate(100.0))]) == set()


def test_the_errors_of_a_ratio_add_up_as_squares():
    found = series.ratio(Estimate(200.0, 200.0 / 1.03, 200.0 * 1.03), Estimate(100.0, 100.0 / 1.04, 100.0 * 1.04))
    reach = math.sqrt(math.log(1.03) ** 2 + math.log(1.04) ** 2)
    assert found.middle == 2.0
    assert (found.low, found.high) == pytest.approx((2.0 * math.exp(-reach), 2.0 * math.exp(reach)))


def test_a_ratio_to_what_has_no_interval_has_none():
    assert series.ratio(Estimate(200.0, 190.0, 210.0), Estimate(100.0)) == Estimate(2.0)
    assert series.ratio(None, Estimate(100.0)) is None


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (Estimate(1.1, 1.01, 1.2), "faster"),
        (Estimate(0.9, 0.8, 0.99), "slower"),
        (Estimate(1.1, 0.99, 1.2), "no certain difference"),
        (Estimate(1.1), "no interval"),
        (None, "not comparable"),
    ],
)
def test_what_a_ratio_says_for_certain(found, said):
    assert series.verdict(found) == said
