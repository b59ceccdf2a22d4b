"""A run that has come home is refused where its policy does not hold, and else written, deployed and in force."""

import json
import shutil

import pytest

from blackwell import paths

pytestmark = pytest.mark.long
SWEEP = [
    *("--arms", "full,plain,dynamic", "--levels", "1,4", "--contexts", "32", "--new-tokens", "24"),
    *("--repeats", "2", "--window", "1", "--prompts", "random", "--margin", "0.001"),
]
STAGES = ("--tags", "sglang,model,serve")
VERDICT = "the policy gives 0.900 of full at 4 clients (32 tokens), and has to give 0.98"


class Tuning:
    """A run of a host, and the host's file of the inventory."""

    def __init__(self, target, home):
        self.target, self.home = target, home
        self.file = target.inventory / "host_vars" / target.host / "speculation.yml"

    def judge(self, verdict):
        """Has the proof say whether the policy holds: on a processor that others use, what was measured is chance."""
        file = self.home / "proof.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"verdict": verdict}))

    def in_force(self):
        """Whether the server follows the policy of the run."""
        found = self.target.request("/server_info")["body"]
        full = found["speculative_num_steps"]
        policy = json.loads((self.home / "policy.json").read_text())["policy"]
        tiers = [tier | {"steps": full if tier["steps"] == "full" else tier["steps"]} for tier in policy["tiers"]]
        return found["internal_states"][0]["speculative_load_state"]["tiers"] == tiers


def run_with_a_policy(deployed, runs, tries=3):
    """The directory of a run that came home with a policy: on busy processors a run may have no point that counts."""
    for _ in range(tries):
        run = deployed.fab("bench", *SWEEP, "--new", "--stop-service")
        assert run.returncode == 0, run.output
        home = max(runs.iterdir())
        if all((home / name).exists() for name in ("policy.json", "proof.json")):
            return home
    pytest.fail(f"{tries} runs, and none with a policy:\n{run.output}")


@pytest.fixture(scope="module")
def tuning(deployed):
    """A run of the host, which speculates always; afterwards host and inventory are as they were."""
    places = paths.ROOT / "results" / deployed.host, deployed.inventory / "host_vars" / deployed.host
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    yield Tuning(deployed, run_with_a_policy(deployed, places[0]))
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    run = deployed.play(*STAGES)
    assert run.returncode == 0, run.output


def test_a_policy_that_does_not_hold_is_refused(tuning):
    target = tuning.target
    tuning.judge(VERDICT)
    before = target.fingerprint()
    run = target.fab("tune.apply", "--run", tuning.home.name)
    assert (run.returncode, run.output) == (1, f"fab: {target.host}: refused: {VERDICT}; nothing was changed\n")
    assert not tuning.file.parent.exists()
    assert target.fingerprint() == before


def test_a_policy_that_holds_is_written_and_deployed(tuning):
    target = tuning.target
    tuning.judge("")
    run = target.fab("tune.apply")
    assert run.returncode == 0, run.output
    assert f"kept    in {tuning.file}" in run.output
    # A server that was started without a policy takes none while it runs.
    assert "PLAY RECAP" in run.output
    assert tuning.in_force()
    run = target.fab("verify")
    assert run.returncode == 0, run.output
    run = target.fab("threshold")
    assert run.returncode == 0, run.output
    assert f"measured by run {tuning.home.name}, for what has the fingerprint " in run.output
    assert "remark" not in run.output
    run = target.fab("doctor")
    assert f"the policy was measured by run {tuning.home.name}, on what runs now" in run.output


@pytest.mark.parametrize(
    ("tiers", "restarts"),
    [
        # Beyond the largest batch of the sweep, so that this is not the policy that is deployed.
        pytest.param([{"max_batch": 6, "steps": "full"}, {"steps": 0}], False, id="by load"),
        pytest.param([{"steps": 0}], False, id="never"),
        # The sweep has no arm with one step, so that the server was not started for that.
        pytest.param([{"max_batch": 4, "steps": 1}, {"steps": 0}], True, id="other steps"),
    ],
)
def test_a_server_that_has_a_policy_takes_another_while_it_runs_if_it_can(tuning, tiers, restarts):
    target, file = tuning.target, tuning.home / "policy.json"
    pid = target.ready["pid"]
    file.write_text(json.dumps(json.loads(file.read_text()) | {"policy": {"version": 1, "tiers": tiers}}))
    assert not tuning.in_force()
    run = target.fab("tune.apply")
    assert run.returncode == 0, run.output
    assert ("does not take 1 step while it runs; deploying it: " in run.output) == restarts, run.output
    assert (target.ready["pid"] != pid) == restarts
    assert tuning.in_force()
    run = target.verify("-k", "speculation_is_accepted or follows_the_load")
    assert run.returncode == 0, run.output
    assert "2 passed" in run.output
