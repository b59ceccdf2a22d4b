"""What a run says, in sentences."""

from dataclasses import replace

import made_runs
import pytest

from blackwell.bench.fingerprint import made
from blackwell.report import answer, groups
from blackwell.report.run_files import Run
from blackwell.sweep.points import Key

FOUND = {key: at for key, at in made_runs.points().items() if not key.arm.startswith("reduced")}
PLAN = made_runs.PLAN | {"arms": ["baseline", "full", "plain", "dynamic"]}
DERIVED = made_runs.derived(FOUND)


def run(found=FOUND, plan=None, **files):
    return Run(None, PLAN | (plan or {}), "d1", made({}), found, **files)


def lead(*arguments, **files):
    one = run(*arguments, **files)
    return answer.lead(one, groups.groups(one))


def level(c, ratio, *, ok, low=None, high=None, best="full", **more):
    low, high = (ratio, ratio) if ok and low is None else (low, high)
    speeds = {"dynamic": 100.0 * (ratio or 1), "static": 100.0}
    return {"context": 256, "c": c, "best": best, **speeds, "ratio": ratio, "low": low, "high": high, "ok": ok, **more}


def proven(*levels, margin=0.98):
    one = run(policy=DERIVED, proof={"margin": margin, "levels": list(levels)})
    return answer.proof(one, groups.groups(one)[0])


def test_the_answer_of_a_whole_run():
    proof = {"margin": 0.98, "levels": [level(1, 1.01, ok=True), level(70, 0.99, ok=True)]}
    assert lead(policy=DERIVED, proof=proof) == {
        "": [
            answer.sentence(DERIVED["explained"][0]),
            "The policy: all draft steps up to 23, no speculation above (margin 5 requests, dwell 64 rounds).",
            "The policy reaches 0.98 of the better static arm at all 2 levels.",
        ]
    }


def test_a_policy_that_is_not_derived_yet():
    assert lead()[""][1:] == [
        (
            "The run has no policy yet; its points so far would give all draft steps up to 23, no speculation above "
            "(margin 5 requests, dwell 64 rounds)."
        ),
        "That the policy reaches 0.98 of the better static arm is not proven yet.",
    ]


def test_a_run_without_the_arm_that_proves():
    assert lead(FOUND, {"arms": ["full", "plain"]})[""][2].endswith("is not proven: the run has no arm dynamic.")


def test_one_repeat_tells_a_median_and_no_more():
    found = {key: at for key, at in FOUND.items() if key.repeat == 1 and key.arm in ("full", "plain")}
    told = lead(found, {"repeats": 1, "arms": ["full", "plain"]})[""]
    assert told[0].startswith("By the medians alone speculation pays up to ")
    assert "how far points scatter takes a second repeat" in told[0]
    assert told[1] == "The run has no policy."


@pytest.mark.parametrize(
    ("full", "said"),
    [
        (2.0, "By the medians alone speculation pays at every level measured"),
        (0.5, "By the medians alone speculation never pays"),
    ],
)
def test_a_curve_that_does_not_cross(full, said):
    speeds = {"full": full, "plain": 1.0}
    found = {
        Key("deployed", 256, arm, 5, 1): FOUND[Key("deployed", 256, arm, 5, 1)] | {"tok_s": speeds[arm]}
        for arm in speeds
    }
    assert lead(found)[""][0].startswith(said)


def test_a_run_that_has_no_speculation_yet():
    found = {key: at for key, at in FOUND.items() if key.arm == "baseline"}
    assert lead(found)[""][0] == (
        "Where speculation stops to pay is not known: full was measured at no level: a policy needs full and plain."
    )


def test_levels_that_miss_the_margin():
    told = proven(
        level(1, 1.0, ok=True),
        level(2, 0.972, low=0.8, high=1.2, ok=False),
        level(70, 0.812, low=0.78, high=0.85, best="plain", ok=False),
    )
    assert told == (
        "the policy reaches 0.98 of the better static arm at 1 of 3 levels; it does not at 2 (0.972 of full) and "
        "70 (0.812 of plain) clients, which is certain at 70"
    )


def test_levels_that_miss_it_for_certain_and_by_noise():
    assert proven(level(2, 0.9, low=0.88, high=0.92, ok=False)).endswith("it does not at 2 (0.900 of full) clients")
    assert proven(level(2, 0.9, low=0.7, high=1.1, ok=False)).endswith(
        "which is certain at none of them: the intervals reach 0.98"
    )
    assert proven(level(2, 0.9, ok=False)).endswith("which is certain at none of them: the intervals reach 0.98")


def test_levels_that_hold_for_certain_and_by_luck():
    sure, lucky = level(1, 1.0, low=0.99, high=1.01, ok=True), level(2, 1.5, low=0.1, high=20.0, ok=True)
    assert proven(sure, lucky).endswith("at all 2 levels, which is certain at 1 of them")
    assert proven(lucky).endswith("at the one level, 2 clients, which is certain at none of them")


def test_a_level_without_points_that_count():
    told = proven(level(1, 1.0, ok=True), level(2, None, ok=None))
    assert told == ("the policy reaches 0.98 of the better static arm at 1 of 2 levels; nothing counts at 2 clients")


def test_the_margin_is_that_of_the_proof():
    assert proven(level(1, 0.96, ok=True), margin=0.95) == (
        "the policy reaches 0.95 of the better static arm at the one level, 1 clients"
    )


@pytest.mark.parametrize(
    ("exit_", "said"),
    [
        (None, "The run is not finished: this is what its first 120 points say."),
        (
            {"status": "failed", "reason": "the server ended", "at": 0.0},
            "The run failed at 1970-01-01 00:00:00 UTC, with 120 points: the server ended.",
        ),
        (
            {"status": "stopped", "reason": "", "at": 0.0},
            "The run was stopped at 1970-01-01 00:00:00 UTC, with 120 points.",
        ),
        ({"status": "done", "reason": "", "at": 0.0}, "The run was done at 1970-01-01 00:00:00 UTC, with 120 points."),
    ],
)
def test_how_a_run_ended(exit_, said):
    assert answer.state(run(exit=exit_)) == said


def test_a_run_that_has_everything_misses_nothing():
    assert answer.missing(run()) == []


def test_what_is_missing():
    found = {
        key: at for key, at in FOUND.items() if key.arm not in ("dynamic", "plain") and (key.c, key.repeat) != (5, 2)
    }
    # The proof measured full at 5 clients more often than the plan has repeats.
    assert answer.missing(run(found)) == [
        "baseline: 2 of 3 points at 5 clients",
        "plain and dynamic: not measured yet",
    ]


def test_what_is_missing_of_several_contexts():
    assert answer.missing(run(plan={"contexts": [256, 1024], "arms": ["full"]})) == [
        "1024 tokens: full: not measured yet"
    ]


def test_a_policy_that_the_points_do_not_give():
    other = DERIVED | {"policy": {"version": 1, "tiers": [{"steps": 0}]}}
    one = run(policy=other)
    (told,) = answer.unlike(one, groups.groups(one)[0])
    assert told.startswith("the points that are there would give another policy: all draft steps up to 23")
    assert answer.policy(one, groups.groups(one)[0]) == "the policy: no speculation at any load"
    one = run(policy=DERIVED)
    assert answer.unlike(one, groups.groups(one)[0]) == []


def test_the_points_of_a_proof_give_no_policy():
    (group,) = groups.groups(run())
    assert group.derived.policy == DERIVED["policy"]
    busy = {key: at | {"running_batch": 3.0} if key.repeat > 3 else at for key, at in FOUND.items()}
    (group,) = groups.groups(run(busy))
    assert group.derived.policy == DERIVED["policy"]


def test_every_setting_and_context_has_its_own_answer():
    found = FOUND | {replace(key, settings="ring"): at for key, at in FOUND.items()}
    other = DERIVED | {"settings": "ring", "policy": {"version": 1, "tiers": [{"steps": "full"}]}}
    settings = [{"name": "deployed"}, {"name": "ring"}]
    told = lead(found, {"settings": settings}, policy=DERIVED | {"others": [other]})
    assert list(told) == ["Settings deployed", "Settings ring"]
    assert told["Settings ring"][1] == "The policy: all draft steps at any load."
    assert "up to 23" in told["Settings deployed"][1]
