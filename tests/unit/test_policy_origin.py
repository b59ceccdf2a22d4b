"""Whether the policy of an inventory still holds is told by the run that measured it, on the host."""

import pytest

from blackwell import host_vars, policy_origin, remote, speculation_file, speculation_text
from blackwell.findings import OK, WARNING, Finding
from blackwell.inventory import Host, Inventory
from blackwell.speculation_setting import Setting
from blackwell.speculation_text import Origin

HOST = Host("box", "10.0.0.1", inventory="/inv")
SETTING = Setting(threshold=12)
MEASURED = Origin("fab -H box tune", "2026-01-01T00:00:00+00:00", "20260101-000000", "abc", "up to 12")


@pytest.fixture
def known(tmp_path):
    source = tmp_path / "hosts.yml"
    source.write_text("all: {hosts: {box: {}}}\n")
    return Inventory(str(source), {"box": {}}, {})


@pytest.fixture
def written(known):
    """Writes a file as fab does, and returns its path."""

    def write(origin):
        file = speculation_file.place(known, "box")
        file.parent.mkdir(parents=True)
        file.write_text(speculation_text.render("box", SETTING, origin))
        return file

    return write


@pytest.fixture
def host(monkeypatch):
    """What the host is asked for, and what it answers: a list of differences, or an error."""
    asked = []

    def answered(found):
        def call_packed(_connection, of, _archive, verb, **arguments):
            asked.append((of.name, verb, arguments["run"]))
            if isinstance(found, Exception):
                raise found
            return {"differences": found}

        monkeypatch.setattr(remote, "call_packed", call_packed)
        return asked

    return answered


def findings(known):
    return list(policy_origin.findings(None, HOST, known))


def test_a_policy_that_was_measured_on_what_runs_is_well(known, written, host):
    written(MEASURED)
    asked = host([])
    assert findings(known) == [Finding(OK, "the policy was measured by run 20260101-000000, on what runs now")]
    assert asked == [("box", "compare", "20260101-000000")]


def test_a_policy_of_another_server_is_void(known, written, host):
    written(MEASURED)
    host(["driver: 580.1 then, 590.2 now", "gpus: 8 then, 4 now"])
    (finding,) = findings(known)
    assert finding == Finding(
        WARNING,
        "the policy is void, run 20260101-000000 measured it on another server: driver: 580.1 then, 590.2 now; "
        "gpus: 8 then, 4 now",
        "fab -H box tune measures again",
    )


def test_a_run_that_the_host_has_no_more_is_no_warning(known, written, host):
    written(MEASURED)
    host(remote.RefusedError("box: there is no run 20260101-000000 on this host"))
    (finding,) = findings(known)
    assert finding.level == OK
    assert finding.what.endswith("cannot be told: box: there is no run 20260101-000000 on this host")


@pytest.mark.parametrize("origin", [None, Origin("fab -H box threshold 12", "2026-01-01T00:00:00+00:00")])
def test_what_no_run_has_measured_is_not_asked_about(known, written, host, origin):
    if origin:
        written(origin)
    asked = host([])
    assert findings(known) == []
    assert asked == []


def test_what_was_changed_by_hand_or_lies_elsewhere_is_not_asked_about(known, written, host):
    file = written(MEASURED)
    asked = host([])
    file.write_text(file.read_text().replace("12", "13"))
    assert findings(known) == []
    file.rename(file.with_name("zz.yml"))
    assert host_vars.setting(known, "box", speculation_file.VARIABLES) == [file.with_name("zz.yml")]
    assert findings(known) == []
    for nowhere in (Inventory("box,", {"box": {}}, {}), Inventory("/nowhere", {}, {})):
        assert list(policy_origin.findings(None, HOST, nowhere)) == []
    assert asked == []
