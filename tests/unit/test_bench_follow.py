"""Somebody watches a sweep: connections break, hosts are unknown, the sweep ends."""

import io
import json
import zipfile
from contextlib import contextmanager

import pytest

from blackwell import remote, sweep_package
from blackwell.bench_control import bodies, follow, results
from blackwell.host_errors import HostError

BROKEN = HostError("box: the connection broke: reset")


def look(*events, offset=0, under_way=True, service="inactive"):
    found = {"run": "one", "events": list(events), "offset": offset, "under_way": under_way}
    return found | {"ended": None, "service": service, "log": ""}


def event(name, **content):
    return {"at": 0, "event": name, **content}


OVER = look(under_way=False, service="active")


@pytest.fixture
def watched(monkeypatch):
    """Follows a sweep whose looks are given; an error among them breaks the connection."""
    monkeypatch.setattr(follow, "POLL_SECONDS", 0.0)

    def run(*looks):
        left, asked, out = list(looks), [], io.StringIO()

        def answer(_connection, _host, archive, verb, **arguments):
            asked.append((archive, verb, arguments))
            found = left.pop(0)
            if isinstance(found, HostError):
                raise found
            return found

        @contextmanager
        def opened():
            yield None, None

        monkeypatch.setattr(remote, "call_packed", answer)
        follower = follow.Follower(opened, b"zip", "", 0, out)
        try:
            return follower.follow(), out.getvalue(), asked
        finally:
            run.asked = asked

    return run


def test_events_are_shown_once_and_asked_for_from_where_they_ended(watched):
    found, shown, asked = watched(
        look(event("prompts", prompts="random"), offset=10),
        look(event("end", status="done", reason=""), offset=20, under_way=False, service="activating"),
        look(offset=20, under_way=False, service="activating"),
        OVER,
    )
    assert found == OVER
    assert shown == "preparing prompts: random\nthe sweep ended: done\n"
    assert [(arguments["run"], arguments["offset"]) for _, _, arguments in asked] == [
        ("", 0),
        ("one", 10),
        ("one", 20),
        ("one", 20),
    ]


def test_a_connection_that_breaks_is_opened_again(watched):
    found, shown, _ = watched(look(offset=5), BROKEN, BROKEN, OVER)
    assert found == OVER
    assert shown == "box: the connection broke: reset; connecting again\n" * 2


def test_a_host_that_stays_away_is_left_to_the_operator(watched):
    with pytest.raises(HostError, match=r"the connection broke: reset; the sweep goes on by itself: bench\.follow"):
        watched(look(), *[BROKEN] * (follow.MOST_BREAKS + 1))


def test_a_host_that_was_never_reached_is_not_asked_again(watched):
    with pytest.raises(HostError, match=r"^box: the connection broke: reset$"):
        watched(BROKEN)
    assert len(watched.asked) == 1


def test_a_host_that_refuses_is_not_asked_again(watched):
    with pytest.raises(remote.RefusedError):
        watched(look(), remote.RefusedError("box: there is no run on this host"))
    assert len(watched.asked) == 2


def test_an_interrupt_says_that_the_sweep_goes_on():
    said = []
    with pytest.raises(SystemExit) as ended, follow.detachable(said.append):
        raise KeyboardInterrupt
    assert (ended.value.code, said) == (130, [follow.goes_on()])


@pytest.mark.parametrize(
    ("ended", "code", "words"),
    [
        ({"status": "done", "reason": ""}, 0, "run one is in"),
        ({"status": "stopped", "reason": "it was told to stop"}, 1, "the sweep ended early (it was told to stop)"),
        (None, 1, "the sweep was cut off (the last line)"),
    ],
)
def test_how_a_run_ended_is_said(tmp_path, ended, code, words):
    said = []
    assert bodies.outcome(tmp_path, OVER | {"ended": ended, "log": "the last line"}, said.append) == code
    assert words in said[-1]


def test_runs_that_came_home_are_found(tmp_path):
    with pytest.raises(HostError, match="box: no run is in"):
        results.here("box", "", tmp_path)
    for name in ("20260102-000000", "20260101-000000"):
        (tmp_path / "box" / name).mkdir(parents=True)
        (tmp_path / "box" / name / "plan.json").write_text("{}")
    assert results.here("box", "", tmp_path).name == "20260102-000000"
    assert results.here("box", "20260101-000000", tmp_path).name == "20260101-000000"
    with pytest.raises(HostError, match="box: run other is not in"):
        results.here("box", "other", tmp_path)


def test_a_broken_result_names_its_file(tmp_path):
    (tmp_path / "policy.json").write_text('{"policy": ')
    with pytest.raises(HostError, match=r"policy\.json cannot be read"):
        results.outcome(tmp_path)
    (tmp_path / "policy.json").write_text(json.dumps({"policy": {}}))
    assert results.outcome(tmp_path) == {"policy": {"policy": {}}, "proof": {}}


def test_the_program_is_the_same_bytes_each_time_and_has_its_prompts():
    packed = sweep_package.packed()
    assert packed == sweep_package.packed()
    names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert {"blackwell/sweep/main.py", "blackwell/locks.py", "blackwell/bench/prompts/coding.jsonl"} <= set(names)
    assert not [name for name in names if "remote" in name or "__pycache__" in name]
