"""Whether a policy holds, by points that are made up."""

import pytest

from blackwell.sweep import proof
from blackwell.sweep.plan import Plan
from blackwell.sweep.points import Key

PLAN = Plan("one", "box", 3, ("full", "reduced1", "plain", "dynamic"), levels=(1, 10, 70), contexts=(128,), repeats=3)


def point(tok_s, batch=1, marked=None):
    return {"tok_s": tok_s, "running_batch": batch, "marked": marked}


def static(speeds):
    """Points of three repeats; ``speeds``: by level, of full, reduced1 and plain."""
    return {
        Key("deployed", 128, arm, c, repeat): point(tok_s, c)
        for c, of in speeds.items()
        for arm, tok_s in zip(("full", "reduced1", "plain"), of, strict=True)
        for repeat in (1, 2, 3)
    }


def proving(c, best, pairs, first=4):
    found = {}
    for repeat, (dynamic, fixed) in enumerate(pairs, start=first):
        found[Key("deployed", 128, "dynamic", c, repeat)] = point(dynamic, c)
        found[Key("deployed", 128, best, c, repeat)] = point(fixed, c)
    return found


SPEEDS = {1: (200, 150, 100), 10: (900, 1000, 800), 70: (1000, 1200, 2000)}


def test_the_better_static_arm_is_taken_at_each_level():
    assert proof.best(PLAN, static(SPEEDS), "deployed", 128) == {1: "full", 10: "reduced1", 70: "plain"}


def test_a_tie_goes_to_fewer_steps():
    assert proof.best(PLAN, static({1: (100, 100, 90), 10: (50, 100, 100)}), "deployed", 128) == {
        1: "reduced1",
        10: "plain",
    }


def test_points_of_the_proof_do_not_choose_the_arm():
    points = static({1: (200, 150, 100)}) | proving(1, "plain", [(100, 900)] * 3)
    assert proof.best(PLAN, points, "deployed", 128) == {1: "full"}


def test_a_level_holds_by_the_median_of_its_pairs():
    points = static(SPEEDS) | proving(1, "full", [(199, 200), (150, 200), (201, 200)])
    points |= proving(10, "reduced1", [(950, 1000), (960, 1000), (955, 1000)])
    one, ten, seventy = proof.levels(PLAN, points, "deployed", 128)
    assert (one.ok, one.ratio, one.dynamic, one.static) == (True, 0.995, 199, 200)
    assert one.low < one.ratio < one.high
    assert (ten.ok, ten.best, ten.ratio) == (False, "reduced1", 0.955)
    assert (seventy.ok, seventy.why) == (None, "dynamic and plain have no pair of points that counts")
    assert proof.verdict(PLAN, [one, ten, seventy]) == (
        "the policy gives 0.955 of reduced1 at 10 clients (128 tokens), and has to give 0.98"
    )
    assert proof.verdict(PLAN, [one, seventy]) == ""
    assert proof.verdict(PLAN, [seventy]) == "no level of the proof has points that count"


def test_noise_is_measured_again_and_a_certain_loss_is_not():
    noisy = proving(1, "full", [(180, 200), (194, 200), (220, 200)])
    certain = proving(10, "reduced1", [(900, 1000), (901, 1000), (902, 1000)])
    found = proof.levels(PLAN, static(SPEEDS) | noisy, "deployed", 128)
    assert proof.open_levels(PLAN, found) == [1]
    found = proof.levels(PLAN, static(SPEEDS) | certain, "deployed", 128)
    assert [level.ok for level in found] == [None, False, None]
    assert proof.open_levels(PLAN, found) == []


def test_a_marked_point_is_no_pair():
    points = static({1: (200, 150, 100)}) | proving(1, "full", [(100, 200), (200, 200), (200, 200)])
    points[Key("deployed", 128, "dynamic", 1, 4)] = point(100, 1, "over-saturated")
    level = proof.levels(PLAN, points, "deployed", 128)[0]
    assert level.ratio == pytest.approx(1.0)


def test_a_level_without_any_static_point_says_so():
    points = static({1: (200, 150, 100)})
    points |= {key: point(0.0, 0, "the server ended") for key in static({70: (1, 1, 1)})}
    assert [level.why for level in proof.levels(PLAN, points, "deployed", 128)][1:] == [
        "no static arm has a point there that counts"
    ] * 2


def test_one_pair_has_no_interval():
    points = static({1: (200, 150, 100)}) | proving(1, "full", [(190, 200)])
    level = proof.levels(PLAN, points, "deployed", 128)[0]
    assert (level.ok, level.low, level.high) == (False, None, None)
    assert proof.open_levels(PLAN, [level]) == []
