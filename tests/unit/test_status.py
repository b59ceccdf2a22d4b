import json

import pytest
from looks import GOOD, HOST, INFORMATION, LOOK, NOT_FOUND, PREVIOUS, QUEUE, RANK, UNIT, answer

from blackwell import status
from blackwell.status import Deployment, Disk, Load


def seen(**changes):
    """The status of a look with changes; what is None was not there."""
    found = {name: value for name, value in (LOOK | changes).items() if value is not None}
    return status.parse(HOST, "root", found | {"current": changes.get("current", LOOK["current"])})


def unit(**changes):
    return UNIT | changes


def test_a_server_that_runs():
    found = seen()
    assert found.ready
    assert status.remarks(found) == ()
    assert found.release == "0.5.9-c1e502af0b3c.3"
    assert found.running == found.good == Deployment("5f778176afecd71f", "0.5.9-c1e502af0b3c.3")
    assert found.previous == Deployment("b757bece3255c9fe", "0.5.9-c1e502af0b3c.2")
    assert (found.unit.since, found.unit.memory, found.unit.restarts) == (1795960334, 2**30, 0)
    assert found.disk == Disk(75 * 2**30, 250 * 2**30)


@pytest.mark.parametrize(
    ("changes", "reasons"),
    [
        ({"unit": NOT_FOUND, "health": None}, [status.NO_SERVICE]),
        (
            {"unit": unit(ActiveState="inactive", SubState="dead", MainPID="0"), "health": None},
            ["sglang.service is inactive (dead)"],
        ),
        (
            {"unit": unit(ActiveState="activating", SubState="auto-restart", Result="exit-code"), "health": None},
            ["sglang.service is activating (auto-restart, exit-code)"],
        ),
        (
            {
                "unit": unit(ActiveState="activating", SubState="start-post"),
                "health": answer("[Errno 111] Connection refused", 0),
            },
            [
                "sglang.service is activating (start-post)",
                "/health does not answer ([Errno 111] Connection refused)",
            ],
        ),
        # It generates already, but systemd has not seen it yet.
        (
            {"unit": unit(ActiveState="activating", SubState="start-post")},
            ["sglang.service is activating (start-post)"],
        ),
        ({"health": answer("", 503)}, ["/health answers 503"]),
        ({"health": answer("timed out", 0)}, ["/health does not answer (timed out)"]),
        (
            {"health": None, "address": {"host": None, "port": None}},
            ["the command line of the service has no --host and --port to ask at"],
        ),
    ],
)
def test_not_ready_and_why(changes, reasons):
    found = seen(**changes)
    assert not found.ready
    assert list(found.reasons) == reasons


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"good": {"text": PREVIOUS}}, "deployment running is not the last good one"),
        (
            {"current": "/opt/sglang/releases/0.5.9-other.1"},
            "/opt/sglang/current is 0.5.9-other.1, the server runs another release",
        ),
        ({"unit": unit(MainPID="7")}, "/run/sglang/ready.json is of an earlier process"),
        ({"unit": unit(NeedDaemonReload="yes")}, "sglang.service has changed on disk since systemd read it"),
        ({"unit": unit(UnitFileState="disabled")}, "sglang.service is disabled: it does not start with the host"),
        (
            {"user": "ops", "good": {"error": "Permission denied"}, "journal_readable": False},
            "ops may not read /var/lib/sglang/deployments and the journal",
        ),
    ],
)
def test_what_is_odd_is_remarked_and_no_reason(changes, remark):
    found = seen(**changes)
    assert status.remarks(found) == (remark,)
    assert found.ready


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_record_that_is_broken_is_none(text):
    assert seen(running={"text": text}).running is None


@pytest.mark.parametrize("memory", ["[not set]", "18446744073709551615", ""])
def test_memory_that_systemd_does_not_count(memory):
    assert status.unit(unit(MemoryCurrent=memory)).memory is None


def test_nothing_was_ever_deployed():
    found = seen(running={}, good={}, previous={}, current=None, disk={"error": "No such file or directory"})
    assert (found.running, found.good, found.previous, found.release, found.disk) == (None,) * 5


def test_load_over_all_ranks():
    information = answer(INFORMATION | {"internal_states": [RANK, RANK | {"avg_spec_accept_length": 3.2375}]})
    assert status.load(information, answer([QUEUE, QUEUE])) == Load(
        running=6, waiting=4, limit=16, throughput=pytest.approx(7.8568725), acceptance_length=pytest.approx(2.7375)
    )


def test_load_without_speculation():
    plain = {name: value for name, value in RANK.items() if name != "avg_spec_accept_length"}
    found = status.load(answer(INFORMATION | {"internal_states": [plain]}), answer([QUEUE]))
    assert (found.acceptance_length, found.running) == (None, 3)


@pytest.mark.parametrize(
    "said", [None, answer("Not Found", 404), answer(INFORMATION, 500), answer("timed out", 0), answer("no JSON")]
)
def test_load_that_the_server_does_not_report(said):
    assert status.load(said, said) == Load()


def test_json_for_scripts():
    said = json.loads(status.as_json(seen(health=answer("", 503))))
    assert (said["host"], said["ready"], said["reasons"]) == ("box", False, ["/health answers 503"])
    assert said["good"] == json.loads(GOOD)
    assert said["unit"]["restarts"] == 0
