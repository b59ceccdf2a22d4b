"""A threshold or a policy, as an inventory and a server say it."""

import json

import pytest
from looks import BY_LOAD

from blackwell import speculation_setting
from blackwell.host_errors import HostError
from blackwell.speculation_setting import POLICY, THRESHOLD, Setting

TIERS = {"version": 1, "tiers": [{"max_batch": 8, "steps": "full"}, {"steps": 0}]}


@pytest.mark.parametrize(
    ("variables", "setting"),
    [
        ({}, Setting()),
        ({THRESHOLD: 12}, Setting(12)),
        ({THRESHOLD: "12"}, Setting(12)),
        ({THRESHOLD: 0, POLICY: TIERS}, Setting(policy=TIERS)),
        ({THRESHOLD: 12, POLICY: {}}, Setting(12)),
    ],
)
def test_by_variables(variables, setting):
    assert speculation_setting.of("box", variables) == setting


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({THRESHOLD: "{{ eight }}"}, f"box: {THRESHOLD} is '{{{{ eight }}}}', not a number of requests from 0"),
        ({THRESHOLD: -1}, f"box: {THRESHOLD} is -1, not a number of requests from 0"),
        ({THRESHOLD: True}, f"box: {THRESHOLD} is True, not a number of requests from 0"),
        ({POLICY: "p.json"}, f"box: {POLICY} is 'p.json', not a policy"),
        ({THRESHOLD: 1, POLICY: TIERS}, f"box: {THRESHOLD} and {POLICY} both say at which load the server speculates"),
    ],
)
def test_variables_that_leave_it_open(variables, said):
    with pytest.raises(HostError) as caught:
        speculation_setting.of("box", variables)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("setting", "change"),
    [
        (Setting(12), {"speculative_disable_batch_threshold": 12}),
        (Setting(), {"speculative_disable_batch_threshold": 0}),
        (Setting(policy=TIERS), {"speculative_load_policy": TIERS}),
    ],
)
def test_what_the_server_is_sent(setting, change):
    assert setting.change == change


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({}, Setting(8)),
        ({"speculative_disable_batch_threshold": 0, "speculative_load_policy": json.dumps(TIERS)}, Setting(0, TIERS)),
        ({"speculative_disable_batch_threshold": 0}, Setting()),
        ({"speculative_load_policy": "/a/file.json"}, Setting(8)),
    ],
)
def test_what_a_server_was_started_with(fields, setting):
    assert speculation_setting.started(BY_LOAD | fields) == setting


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting(), "3 steps at any load, no threshold and no policy"),
        (Setting(12), "3 steps up to 12 requests, plain above (margin 2, dwell 16)"),
        (Setting(policy=TIERS | {"dwell": 4}), "3 steps up to 8 requests, plain above (margin 2, dwell 4)"),
    ],
)
def test_in_words(setting, words):
    assert speculation_setting.described(setting, 3) == words


@pytest.mark.parametrize(
    ("setting", "numbers", "said"),
    [
        (
            Setting(8),
            (3, 8),
            "the threshold 8 is not below the 8 requests that run at once, so speculation would never",
        ),
        (Setting(policy=TIERS), (3, 8), "max_batch of tier 1 is 8, not below max_running_requests of the server (8)"),
        (Setting(policy={"version": 1}), (None, None), "the policy lacks tiers"),
    ],
)
def test_what_cannot_be(setting, numbers, said):
    (problem,) = speculation_setting.problems(setting, *numbers)
    assert problem.startswith(said)


@pytest.mark.parametrize(("setting", "numbers"), [(Setting(8), (3, 9)), (Setting(8), (3, None)), (Setting(), (3, 1))])
def test_what_can(setting, numbers):
    assert speculation_setting.problems(setting, *numbers) == []


def test_numbers_come_from_the_host_or_else_from_the_role():
    assert speculation_setting.draft_steps({"sglang_server_speculative_num_steps": 5}) == 5
    assert speculation_setting.most_requests({"sglang_server_max_running_requests": "64"}) == 64
    assert speculation_setting.most_requests({"sglang_server_max_running_requests": "{{ most }}"}) is None
    assert (speculation_setting.draft_steps({}), speculation_setting.most_requests({})) == (3, 256)
