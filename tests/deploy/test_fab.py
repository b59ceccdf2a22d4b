"""The ``fab`` command, as a person types it, against a host with a server that runs."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAB = ROOT / ".venv/bin/fab"


@pytest.fixture
def environment(deployed):
    """The variables that the host's inventory needs, and none that names an inventory."""
    variables = getattr(deployed, "environment", os.environ)
    return {name: value for name, value in variables.items() if name != "BLACKWELL_INVENTORY"}


@pytest.fixture
def fab(deployed, environment):
    """Runs a task on the host, by its inventory unless told otherwise."""

    def run(*words, host=deployed.host, inventory=deployed.inventory, cwd=ROOT):
        named = ["--inventory", str(inventory)] if inventory else []
        command = [FAB, "--search-root", ROOT, "-H", host, *words, *named]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def changed_inventory(deployed, environment, tmp_path):
    """An inventory with the host alone and some of its variables changed."""
    words = [ROOT / ".venv/bin/ansible-inventory", "--inventory", deployed.inventory, "--host", deployed.host]
    variables = json.loads(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)

    def write(**changes):
        connection = {name: value for name, value in variables.items() if name.startswith("ansible_")}
        file = tmp_path / "inventory.json"
        file.write_text(json.dumps({"sglang_hosts": {"hosts": {deployed.host: connection | changes}}}))
        return file

    return write


def refused(done):
    """The only sentence of a command that failed."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def refused_by_host(done):
    """The sentence of a command that first says what it is about to do on the host, and is refused there."""
    assert (done.returncode, done.stdout) == (2, "")
    about, sentence = done.stderr.splitlines()
    assert about.startswith("fab: summing on "), done.stderr
    return sentence


def test_status_of_a_server_that_is_ready(fab, deployed):
    done = fab("status")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{deployed.host}: ready\n")
    assert f"@{deployed.address}, inventory {deployed.inventory}" in done.stdout
    assert "good the same" in done.stdout
    assert "127.0.0.1 port 30000, /health 200" in done.stdout
    assert len(done.stdout.splitlines()) <= 24


def test_status_for_scripts(fab, deployed):
    done = fab("status", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["host"], said["ready"], said["server"]["health"]) == (deployed.host, True, 200)
    assert said["running"] == said["good"]
    assert said["running_pid"] == said["unit"]["main_pid"]
    assert said["disk"]["free"] > 0
    assert said["load"]["limit"] >= 1


def test_ask_completes_and_shows_the_acceptance_length(fab):
    done = fab("ask", "--prompt", "n5 n6 n7", "--tokens", "16")
    assert done.returncode == 0, done.stderr
    text, _, numbers = done.stdout.rstrip().rpartition("\n\n")
    # The counting model goes on with numbers.
    assert text.split()[:2] == ["n8", "n9"]
    assert numbers.startswith("16 tokens in ")
    assert float(numbers.split("acceptance length ")[1].split()[0]) > 1


def test_ask_hands_on_why_the_server_refuses(fab, deployed):
    done = fab("ask", "--prompt", "n5", "--tokens", "1000000")
    assert done.returncode == 2
    assert f"fab: {deployed.host}: the server answered 400: " in done.stderr


def test_speculation_of_a_server_without_a_load_policy(fab, deployed):
    done = fab("speculation")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{deployed.host}: 3 steps at any load, no threshold and no policy\n"


def test_doctor_finds_nothing_on_a_host_that_is_well(fab, deployed):
    done = fab("doctor", "--json")
    said = json.loads(done.stdout)
    # The machine that the sandbox is on may be short of room.
    wrong = [found["what"] for found in said["findings"] if found["level"] != "ok" and " free " not in found["what"]]
    assert wrong == []
    assert (said["host"], said["exit"]) == (deployed.host, done.returncode)
    told = [found["what"] for found in said["findings"]]
    assert f"reached over SSH as root@{deployed.address}" in told
    assert "sglang.service is active and generates" in told
    assert f"deployment {deployed.ready['deployment']} runs, which is recorded as the last good one" in told


def test_doctor_of_a_service_that_is_stopped_and_a_server_of_the_bench_that_is_left(fab, deployed):
    deployed.ssh("systemctl stop sglang; systemd-run --quiet --unit=blackwell-bench-server sleep infinity")
    try:
        done = fab("doctor")
    finally:
        deployed.ssh("systemctl stop blackwell-bench-server; systemctl start sglang")
    assert (done.returncode, done.stderr) == (1, "")
    verdict, *lines = done.stdout.splitlines()
    assert "1 problem" in verdict
    problem = lines.index("  problem  sglang.service is inactive (dead)")
    assert lines[problem + 1] == f"           -> fab -H {deployed.host} logs --lines 50"
    assert any("blackwell-bench-server.service is active" in line for line in lines)


def test_doctor_of_a_measurement_that_is_under_way(fab, deployed):
    run = "/var/lib/sglang/bench/20261130-061500"
    deployed.ssh(f"systemd-run --quiet --unit=blackwell-bench sh -c 'sleep infinity; : {run}/plan.json'")
    try:
        done = fab("doctor", "--json")
    finally:
        deployed.ssh("systemctl stop blackwell-bench")
    assert done.returncode == 1
    told = [found["what"] for found in json.loads(done.stdout)["findings"]]
    assert "a measurement is under way, run 20261130-061500" in told


def test_threshold_of_a_host_that_has_none(fab, deployed):
    done = fab("threshold")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{deployed.host}:",
        "  inventory  3 steps at any load, no threshold and no policy",
        "             the role's default: no variable is set",
        "  live       3 steps at any load, no threshold and no policy",
    ]


def test_a_server_without_a_load_policy_takes_no_threshold_while_it_runs(fab, deployed):
    assert refused(fab("threshold", "4")).startswith(
        f"fab: {deployed.host}: the server was started without a threshold and a policy"
    )
    assert not (ROOT / "inventory/sandbox/host_vars" / deployed.host / "speculation.yml").exists()


def test_there_is_nothing_to_roll_back_to_after_one_deployment(fab, deployed):
    if deployed.record("/var/lib/sglang/deployments/previous/deployment.json"):
        pytest.skip("other tests have deployed to this host")
    assert refused(fab("rollback", "--dry-run")) == (
        f"fab: {deployed.host} has no second deployment that worked, so there is nothing to go back to\n"
    )


def test_a_threshold_that_is_no_number_is_refused_before_anything_is_asked(fab):
    assert (
        refused(fab("speculation", "--threshold", "many")) == "fab: --threshold is 'many', not a number of requests\n"
    )


def test_logs_shows_as_many_lines_as_asked_for(fab):
    done = fab("logs", "--lines", "3")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


def test_logs_since_a_time_that_has_not_come(fab):
    assert "-- No entries --" in fab("logs", "--since", "2099-01-01").stdout


def test_logs_since_what_is_no_time(fab):
    done = fab("logs", "--since", "soon")
    assert done.returncode == 2
    assert "Failed to parse timestamp: soon" in done.stderr


@pytest.fixture
def _interruptible():
    """Lets commands be interrupted also where this process cannot be, as when a script has started it with ``&``."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_logs_follows_until_interrupted(fab, deployed, environment):
    words = [FAB, "--search-root", ROOT, "-H", deployed.host, "logs", "--follow", "--lines", "1"]
    with subprocess.Popen(
        [*words, "--inventory", str(deployed.inventory)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        try:
            first = following.stdout.readline()
            assert fab("ask", "--prompt", "n5", "--tokens", "1").returncode == 0
            lines = iter(following.stdout.readline, "")
            assert any("POST /generate" in line for line in lines), first
            following.send_signal(signal.SIGINT)
            assert "Traceback" not in following.stderr.read()
        finally:
            following.kill()


def test_a_reader_that_has_seen_enough(deployed, environment):
    command = (
        f"{FAB} --search-root {ROOT} -H {deployed.host} logs --lines 5000 --inventory {deployed.inventory} | head -n 1"
    )
    words = [shutil.which("bash"), "-o", "pipefail", "-c", command]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert "Traceback" not in done.stderr


def test_the_address_does_as_well_as_the_name(fab, deployed):
    done = fab("status", host=f"root@{deployed.address}")
    assert done.stdout.startswith(f"{deployed.host}: ready\n"), done.stderr


def test_the_inventory_may_come_from_the_environment(fab, deployed, environment):
    environment["BLACKWELL_INVENTORY"] = str(deployed.inventory)
    assert f"inventory {deployed.inventory}\n" in fab("status", inventory=None).stdout


def test_every_host_is_looked_at_though_one_cannot_be(fab, deployed):
    done = fab("status", host=f"nowhere.invalid,{deployed.host}")
    assert done.returncode == 2
    assert "fab: nowhere.invalid is not in " in done.stderr
    assert done.stdout.startswith(f"{deployed.host}: ready\n")


def test_a_mistyped_host_gets_a_suggestion(fab, deployed):
    said = refused(fab("status", host=f"{deployed.host}x"))
    assert "does not resolve; did you mean" in said
    assert deployed.host in said


def test_a_host_key_that_is_not_pinned(fab, changed_inventory, tmp_path):
    empty = tmp_path / "known_hosts"
    empty.touch()
    inventory = changed_inventory(ansible_ssh_common_args=f"-F none -o UserKnownHostsFile={empty}")
    assert f"{empty} pins no host key of " in refused(fab("status", inventory=inventory))


def test_a_key_that_the_host_does_not_know(fab, changed_inventory, tmp_path):
    key = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    said = refused(fab("status", inventory=changed_inventory(ansible_ssh_private_key_file=str(key))))
    assert f"does not let root in with {key}" in said


def test_a_port_that_nobody_listens_on(fab, deployed, changed_inventory):
    said = refused(fab("status", inventory=changed_inventory(ansible_port=9)))
    assert said == f"fab: {deployed.host}: {deployed.address} port 9 is not reachable: Connection refused\n"


def test_an_inventory_that_is_not_there(fab):
    assert refused(fab("status", inventory="/nowhere")) == "fab: --inventory names /nowhere, which is not there\n"


def test_an_inventory_given_where_fabric_takes_a_key(deployed, environment):
    words = [FAB, "--search-root", ROOT, "-i", deployed.inventory, "-H", deployed.host, "status"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert "an inventory is named after it" in refused(done)


def test_without_a_host(environment):
    done = subprocess.run([FAB, "status"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert refused(done) == "fab: name a host: fab -H HOST TASK\n"


@pytest.mark.parametrize("task", ["status", "doctor", "logs", "ask", "speculation", "threshold", "verify", "rollback"])
def test_every_option_of_a_task_is_explained(task):
    done = subprocess.run([FAB, "--help", task], cwd=ROOT, capture_output=True, text=True, check=True)
    options = [line for line in done.stdout.splitlines() if line.startswith("  -")]
    assert options
    assert all(line.partition("--")[2].partition("  ")[2].strip() for line in options), done.stdout


def test_an_all_reduce_is_proven_kept_and_compared(fab, deployed):
    kept = ROOT / "results" / deployed.host / "interconnect.jsonl"
    kept.unlink(missing_ok=True)
    asked = ("interconnect", "--device", "cpu")
    assert "its requests would be measured too: stop it first, or --beside" in refused_by_host(fab(*asked))
    assert "it has no GPUs, and an all-reduce takes two" in refused_by_host(fab("interconnect", "--beside"))
    done = fab(*asked, "--beside")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{deployed.host}: 2 processes on the CPU sum what they hold, rightly\n")
    assert "there was no other time to compare with" in done.stdout
    done = fab(*asked, "--beside", "--seconds", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith(f"{deployed.host}: it hung; ")
    done = fab(*asked, "--beside", "--json")
    told = json.loads(done.stdout)
    # Two processors carry the server, too: it may be slower than the last time, but not wrong.
    assert all("times as long as the last time" in sentence for sentence in told["wrong"])
    assert [size["wrong"] for size in told["sizes"]] == [0] * 4
    assert told["last"]["reached"] == ["done", "done"]
    assert len(kept.read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--device", "tpu"), "--device: 'tpu' is neither of cuda and cpu"),
        (("--ranks", "1"), "--ranks: '1' is no whole number from 2"),
        (("--seconds", "soon"), "--seconds: 'soon' is no whole number from 1"),
    ],
)
def test_an_all_reduce_that_cannot_be(fab, options, sentence):
    assert refused(fab("interconnect", *options)) == f"fab: {sentence}\n"
