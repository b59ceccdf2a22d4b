"""A run that has come home becomes a policy, or is refused."""

import json

import pytest

from blackwell import tune
from blackwell.bench import fingerprint
from blackwell.host_errors import HostError
from blackwell.sweep import events, plan, runs
from blackwell.sweep.estimate import Guess
from blackwell.sweep.plan import Plan
from blackwell.sweep.runs import Begun

POLICY = {"version": 1, "tiers": [{"max_batch": 12, "steps": "full"}, {"steps": 0}], "margin": 2, "dwell": 16}
NOW = Begun(fingerprint.made({"gpus": "one"}), Guess(1.0, 0.01))
FOUND = {"settings": "deployed", "context": 64, "policy": POLICY, "explained": ["speculation pays up to 12", "more"]}
HOLDS = {"margin": 0.98, "verdict": "", "levels": []}


@pytest.fixture
def run(tmp_path):
    """A run that is done, and holds."""
    directory = tmp_path / "20260101-000000"
    made = Plan("20260101-000000", "box", 3, tuple(plan.default_arms(3)))
    runs.begin(directory, made, NOW)
    events.Events(directory).end(events.DONE)
    (directory / "policy.json").write_text(json.dumps(FOUND))
    (directory / "proof.json").write_text(json.dumps(HOLDS))
    return directory


def test_a_policy_that_holds_says_where_it_comes_from(run):
    found = tune.measured("box", run)
    assert found.setting.policy == POLICY
    origin = found.origin("box")
    assert (origin.command, origin.run) == ("fab -H box tune.apply --run 20260101-000000", "20260101-000000")
    assert (origin.fingerprint, origin.crossover) == (NOW.fingerprint.digest, "speculation pays up to 12")


def test_a_policy_that_does_not_hold_is_refused(run):
    (run / "proof.json").write_text(json.dumps(HOLDS | {"verdict": "the policy gives 0.9 of full at 10 clients"}))
    with pytest.raises(
        tune.RefusedError, match=r"box: refused: the policy gives 0\.9 of full at 10 clients; nothing was"
    ):
        tune.measured("box", run)


@pytest.mark.parametrize("ended", [events.STOPPED, events.FAILED])
def test_a_run_that_is_not_done_is_no_policy(run, ended):
    events.Events(run).end(ended, "why")
    with pytest.raises(HostError, match="run 20260101-000000 is not done: fab bench"):
        tune.measured("box", run)


def test_a_run_without_a_policy_says_what_it_lacks(run):
    (run / "proof.json").unlink()
    with pytest.raises(HostError, match="has no policy that was proven: that takes full, plain and dynamic"):
        tune.measured("box", run)


def test_a_policy_for_settings_that_are_not_deployed_is_refused(run):
    (run / "policy.json").write_text(json.dumps(FOUND | {"settings": "ring"}))
    with pytest.raises(HostError, match="proves a policy for settings ring, which are not deployed"):
        tune.measured("box", run)


def test_a_file_that_lacks_something_is_named(run):
    (run / "proof.json").write_text(json.dumps({"margin": 0.98}))
    with pytest.raises(HostError, match="the policy or the proof of run 20260101-000000 has no 'verdict'"):
        tune.measured("box", run)


def test_a_directory_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(HostError, match=r"plan\.json cannot be read"):
        tune.measured("box", tmp_path)
