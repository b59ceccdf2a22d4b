"""What a server reports of its load policy, in words; what cannot be read is none."""

import pytest
from looks import BY_LOAD, INFORMATION, LOAD_STATE, RANK

from blackwell import load_state

WORDS = "3 steps up to 8 requests, plain above (margin 2, dwell 16)"
THREE = {
    "tiers": [{"max_batch": 8, "steps": 3}, {"max_batch": 24, "steps": 1}, {"steps": 0}],
    "steps": 1,
}


def reported(**changes):
    return BY_LOAD | {"internal_states": [RANK | {"speculative_load_state": LOAD_STATE | changes}]}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, f"{WORDS}; now 3 steps"),
        ({"steps": 0}, f"{WORDS}; now plain"),
        (THREE, "3 steps up to 8 requests, 1 step up to 24, plain above (margin 2, dwell 16); now 1 step"),
        ({"tiers": [{"steps": 2}], "steps": 2}, "2 steps at any load (margin 2, dwell 16); now 2 steps"),
        (
            {"forced_steps": 0, "steps": 0},
            f"FORCED to plain whatever the load, in place of {WORDS}; now plain",
        ),
    ],
)
def test_in_words(changes, line):
    assert load_state.summary(reported(**changes)) == line


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "3 steps at any load, no threshold and no policy"),
        ({"speculative_num_steps": 1}, "1 step at any load, no threshold and no policy"),
        ({"speculative_algorithm": None}, "none"),
    ],
)
def test_a_server_without_a_policy(changes, line):
    assert load_state.summary(BY_LOAD | {"internal_states": [RANK]} | changes) == line


def test_numbers():
    found = load_state.parse(BY_LOAD)
    assert (found.steps, found.forced, found.switches, found.rounds) == (3, None, 4, {"3": 10, "0": 5})
    assert found.policy == {"tiers": LOAD_STATE["tiers"], "margin": 2, "dwell": 16}


@pytest.mark.parametrize(
    "information",
    [
        {},
        INFORMATION,
        {"internal_states": None},
        {"internal_states": [None, {}]},
        {"internal_states": [{"speculative_load_state": {}}]},
        {"internal_states": [{"speculative_load_state": {"tiers": []}}]},
        {"internal_states": [{"speculative_load_state": "none"}]},
    ],
)
def test_none(information):
    assert load_state.parse(information) is None
