"""Which process belongs to which host, and that no other is hit."""

import signal
import subprocess
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from blackwell.sandbox import commands, nspawn, processes, supervisor
from blackwell.sandbox.settings import Settings

HERE = Settings(Path("/run/one"), Path("/cache"), IPv4Network("10.213.0.0/24"))
OTHERS = (replace(HERE, run=Path("/run/two")), replace(HERE, processes=HERE.processes + 1))


def process(argv=("sleep", "1"), cgroup="0::/\n", status="NSpid:\t7\n"):
    return processes.parse(7, b"".join(part.encode() + b"\0" for part in argv), cgroup, status)


@pytest.mark.parametrize("systemd", [True, False])
def test_a_supervisor_is_known_from_the_command_that_starts_it(systemd):
    found = process(supervisor.launcher(HERE, "web", systemd=systemd))
    assert processes.supervises(HERE, found) == "web"
    assert [processes.supervises(other, found) for other in OTHERS] == [None, None]


def test_systemd_nspawn_is_known_from_its_command():
    found = process(nspawn.command(HERE, "web"))
    assert processes.contains(HERE, found) == "web"
    assert [processes.contains(other, found) for other in OTHERS] == [None, None]


@pytest.mark.parametrize(
    "cgroup",
    [
        "4:memory:/caller/{}/host/system.slice/ssh.service\n0::/\n",
        "0::/machine.slice/{}.scope/host/payload/init.scope\n",
    ],
)
def test_what_runs_inside_is_known_from_its_cgroup(cgroup):
    found = process(cgroup=cgroup.format(HERE.machine("web-1")))
    assert processes.belongs(HERE, found) == "web-1"
    assert [processes.belongs(other, found) for other in OTHERS] == [None, None]


def test_a_process_that_only_mentions_the_sandbox_is_not_its():
    mentions = ("less", f"{HERE.run}/hosts/web/console.log", f"--machine={HERE.machine('web')}", processes.SUPERVISOR)
    assert processes.host_of(HERE, process(mentions)) is None


@pytest.mark.parametrize(
    ("status", "expected"),
    [("NSpid:\t7\t1\n", True), ("NSpid:\t7\t12\n", False), ("NSpid:\t1\n", False), ("NSpid:\t7\t12\t1\n", False)],
)
def test_the_hosts_pid_1_is_told_from_others(status, expected):
    assert process(status=status).is_init is expected


@pytest.mark.parametrize(("state", "ended"), [("Z (zombie)", True), ("S (sleeping)", False), ("D (disk sleep)", False)])
def test_a_zombie_counts_as_ended(state, ended):
    assert processes.has_ended(f"Name:\tx\nState:\t{state}\n") is ended


@pytest.fixture
def sleeping():
    with subprocess.Popen(["sleep", "60"]) as started:
        # For an instant after exec(2) /proc shows no arguments.
        assert commands.wait_until(lambda: processes.look(started.pid).argv == ("sleep", "60"), 5)
        yield started
        started.kill()


def test_a_process_of_the_kind_is_killed(sleeping):
    processes.kill(sleeping.pid, lambda found: found.argv == ("sleep", "60"))
    assert sleeping.wait(5) == -signal.SIGKILL


def test_a_process_of_another_kind_is_not_killed(sleeping):
    processes.kill(sleeping.pid, lambda found: found.argv == ("sleep", "61"))
    sleeping.terminate()
    assert sleeping.wait(5) == -signal.SIGTERM


def test_killing_a_process_that_is_gone_is_no_error():
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    processes.kill(ended.pid, lambda _: True)
