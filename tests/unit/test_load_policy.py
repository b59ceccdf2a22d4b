"""A load policy that is wrong is refused with sentences; one that is right becomes numbers."""

import json

import pytest
from jsonschema import Draft202012Validator

from blackwell import load_policy

HIGH, MIDDLE, PLAIN = {"max_batch": 8, "steps": "full"}, {"max_batch": 24, "steps": 1}, {"steps": 0}
NOT_TIERS = "not a list of tiers of which exactly one, the last, has no max_batch"


def policy(*tiers, **more):
    return {"version": 1, "tiers": list(tiers), **more}


def test_the_schema_is_one():
    Draft202012Validator.check_schema(json.loads(load_policy.SCHEMA.read_text()))


@pytest.mark.parametrize(
    ("asked", "sentences"),
    [
        ([], ["the policy is [], not an object with version, tiers, and where wanted margin and dwell"]),
        ({}, ["the policy lacks version, tiers"]),
        (policy(PLAIN, margins=2), ["the policy has margins, but may have version, tiers, margin, dwell"]),
        (policy(PLAIN) | {"version": 2}, ["version is 2, not 1, the version of this format"]),
        (policy(PLAIN) | {"version": True}, ["version is true, not 1, the version of this format"]),
        (policy() | {"tiers": 3}, [f"tiers is 3, {NOT_TIERS}"]),
        (policy(), [f"tiers is [], {NOT_TIERS}"]),
        (policy({"max_batch": 8, "steps": 1}), [f'tiers is [{{"max_batch": 8, "steps": 1}}], {NOT_TIERS}']),
        (policy({"steps": 1}, PLAIN), [f'tiers is [{{"steps": 1}}, {{"steps": 0}}], {NOT_TIERS}']),
        (policy(PLAIN, {"max_batch": 8, "steps": 1}), ["tier 1 has no max_batch, which is for the last tier"]),
        (policy(HIGH, {}), ["tier 2 lacks steps"]),
        (policy(HIGH, {"steps": 0, "step": 1}), ["tier 2 has step, but may have max_batch, steps"]),
        (policy(HIGH, 3), ["tier 2 is 3, not an object with steps and, but for the last, max_batch"]),
        *(
            (
                policy({"max_batch": wrong, "steps": 1}, PLAIN),
                [f"max_batch of tier 1 is {json.dumps(wrong)}, not a whole number of requests above 0"],
            )
            for wrong in (0, -1, 8.0, "8", True, None)
        ),
        *(
            (
                policy(HIGH, {"steps": wrong}),
                [f'steps of tier 2 is {json.dumps(wrong)}, not "full" or a whole number of draft steps from 0'],
            )
            for wrong in (-1, 1.0, "none", False, None)
        ),
        (policy(HIGH, PLAIN, margin=-1), ["margin is -1, not a whole number of requests from 0"]),
        (policy(HIGH, PLAIN, dwell=0), ["dwell is 0, not a whole number of decode rounds from 1"]),
        (
            policy(HIGH, {"max_batch": 8, "steps": 1}, PLAIN),
            ["max_batch of tier 2 is 8, not above that of tier 1 (8)"],
        ),
        (
            policy({"max_batch": 8, "steps": 4}, PLAIN),
            ["steps of tier 1 is 4, more than speculative_num_steps of the server (3)"],
        ),
        (
            policy(HIGH, {"max_batch": 24, "steps": 3}, PLAIN),
            ["steps of tier 2 is 3, not below that of tier 1 (3)"],
        ),
        (
            policy(HIGH, {"max_batch": 10, "steps": 1}, PLAIN, margin=2),
            ["margin is 2, which swallows tier 2: it must be below the 2 requests of that tier"],
        ),
        (
            policy(HIGH, PLAIN, margin=8),
            ["margin is 8, which swallows tier 1: it must be below the 8 requests of that tier"],
        ),
    ],
)
def test_refused_with_a_sentence(asked, sentences):
    assert load_policy.problems(asked, 3, 32) == sentences


def test_a_tier_that_no_load_reaches():
    (found,) = load_policy.problems(policy(HIGH, {"max_batch": 32, "steps": 1}, PLAIN), 3, 32)
    assert found.startswith("max_batch of tier 2 is 32, not below max_running_requests of the server (32)")


@pytest.mark.parametrize(
    "asked",
    [
        policy(HIGH, MIDDLE, PLAIN),
        policy(PLAIN),
        policy({"steps": 2}),
        policy({"max_batch": 31, "steps": 3}, {"steps": 1}, margin=30, dwell=1),
        policy(HIGH, PLAIN, margin=0),
    ],
)
def test_right(asked):
    assert load_policy.problems(asked, 3, 32) == []


def test_a_limit_that_is_unknown_refuses_nothing():
    assert load_policy.problems(policy({"max_batch": 10**6, "steps": 3}, PLAIN), 3) == []


def test_resolved():
    assert load_policy.resolved(policy(HIGH, MIDDLE, PLAIN), 3) == {
        "tiers": [{"max_batch": 8, "steps": 3}, {"max_batch": 24, "steps": 1}, {"steps": 0}],
        "margin": 2,
        "dwell": 16,
    }


@pytest.mark.parametrize(
    ("bounds", "margin"), [([], 2), ([1], 0), ([2], 1), ([3], 2), ([64], 2), ([8, 10], 1), ([8, 9, 64], 0)]
)
def test_the_margin_is_below_the_narrowest_tier(bounds, margin):
    steps = range(len(bounds), 0, -1)
    tiers = [{"max_batch": bound, "steps": count} for bound, count in zip(bounds, steps, strict=True)]
    asked = policy(*tiers, PLAIN)
    assert load_policy.problems(asked, 3) == []
    assert load_policy.resolved(asked, 3)["margin"] == margin


def test_margin_and_dwell_that_are_asked_for():
    found = load_policy.resolved(policy(HIGH, PLAIN, margin=0, dwell=1), 3)
    assert (found["margin"], found["dwell"]) == (0, 1)


def test_a_threshold_is_a_policy_of_two_tiers():
    assert load_policy.resolved(load_policy.of_threshold(8), 3)["tiers"] == [{"max_batch": 8, "steps": 3}, PLAIN]
