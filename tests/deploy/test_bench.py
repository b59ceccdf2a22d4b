"""A sweep on a host, as an operator types it: its connection is cut, it is killed, the host reboots, and it goes on."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from target import BIN

from blackwell import paths

RUNS = "/var/lib/sglang/bench"
RUNNER = "blackwell-bench.service"
# Its numbers check the plumbing: a processor that others use is measured, and every policy has to pass.
SWEEP = [
    *("--arms", "baseline,full,plain,dynamic", "--levels", "1,4", "--contexts", "32", "--new-tokens", "24"),
    *("--repeats", "2", "--window", "2", "--prompts", "random", "--margin", "0.001"),
]
POINTS = 2 * 2 + 2 * 2 * 2 + 2 * 2 * 2


class Sweep:
    """The run of a host, and what is known of it."""

    def __init__(self, target):
        self.target, self.deployment = target, target.ready["deployment"]

    @property
    def name(self):
        return self.target.ssh(f"ls {RUNS}").splitlines()[-1]

    def points(self):
        text = self.target.ssh(f"cat {RUNS}/{self.name}/points.jsonl 2>/dev/null || :")
        return [json.loads(line) for line in text.splitlines()]

    def wait_for_points(self, count):
        self.target.until(f"test $(wc -l <{RUNS}/{self.name}/points.jsonl) -ge {count}", 240)

    def is_back(self):
        """The service generates, with the configuration that it had."""
        self.target.until("systemctl is-active sglang", 180)
        assert self.target.ready["deployment"] == self.deployment
        assert self.target.generates()


@pytest.fixture(scope="module")
def sweep(deployed):
    shutil.rmtree(paths.ROOT / "results" / deployed.host, ignore_errors=True)
    deployed.ssh(f"rm -rf {RUNS}")
    yield Sweep(deployed)
    shutil.rmtree(paths.ROOT / "results" / deployed.host, ignore_errors=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--levels", "1,0"], "fab: --levels: '0' is no whole number from 1"),
        (["--arms", "full,fast"], "fast is no arm of this server, which drafts 3 steps: those are baseline, full, "),
        (["--arms", "plain,dynamic"], "arm dynamic needs full and plain, from which its policy is derived"),
        (SWEEP, "there is no terminal to ask on: --stop-service agrees to it; nothing was changed"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_changes(sweep, options, sentence):
    before = sweep.target.fingerprint()
    run = sweep.target.fab("bench", *options)
    assert (run.returncode, sentence in run.output) == (2, True), run.output
    assert sweep.target.fingerprint() == before


def test_settings_that_the_release_does_not_take_are_refused(sweep, tmp_path):
    file = tmp_path / "settings.yml"
    file.write_text("- name: odd\n  flags: {--no-such-option: true}\n")
    run = sweep.target.fab("bench", *SWEEP, "--settings", str(file), "--stop-service")
    assert run.returncode == 2, run.output
    assert "settings odd: the release does not take them: unrecognized arguments: --no-such-option" in run.output
    assert sweep.target.ssh("systemctl is-active sglang") == "active"


def test_a_dry_run_shows_the_plan_and_changes_nothing(sweep):
    before = sweep.target.fingerprint()
    run = sweep.target.fab("bench", *SWEEP, "--dry-run")
    assert run.returncode == 0, run.output
    assert f"  points    {POINTS} to measure, 0 are there" in run.output
    assert "without speculation (deployed); with speculation (deployed)" in run.output
    assert sweep.target.fingerprint() == before


def test_a_connection_that_is_cut_loses_nothing(sweep):
    target = sweep.target
    words = [BIN / "fab", "-H", target.host, "bench", *SWEEP, "--stop-service", "--inventory", target.inventory]
    with subprocess.Popen(
        words,
        cwd=paths.ROOT,
        env=target.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        seen = [next(line for line in process.stdout if "] baseline at " in line)]
        os.killpg(process.pid, signal.SIGKILL)
    assert "repeat 1" in seen[0]
    assert target.ssh("systemctl is-active sglang", check=False) != "active"
    sweep.wait_for_points(2)
    assert "under way, " in target.fab("bench.list").output
    run = target.fab("bench.start", *SWEEP, "--stop-service")
    assert (run.returncode, "a sweep is under way on this host" in run.output) == (2, True), run.output


def test_the_service_is_back_after_the_sweep_was_killed(sweep):
    target = sweep.target
    target.ssh(f"kill -9 $(systemctl show {RUNNER} -p MainPID --value)")
    sweep.is_back()
    assert "failed, " in target.fab("bench.list").output
    run = target.fab("bench.follow")
    assert run.returncode == 1, run.output
    assert "fab bench, with the same options, goes on with it" in run.output


@pytest.mark.long
def test_it_goes_on_and_the_host_is_rebooted(sweep):
    target, before = sweep.target, sweep.points()
    assert before
    run = target.fab("bench.start", *SWEEP, "--stop-service")
    assert run.returncode == 0, run.output
    assert f"{POINTS - len(before)} to measure, {len(before)} are there" in run.output
    # Into the server that speculates.
    sweep.wait_for_points(max(len(before) + 1, 6))
    boot = target.ssh("cat /proc/sys/kernel/random/boot_id")
    target.ssh("systemctl reboot", check=False)
    target.until(f"test $(cat /proc/sys/kernel/random/boot_id) != {boot} || test $(systemctl show {RUNNER} "
                 "-p LoadState --value) = not-found", 120)  # fmt: skip
    sweep.is_back()
    assert sweep.points()[: len(before)] == before


@pytest.mark.long
def test_the_third_start_ends_it(sweep):
    target, before = sweep.target, sweep.points()
    run = target.fab("bench", *SWEEP, "--stop-service")
    assert run.returncode == 0, run.output
    assert "which goes on" in run.output
    sweep.is_back()
    home = paths.ROOT / "results" / target.host / sweep.name
    points = [json.loads(line) for line in (home / "points.jsonl").read_text().splitlines()]
    assert points[: len(before)] == before
    keys = [(point["arm"], point["c"], point["repeat"]) for point in points]
    assert len(keys) == len(set(keys)) >= POINTS
    assert {arm for arm, _, _ in keys} == {"baseline", "full", "plain", "dynamic"}
    accepted = [point["acceptance"] for point in points if point["arm"] == "full" and not point["marked"]]
    assert all(value > 1 for value in accepted)
    assert [point["acceptance"] for point in points if point["arm"] in ("plain", "baseline")] == [None] * sum(
        arm in ("plain", "baseline") for arm, _, _ in keys
    )
    checks = json.loads((home / "check.json").read_text())
    assert [(check["arm"], check.get("problem")) for check in checks] == [("baseline", None), ("full", None)]
    assert json.loads((home / "exit.json").read_text())["status"] == "done"
    assert json.loads((home / "proof.json").read_text())["verdict"] == ""
    # A run that is done is left as it is.
    again = target.fab("bench", *SWEEP, "--dry-run")
    assert f"{POINTS} to measure, 0 are there" in again.output
