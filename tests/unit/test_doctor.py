"""Findings on a host: each thing that goes wrong is told once, with its level and what to do about it."""

import json

import pytest
from looks import BY_LOAD, HOST, INFORMATION, LOAD_STATE, LOOK, NOT_FOUND, PREVIOUS, RANK, UNIT, answer

from blackwell import doctor, findings
from blackwell.doctor import Clock
from blackwell.findings import OK, PROBLEM, WARNING, Finding
from blackwell.inventory import Inventory
from blackwell.speculation_setting import THRESHOLD

GIB = 2**30
READY = LOOK["unit"]["StateChangeTimestamp"].removeprefix("@")
DEPLOY = "ansible-playbook site.yml -i /inv --limit box"
LOST = {"name": "count", "level": PROBLEM, "what": "GPU 3 does not answer", "remedy": "see dmesg"}
WELL_CARDS = {"name": "count", "level": OK, "what": "7 x B, driver 580", "remedy": ""}
REPORT = INFORMATION | BY_LOAD
WELL = LOOK | {
    "memory": {"available": 20 * GIB, "total": 64 * GIB},
    "bench": {"sweep": "inactive", "server": "inactive", "run": None},
    "gpus": None,
    "information": answer(REPORT),
    "journal": [],
}
IN_STEP = Clock(0.1, 0.1)


def found(clock=IN_STEP, threshold=8, **changes):
    """The findings of a look with changes; what is None was not there."""
    look = {name: value for name, value in (WELL | changes).items() if value is not None or name == "gpus"}
    known = Inventory("/inv", {"box": {THRESHOLD: threshold}}, {})
    return doctor.findings(doctor.parse(HOST, known, "root", look, clock))


def wrong(**changes):
    return [finding for finding in found(**changes) if finding.level != OK]


def forced(steps):
    state = LOAD_STATE | {"forced_steps": steps, "steps": steps}
    return answer(REPORT | {"internal_states": [RANK | {"speculative_load_state": state}]})


def test_all_is_well():
    assert [(finding.level, finding.what) for finding in found()] == [
        (OK, "reached over SSH as root@10.0.0.1"),
        (OK, "sglang.service is active and generates"),
        (OK, "deployment 5f778176afecd71f runs, which is recorded as the last good one"),
        (OK, "the release has load policies, patch tree c1e502af"),
        (OK, "speculation: 3 steps up to 8 requests, plain above (margin 2, dwell 16); now 3 steps"),
        (OK, "acceptance length 2.24"),
        (OK, "75.0 GiB of 250.0 GiB free at /opt/sglang"),
        (OK, "20.0 GiB of 64.0 GiB of memory available"),
        (OK, "the host's clock is that of this machine, within 0.2 s"),
    ]
    assert findings.code(found()) == 0
    assert findings.render("box", found()).splitlines()[0] == "box: all is well"


STOPPED = UNIT | {"ActiveState": "failed", "SubState": "failed", "Result": "exit-code", "MainPID": "0"}
DOWN = {"unit": STOPPED, "health": None, "information": None, "load": None, "running": {}}
ERROR = {"time": float(READY) + 60, "text": "torch.cuda.OutOfMemoryError: CUDA out of memory."}


@pytest.mark.parametrize(
    ("changes", "finding"),
    [
        (DOWN, Finding(PROBLEM, "sglang.service is failed (failed, exit-code)", "fab -H box logs --lines 50")),
        (DOWN | {"unit": NOT_FOUND}, Finding(PROBLEM, "there is no sglang.service on the host", DEPLOY)),
        (
            {"health": answer("timed out", 0), "information": None, "load": None},
            Finding(PROBLEM, "/health does not answer (timed out)", "fab -H box logs --lines 50"),
        ),
        ({"good": {"text": PREVIOUS}}, Finding(WARNING, "deployment running is not the last good one", DEPLOY)),
        (
            {"unit": UNIT | {"NeedDaemonReload": "yes"}},
            Finding(WARNING, "sglang.service has changed on disk since systemd read it", DEPLOY),
        ),
        (
            {"unit": UNIT | {"UnitFileState": "disabled"}},
            Finding(WARNING, "sglang.service is disabled: it does not start with the host", DEPLOY),
        ),
        (
            {"unit": UNIT | {"MainPID": "7"}},
            Finding(
                WARNING,
                "/run/sglang/ready.json is of an earlier process",
                "on the host: systemctl restart sglang",
            ),
        ),
        (
            {"user": "ops", "previous": {"error": "x"}, "good": {"error": "Permission denied"}},
            Finding(
                WARNING,
                "ops may not read /var/lib/sglang/deployments",
                "set ansible_become: true for the host in its inventory",
            ),
        ),
        (
            {"unit": UNIT | {"NRestarts": "3"}},
            Finding(
                WARNING,
                "systemd has restarted sglang.service 3 times since it was started",
                "fab -H box logs --lines 500",
            ),
        ),
        (
            {"information": forced(0)},
            Finding(WARNING, "draft steps are FORCED to plain whatever the load", "fab -H box speculation auto"),
        ),
        (
            {"information": answer(INFORMATION | {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3})},
            Finding(
                WARNING,
                "the server (SGLang 0.5.9) has no load policies: its release is without the patch series",
                DEPLOY,
            ),
        ),
        (
            {"threshold": 12},
            Finding(
                WARNING,
                "the server was started with 3 steps up to 8 requests, plain above (margin 2, dwell 16), the inventory "
                "asks for 3 steps up to 12 requests, plain above (margin 2, dwell 16)",
                f"{DEPLOY} deploys that, with a restart",
            ),
        ),
        (
            {"information": answer(REPORT | {"speculative_disable_batch_threshold": 4}), "threshold": 4},
            Finding(
                WARNING,
                "the server was changed while it ran, to 3 steps up to 8 requests, plain above (margin 2, dwell 16), "
                "and was started with 3 steps up to 4 requests, plain above (margin 2, dwell 16)",
                "on the host, systemctl restart sglang returns to that",
            ),
        ),
        (
            {"journal": [ERROR, ERROR | {"time": float(READY) + 70, "text": "ERROR: a\nb"}]},
            Finding(
                WARNING,
                "2 errors in the journal, the last at 2026-11-29 13:53:24 UTC: ERROR: a",
                "fab -H box logs --lines 500",
            ),
        ),
        (
            {"disk": {"free": GIB // 2, "total": 250 * GIB}},
            Finding(
                PROBLEM,
                "0.5 GiB of 250.0 GiB free at /opt/sglang",
                "on the host: du -xh --max-depth=2 / | sort -h",
            ),
        ),
        (
            {"disk": {"free": 3 * GIB, "total": 250 * GIB}},
            Finding(
                WARNING,
                "3.0 GiB of 250.0 GiB free at /opt/sglang, less than the 6000 MiB that a deployment asks for",
                "on the host: du -xh --max-depth=2 / | sort -h",
            ),
        ),
        (
            {"memory": {"available": GIB, "total": 64 * GIB}},
            Finding(
                WARNING,
                "1.0 GiB of 64.0 GiB of memory available",
                "on the host: ps -e --sort=-rss -o rss,pid,cmd | head",
            ),
        ),
        (
            {"clock": Clock(-90.0, 0.1)},
            Finding(WARNING, "the host's clock is 1 min 30 s behind this machine's", "on the host: timedatectl"),
        ),
        (
            {"clock": Clock(2.3, 0.1)},
            Finding(WARNING, "the host's clock is 2 s ahead of this machine's", "on the host: timedatectl"),
        ),
        (
            {"bench": {"sweep": "inactive", "server": "active", "run": None}},
            Finding(
                WARNING,
                "blackwell-bench-server.service is active, and no measurement is under way that it is for",
                "on the host: systemctl stop blackwell-bench-server.service",
            ),
        ),
        (
            {"bench": {"sweep": "inactive", "server": "failed", "run": None}},
            Finding(
                WARNING,
                "blackwell-bench-server.service is failed, and no measurement is under way that it is for",
                "on the host: systemctl reset-failed blackwell-bench-server.service",
            ),
        ),
        # A measurement takes the service down, which is then no problem of its own.
        (
            DOWN
            | {
                "unit": STOPPED | {"ActiveState": "inactive", "SubState": "dead", "Result": "success"},
                "bench": {"sweep": "active", "server": "active", "run": "20261130-061500"},
            },
            Finding(
                WARNING,
                "a measurement is under way, run 20261130-061500: sglang.service is down for as long",
                "wait for it, or on the host: systemctl stop blackwell-bench.service, which puts the service back",
            ),
        ),
        (
            {"bench": {"sweep": "active", "server": "inactive", "run": None}},
            Finding(
                WARNING,
                "a measurement is under way, of an unknown run",
                "wait for it, or on the host: systemctl stop blackwell-bench.service, which puts the service back",
            ),
        ),
        (
            {"gpus": {"text": json.dumps({"findings": [LOST, WELL_CARDS]})}},
            Finding(PROBLEM, "GPU 3 does not answer (count)", "see dmesg"),
        ),
        (
            {"gpus": {"error": "no answer within 100 s"}},
            Finding(
                PROBLEM,
                "the GPUs could not be looked at: no answer within 100 s",
                "on the host: nvidia-smi; dmesg | grep -i nvrm",
            ),
        ),
        (
            {"gpus": {"error": "SyntaxError: of old"}},
            Finding(
                WARNING,
                "the GPUs could not be looked at: SyntaxError: of old",
                "on the host: nvidia-smi; dmesg | grep -i nvrm",
            ),
        ),
    ],
)
def test_what_goes_wrong_is_told_once(changes, finding):
    assert wrong(**changes) == [finding]
    assert findings.code(found(**changes)) == 1


COLLAPSED = RANK | {"avg_spec_accept_length": 1.02}


def test_an_acceptance_that_has_collapsed():
    states = [COLLAPSED | {"speculative_load_state": LOAD_STATE}]
    assert wrong(information=answer(REPORT | {"internal_states": states})) == [
        Finding(
            WARNING,
            "the acceptance length is 1.02: next to nothing that is drafted is accepted",
            "fab -H box speculation off, and check model_draft_path against model_path",
        )
    ]


def test_an_acceptance_that_nobody_can_help_while_nothing_is_drafted():
    states = [COLLAPSED | {"speculative_load_state": LOAD_STATE | {"forced_steps": 0, "steps": 0}}]
    (finding,) = wrong(information=answer(REPORT | {"internal_states": states}))
    assert "FORCED" in finding.what


@pytest.mark.parametrize(
    "entry",
    [
        ERROR | {"time": float(READY) - 1},
        {"time": float(READY) + 1, "text": "[2026-11-29 13:55:00] WARNING: a request was retried"},
    ],
)
def test_what_is_no_error_of_the_server_that_runs(entry):
    assert wrong(journal=[entry]) == []


def test_an_error_that_a_warning_tells_of_is_one():
    entry = {"time": float(READY) + 1, "text": "WARNING: torch.cuda.OutOfMemoryError: out of memory"}
    assert len(wrong(journal=[entry])) == 1


def test_errors_of_a_server_that_is_down_are_those_of_a_day():
    old = ERROR | {"time": WELL["now"] - 2 * 86400}
    told = wrong(**DOWN, journal=[old, ERROR])
    assert [finding.what[:9] for finding in told] == ["sglang.se", "1 error i"]


def test_a_clock_that_cannot_be_told_better_is_no_finding():
    assert wrong(clock=Clock(3.0, 1.5)) == []


def test_the_clock_of_a_host():
    assert doctor.clock(100.0, 103.5, 101.0) == Clock(3.0, 0.5)


def test_a_host_outside_of_inventories_is_compared_with_what_it_was_started_with_only():
    look = doctor.parse(HOST, Inventory("none", {}, {}), "root", WELL, IN_STEP)
    assert all(finding.level == OK for finding in doctor.findings(look))


def test_the_screen_begins_with_what_is_worst():
    shown = findings.render("box", found(**DOWN, clock=Clock(90.0, 0.1), disk={"free": 1, "total": GIB})).splitlines()
    assert shown[:5] == [
        "box: 2 problems, 1 warning",
        "  problem  sglang.service is failed (failed, exit-code)",
        "           -> fab -H box logs --lines 50",
        "  problem  0.0 GiB of 1.0 GiB free at /opt/sglang",
        "           -> on the host: du -xh --max-depth=2 / | sort -h",
    ]
    assert shown[5].startswith("  warning  the host's clock")
    assert shown[7].startswith("  ok       reached over SSH")


def test_for_scripts():
    said = json.loads(findings.as_json("box", 1, [Finding(WARNING, "a", "b")]))
    assert said == {"host": "box", "exit": 1, "findings": [{"level": "warning", "what": "a", "remedy": "b"}]}
