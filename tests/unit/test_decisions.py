"""What tensor-parallel ranks decided: when it counts as the same, and what is said of it."""

import json

import pytest


@pytest.fixture(scope="module")
def decisions(load):
    return load("tests/patches/decisions.py")


def decode(steps, requests=4, tokens=100):
    return {"round": "decode", "requests": requests, "steps": steps, "of": 17, "tokens": tokens}


PREFILL = {"round": "extend", "requests": 1, "steps": None, "of": 3, "tokens": 64}
FORCED = {"forced": 0, "policy": 5}
TAKEN = [PREFILL, decode(3), FORCED, decode(0), decode(0), decode(3), decode(1)]


def test_ranks_that_decided_the_same(decisions):
    assert decisions.summary([TAKEN, list(TAKEN), list(TAKEN)]) == {
        "rounds": [6, 6, 6],
        "decode_rounds": {"0": 2, "1": 1, "3": 2},
        "tier_changes": 3,
        "live_changes": 1,
        "same": True,
    }


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(decode(1), id="other steps"),
        pytest.param(decode(0, requests=5), id="a request more"),
        pytest.param(decode(0, tokens=101), id="a token more"),
        pytest.param({**decode(0), "of": 18}, id="other requests"),
        pytest.param(FORCED, id="a change one round later"),
    ],
)
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_the_first_difference_shows_what_each_rank_decided(decisions, other, rank):
    ranks = [list(TAKEN), list(TAKEN), list(TAKEN)]
    ranks[rank][3], ranks[rank][5] = other, other
    summary = decisions.summary(ranks)
    there = [TAKEN[3]] * 3
    there[rank] = other
    assert summary["same"] is False
    assert summary["difference"] == {"number": 3, "ranks": there}


def test_a_rank_may_lack_the_last_decision_of_another(decisions):
    assert decisions.difference([TAKEN, TAKEN[:-1]]) is None
    assert decisions.difference([TAKEN[:-1], TAKEN]) is None


@pytest.mark.parametrize("lacking", [2, len(TAKEN)])
def test_a_rank_that_lacks_more_has_stopped(decisions, lacking):
    fewer = TAKEN[: len(TAKEN) - lacking]
    assert decisions.difference([TAKEN, fewer]) == {"number": len(fewer), "ranks": [TAKEN[len(fewer)], None]}


def test_a_difference_before_the_end_of_the_shorter_one_comes_first(decisions):
    assert decisions.difference([TAKEN, [*TAKEN[:2], decode(1)]])["number"] == 2


def test_a_line_that_is_still_being_written_is_left_out(decisions, tmp_path):
    lines = "".join(json.dumps(decision) + "\n" for decision in TAKEN)
    (tmp_path / "decisions-0").write_text(lines)
    (tmp_path / "decisions-1").write_text(lines[:-5])
    assert decisions.read(tmp_path, 2) == [TAKEN, TAKEN[:-1]]


def test_a_rank_without_a_file_is_named(decisions, tmp_path):
    (tmp_path / "decisions-0").write_text("")
    with pytest.raises(FileNotFoundError, match="decisions-1"):
        decisions.read(tmp_path, 2)


def test_a_rank_that_is_behind_is_waited_for(decisions, tmp_path, monkeypatch):
    lines = [json.dumps(decision) + "\n" for decision in TAKEN]
    (tmp_path / "decisions-0").write_text("".join(lines))
    (tmp_path / "decisions-1").write_text("".join(lines[:-2]))
    monkeypatch.setattr(decisions.time, "sleep", lambda _: (tmp_path / "decisions-1").write_text("".join(lines)))
    assert decisions.settled(tmp_path, 2) == [TAKEN, TAKEN]


def test_one_that_stays_behind_is_not_waited_for_without_end(decisions, tmp_path):
    (tmp_path / "decisions-0").write_text(json.dumps(PREFILL) + "\n")
    (tmp_path / "decisions-1").write_text("")
    assert decisions.settled(tmp_path, 2, seconds=0) == [[PREFILL], []]
