"""What is typed to change a running server's load policy, and what is said of it."""

import json

import pytest
from looks import ADDRESS, BY_LOAD, HOST, INFORMATION, LOAD_STATE, NOT_FOUND, RANK, UNIT, answer

from blackwell import load_control, load_policy
from blackwell.host_errors import HostError

WORDS = "3 steps up to 8 requests, plain above (margin 2, dwell 16)"
POLICY = {"version": 1, "tiers": [{"max_batch": 8, "steps": "full"}, {"steps": 0}]}
FORCED = BY_LOAD | {
    "internal_states": [RANK | {"speculative_load_state": LOAD_STATE | {"forced_steps": 0, "steps": 0}}]
}


def wanted(force="", threshold="", policy="", *, release=False):
    return load_control.wanted(force, threshold, policy, release=release)


def sentence(call, *arguments, **options):
    with pytest.raises(HostError) as caught:
        call(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("typed", "change"),
    [
        ({}, {}),
        ({"force": "2"}, {"speculative_force_steps": 2}),
        ({"force": "0"}, {"speculative_force_steps": 0}),
        ({"force": "off"}, {"speculative_force_steps": 0}),
        ({"force": "full"}, {"speculative_force_steps": "full"}),
        ({"release": True}, {"speculative_force_steps": None}),
        ({"threshold": "0"}, {"speculative_disable_batch_threshold": 0}),
        (
            {"threshold": "8", "force": "1"},
            {"speculative_disable_batch_threshold": 8, "speculative_force_steps": 1},
        ),
    ],
)
def test_what_was_typed(typed, change):
    assert wanted(**typed) == change


def test_a_policy_is_read_from_a_file(tmp_path):
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(POLICY))
    assert wanted(policy=str(file)) == {"speculative_load_policy": POLICY}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"force": "1", "release": True}, "--force and --release exclude each other"),
        ({"threshold": "8", "policy": "p.json"}, "--threshold and --policy exclude each other"),
        ({"force": "-1"}, "--force is '-1', not a number of steps, full or off"),
        ({"threshold": "many"}, "--threshold is 'many', not a number of requests"),
        ({"policy": "/nowhere/p.json"}, "--policy: /nowhere/p.json cannot be read: No such file or directory"),
    ],
)
def test_what_was_typed_wrongly(typed, said):
    assert sentence(wanted, **typed).startswith(said)


def test_a_policy_that_is_no_json(tmp_path):
    file = tmp_path / "policy.json"
    file.write_text("{tiers")
    assert sentence(wanted, policy=str(file)).startswith(f"--policy: {file} is not JSON: ")


def found(**changes):
    return {"unit": UNIT, "address": ADDRESS, "before": answer(BY_LOAD)} | changes


def test_what_the_server_reports():
    assert load_control.information(HOST, found()) == BY_LOAD


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"unit": NOT_FOUND, "before": None},
            "box: there is no sglang.service on the host: deploy it with ansible-playbook site.yml",
        ),
        (
            {"unit": UNIT | {"ActiveState": "failed", "SubState": "failed"}, "before": None},
            "box: sglang.service is failed (failed) (fab -H box status)",
        ),
        ({"before": answer("timed out", 0)}, "box: /server_info does not answer (timed out)"),
        ({"before": answer("", 500)}, "box: /server_info answers 500"),
    ],
)
def test_a_server_that_does_not_report(changes, said):
    assert sentence(load_control.information, HOST, found(**changes)) == said


@pytest.mark.parametrize(
    ("change", "reported", "said"),
    [
        (
            {"speculative_force_steps": 0},
            INFORMATION,
            "box: the server (SGLang 0.5.9) has no load policies: its release adds none",
        ),
        (
            {"speculative_force_steps": 0},
            BY_LOAD | {"speculative_algorithm": None},
            "box: the server does not speculate: deploy it with model_draft_path",
        ),
        (
            {"speculative_load_policy": POLICY | {"dwell": 0}},
            BY_LOAD,
            "box: --policy: dwell is 0, not a whole number of decode rounds from 1",
        ),
        (
            {"speculative_load_policy": POLICY},
            BY_LOAD | {"max_running_requests": 8},
            f"box: --policy: {load_policy.problems(POLICY, 3, 8)[0]}",
        ),
    ],
)
def test_a_change_that_the_server_cannot_take(change, reported, said):
    assert sentence(load_control.check, HOST, change, reported) == said


def test_changes_that_it_can():
    load_control.check(HOST, {}, INFORMATION)
    load_control.check(HOST, {"speculative_load_policy": POLICY, "speculative_force_steps": None}, BY_LOAD)


def test_what_the_server_takes():
    load_control.accepted(HOST, found(answer=answer({"updated": True, "server_args": {}, "message": ""})))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (answer({"updated": False, "message": "2 steps were not captured"}, 400), "400: 2 steps were not captured"),
        (answer({"updated": False, "message": ""}), "200: it gives no reason"),
        # Stock SGLang takes everything with a list, and changes nothing.
        (answer([True]), "200: [True]"),
        (answer("timed out", 0), "0: timed out"),
    ],
)
def test_what_the_server_does_not_take(said, reason):
    expected = f"box: nothing was changed, the server answered {reason}"
    assert sentence(load_control.accepted, HOST, found(answer=said)) == expected


def test_shown():
    assert (
        load_control.render(HOST, BY_LOAD, {}, None)
        == "box: 3 steps up to 8 requests, plain above (margin 2, dwell 16); now 3 steps"
    )


def test_before_and_after():
    assert load_control.render(HOST, BY_LOAD, {"speculative_force_steps": 0}, FORCED).splitlines() == [
        "box:",
        f"  before  {WORDS}; now 3 steps",
        f"  after   FORCED to plain whatever the load, in place of {WORDS}; now plain",
        "  A restart of the service returns to the deployed policy.",
    ]


def test_a_dry_run():
    shown = load_control.render(HOST, BY_LOAD, {"speculative_force_steps": None}, None).splitlines()
    assert shown[2] == '  would send  POST /set_internal_state {"server_args": {"speculative_force_steps": null}}'
