"""The servers of a sweep in the place of the service, and the service that is back however a sweep ends."""

import io
import json
import shlex
import zipfile
from pathlib import Path

import pytest
from target import PROMPT

from blackwell import paths, sweep_package

ROOT = "/var/lib/sglang/bench"
PROGRAM = f"{ROOT}/program.zip"
SERVER, RUNNER = "blackwell-bench-server.service", "blackwell-bench.service"
DROP_IN = "/etc/systemd/system/sglang.service.d/test.conf"
VALUE = """100% "of" $HOME `date` back\\slash it's"""

IMPORTS = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from blackwell.bench.errors import BenchError
from blackwell.sweep import deployed, release_check, runner_unit, server_words, service, unit_text
run = Path(sys.argv[1])

def settings(flags={}, environment={}):
    return SimpleNamespace(name="tried", flags=flags, environment=environment)

def host():
    return service.Host(deployed.kept(run), ("full", 2, 1, 0))

def said(function, *given, **named):
    try:
        return function(*given, **named)
    except BenchError as error:
        return f"{type(error).__name__}: {error}"
"""


def program():
    """The zip that a sweep's program comes in."""
    buffer = io.BytesIO(sweep_package.packed())
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.write(Path(__file__).with_name("short_sweep.py"), "short_sweep.py")
    return buffer.getvalue()


class Bench:
    """What a sweep does on a host, in the directory of a run."""

    def __init__(self, target):
        self.target, self.run = target, ""
        self.deployment = target.ready["deployment"]
        self.python = target.ssh("readlink -f /opt/sglang/current") + "/venv/bin/python"

    def begin(self, name):
        self.run = f"{ROOT}/{name}"
        self.target.ssh(f"mkdir -m 700 -p {self.run}")

    def words(self, *words):
        return f"PYTHONPATH={PROGRAM} {self.python} -P {shlex.join(words)} {self.run}"

    def ask(self, expression):
        """The value of an expression on the host, which JSON can hold."""
        said = self.target.ssh(self.words("-c", f"{IMPORTS}\nprint(json.dumps({expression}))"))
        return json.loads(said.splitlines()[-1])

    def start(self, **options):
        """URL and first process of a server that is started."""
        given = ", ".join(f"{name}={value!r}" for name, value in options.items() if name != "speculates")
        return self.ask(f"vars(host().start(settings({given}), speculates={options['speculates']}))")

    def state(self, unit):
        return self.target.ssh(f"systemctl show {unit} -p ActiveState --value")

    def sweep(self):
        self.target.ssh(self.words("-c", f"{IMPORTS}\nrunner_unit.start(run, {self.python!r}, "
                                         f"Path({PROGRAM!r}), 'short_sweep')"))  # fmt: skip

    def wait_for(self, unit, state, seconds=120):
        self.target.until(f"test $(systemctl show {unit} -p ActiveState --value) = {state}", seconds)

    def is_back(self):
        """The service generates, as it was, and nothing of a sweep is left but its directory."""
        self.wait_for("sglang", "active")
        self.target.until(f"! systemctl is-active {RUNNER}", 60)
        assert self.target.ready["deployment"] == self.deployment
        assert self.target.generates()
        assert self.target.ssh("systemctl list-units --all --no-legend 'blackwell*'; "
                               "find /run /etc -xdev -name '*blackwell*' 2>/dev/null") == ""  # fmt: skip
        assert self.target.ssh("systemctl is-enabled sglang; systemctl show sglang -p NeedDaemonReload --value") == (
            "enabled\nno"
        )


@pytest.fixture(scope="module")
def bench(deployed):
    deployed.ssh(f"mkdir -m 700 -p {ROOT}")
    deployed.write(PROGRAM, program())
    found = Bench(deployed)
    found.begin("by-hand")
    return found


def answer(bench, url, path, body=None):
    source = (paths.ROOT / "tests" / "verify" / "ask_server.py").read_text(encoding="utf-8")
    return json.loads(bench.target.ssh(shlex.join(["python3", "-c", source, url + path, json.dumps(body)])))


def information(bench, url):
    return answer(bench, url, "/server_info")["body"]


def environment(bench, pid):
    lines = bench.target.ssh(f"tr '\\0' '\\n' </proc/{pid}/environ").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def test_what_is_deployed_is_what_runs(bench):
    bench.ask("deployed.write(run, deployed.read())")
    found = bench.target.record(f"{bench.run}/service.json")
    assert found["deployment"] == bench.deployment
    assert found["pid"] == bench.target.ready["pid"]
    assert found["argv"] == bench.target.ssh(f"tr '\\0' '\\n' </proc/{found['pid']}/cmdline").splitlines()
    assert found["unit"] == bench.target.ssh("cat /etc/systemd/system/sglang.service") + "\n"
    assert (found["user"], found["active"], found["enabled"]) == ("sglang", True, True)
    # The readiness check is a part of a start.
    assert found["start_s"] >= bench.target.ready["seconds"]
    assert bench.ask("deployed.kept(run) == deployed.read()")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (f"touch {DROP_IN}", "the unit of sglang.service was edited and systemd has not read it since"),
        (
            f"printf '[Service]\\nExecStop=/bin/drain\\n' >{DROP_IN} && systemctl daemon-reload",
            "sglang.service has ExecStop=/bin/drain, which would run for the bench's server as well",
        ),
        (
            f"printf '[Service]\\nExecStart=\\nExecStart=/bin/other\\n' >{DROP_IN} && systemctl daemon-reload",
            "sglang.service runs with another command line than its unit states",
        ),
        (
            "sed -i.kept s/BLACKWELL_DEPLOYMENT=./BLACKWELL_DEPLOYMENT=x/ /etc/sglang/sglang.env",
            "sglang.service runs deployment",
        ),
    ],
)
def test_what_is_not_what_its_files_say_is_refused(bench, change, told):
    bench.target.ssh(f"mkdir -p $(dirname {DROP_IN})")
    bench.target.ssh(change)
    said = bench.ask("said(deployed.read)")
    bench.target.ssh(f"rm -rf $(dirname {DROP_IN}); cd /etc/sglang; [ ! -e *.kept ] || mv *.kept sglang.env; "
                     "systemctl daemon-reload")  # fmt: skip
    assert said.startswith(f"BenchError: {told}"), said
    assert said.endswith("; nothing was changed")
    assert bench.ask("deployed.kept(run) == deployed.read()")


def test_the_release_says_which_command_line_it_does_not_take(bench):
    lines = "[argv, [*argv, '--attention-backend', 'none'], [*argv, '--speculative-load-policy', '{}']]"
    found = bench.ask(f"(lambda found, argv: release_check.refusals(found, {lines}))"
                      "(deployed.kept(run), deployed.kept(run).argv)")  # fmt: skip
    assert (found[0], found[2]) == ("", "")
    assert found[1].startswith("argument --attention-backend: invalid choice: 'none'")


def test_systemd_reads_a_command_line_as_it_was_written(bench):
    words = [
        "a \"b\" 'c'",
        "100% %i",
        "$HOME ${HOME}",
        "back\\slash \\x",
        "",
        "größer",
        ";",
        '{"tiers": []}',
        "a\tb\nc",
    ]
    show = "import json, sys; print(json.dumps(sys.argv[1:]))"
    unit = bench.ask(f"unit_text.joined(['/usr/bin/python3', '-c', {show!r}, *{words!r}])")
    bench.target.write("/run/systemd/system/words.service", f"[Service]\nType=oneshot\nExecStart={unit}\n".encode())
    said = bench.target.ssh("systemctl daemon-reload && systemctl start words && "
                            "journalctl --sync && journalctl -u words -o cat | grep '^\\['; "
                            "rm /run/systemd/system/words.service; systemctl daemon-reload")  # fmt: skip
    assert json.loads(said) == words


def test_a_server_without_speculation_stands_in_for_the_service(bench):
    server = bench.start(speculates=False, environment={"OMP_NUM_THREADS": "2", "TRIED": VALUE, "HF_HUB_OFFLINE": None})
    assert bench.state("sglang") == "inactive"
    assert bench.target.ready == {}
    found = information(bench, server["url"])
    assert found["speculative_algorithm"] is None
    assert server["url"] == f"http://127.0.0.1:{found['port']}"
    assert answer(bench, server["url"], "/generate", PROMPT)["body"]["meta_info"]["completion_tokens"] == 16
    runs = environment(bench, server["pid"])
    # The environment file of the deployment has another value, and the others.
    assert (runs["OMP_NUM_THREADS"], runs["TRIED"], runs["SGLANG_USE_CPU_ENGINE"]) == ("2", VALUE, "1")
    assert not {"SGLANG_ENABLE_SPEC_V2", "HF_HUB_OFFLINE", "BLACKWELL_DEPLOYMENT"} & set(runs)
    assert bench.target.ssh("stat -c '%a %U' /run/blackwell-bench-server.env") == "600 root"
    assert bench.target.ssh(f"stat -c %U /proc/{server['pid']}") == "sglang"
    assert bench.target.record("/run/blackwell-bench/ready.json")["pid"] == server["pid"]
    assert bench.ask("service.ended()") is None


def test_one_that_can_be_forced_to_every_number_of_draft_steps_follows_it(bench):
    server = bench.start(speculates=True, flags={"--max-running-requests": "4"})
    found = information(bench, server["url"])
    assert found["max_running_requests"] == 4
    assert found["internal_states"][0]["speculative_load_state"]["captured_steps"] == [3, 2, 1, 0]
    for steps in ("full", 2, 1, 0):
        change = {"server_args": {"speculative_force_steps": steps}}
        assert answer(bench, server["url"], "/set_internal_state", change)["status"] == 200
        assert answer(bench, server["url"], "/generate", PROMPT)["status"] == 200
    rounds = information(bench, server["url"])["internal_states"][0]["speculative_load_state"]["rounds"]
    assert all(rounds[steps] > 0 for steps in "3210"), rounds
    assert "OMP_NUM_THREADS=1" in bench.target.ssh(f"tr '\\0' '\\n' </proc/{server['pid']}/environ")


def test_one_that_does_not_become_ready_says_why(bench):
    said = bench.ask("said(host().start, settings({'--context-length': '123456'}), speculates=False)")
    assert said.startswith("StartError: the bench's server did not become ready: ")
    assert "123456" in said
    assert bench.ask("service.ended()") in said
    assert bench.state("sglang") == "inactive"


def test_what_was_put_back_half_way_is_put_back_by_the_next(bench):
    bench.start(speculates=False)
    put_back = bench.words("-m", "blackwell.sweep.put_back")
    queued = "systemctl list-jobs --no-legend | grep -q 'sglang.service *start'"
    bench.target.ssh(f"{put_back} >/dev/null 2>&1 & "
                     f"timeout 30 sh -c \"until {queued}; do sleep 0.05; done\"; kill -9 $!")  # fmt: skip
    # From then on it is systemd's.
    bench.wait_for("sglang", "active")
    assert bench.state(SERVER) == "inactive"
    assert bench.target.ssh(put_back) == "put back: sglang.service is ready"
    bench.is_back()
    assert bench.target.ssh(put_back) == "put back: sglang.service is ready"
    assert not bench.target.record(f"{bench.run}/exit.json")


def test_a_service_that_was_started_meanwhile_is_left_alone(bench):
    # It has been put back: this is another start than the one that was kept.
    pid = bench.target.ready["pid"]
    said = bench.ask("said(host().start, settings(), speculates=False)")
    assert said.startswith("TakenError: somebody started sglang.service at ")
    assert bench.target.ready["pid"] == pid


def test_a_sweep_that_is_killed_leaves_the_service(bench):
    bench.begin("killed")
    bench.sweep()
    bench.wait_for(SERVER, "activating")
    assert bench.ask(f"said(runner_unit.start, Path('{ROOT}/second'), {bench.python!r})") == (
        f"BenchError: a sweep is under way on this host, {bench.run}: wait until it has ended, or end it "
        f"(systemctl stop {RUNNER})"
    )
    bench.target.ssh(f"kill -9 $(systemctl show {RUNNER} -p MainPID --value)")
    bench.is_back()
    ended = bench.target.record(f"{bench.run}/exit.json")
    assert (ended["status"], ended["reason"]) == (
        "failed",
        "the sweep was ended by signal KILL before it could say why",
    )
    assert bench.target.ssh(f"cat {bench.run}/log") == "put back: sglang.service is being started"


@pytest.mark.long
def test_a_sweep_that_is_stopped_leaves_the_service(bench):
    bench.begin("stopped")
    bench.sweep()
    bench.wait_for(SERVER, "activating")
    assert bench.ask("runner_unit.stop()") is True
    bench.is_back()
    assert bench.target.record(f"{bench.run}/exit.json")["status"] == "stopped"
    assert bench.ask("runner_unit.stop()") is False


@pytest.mark.long
def test_whoever_starts_the_service_gets_it(bench):
    bench.begin("taken")
    bench.sweep()
    bench.target.until(f"test -s {bench.run}/server", 120)
    bench.target.ssh("systemctl start sglang")
    pid = bench.target.ready["pid"]
    why = bench.target.until(f"cat {bench.run}/why", 60)
    assert why.startswith("taken: somebody started sglang.service")
    bench.is_back()
    assert bench.target.ready["pid"] == pid
