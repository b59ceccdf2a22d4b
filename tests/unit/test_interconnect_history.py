"""Proofs that were kept: the last one that compares."""

import json
from dataclasses import replace

import pytest
from test_interconnect_proof import GOOD

from blackwell.host_errors import HostError
from blackwell.interconnect import history, screen
from blackwell.interconnect.proof import Size


def test_what_was_kept_is_read_as_it_was(tmp_path):
    failed = replace(GOOD, failed={1: "RuntimeError: x"}, reached=("done", "nothing"))
    for at, made in ((1.0, GOOD), (2.0, failed)):
        assert history.keep("box", at, made, tmp_path) == tmp_path / "box" / "interconnect.jsonl"
    assert history.last("box", GOOD, tmp_path) == (1.0, GOOD)


@pytest.mark.parametrize(
    "other",
    [
        replace(GOOD, beside=True),
        replace(GOOD, ranks=8),
        replace(GOOD, kind="cpu"),
        replace(GOOD, reached=("done", "summed one number")),
        replace(GOOD, sizes=(Size(2**20, 1, 1e-6),)),
    ],
)
def test_another_setting_and_a_failure_do_not_compare(tmp_path, other):
    history.keep("box", 1.0, other, tmp_path)
    assert history.last("box", GOOD, tmp_path) is None
    history.keep("box", 2.0, GOOD, tmp_path)
    history.keep("box", 3.0, other, tmp_path)
    assert history.last("box", GOOD, tmp_path) == (2.0, GOOD)


def test_a_host_that_has_none(tmp_path):
    assert history.last("box", GOOD, tmp_path) is None


@pytest.mark.parametrize("line", ["{", "[]", '{"at": 1.0}', '{"at": 1, "kind": "cuda", "more": 2}'])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    file = history.keep("box", 1.0, GOOD, tmp_path)
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(HostError) as raised:
        history.last("box", GOOD, tmp_path)
    assert str(raised.value) == f"{file}, line 2: no record of an all-reduce; take the line out"


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "box").write_text("")
    with pytest.raises(HostError, match=r"box/interconnect.jsonl cannot be written: "):
        history.keep("box", 1.0, GOOD, tmp_path)


def test_the_screen():
    slow = replace(GOOD, sizes=(Size(2**15, 0, 20e-6), Size(2**28, 0, 2e-3)))
    shown = screen.render("box", slow, (0.0, GOOD), ["it is slow"], ["look"])
    assert shown.splitlines() == [
        "box: it is slow",
        "  -> look",
        "  NVIDIA H200, torch 2.9.1, nccl 2.27.5, 2 of 2 pairs read each other's memory",
        "    32 KiB        20.0 us      1.64 GB/s on the bus",
        "   256 MiB      2000.0 us    134.22 GB/s on the bus, 0.50 of the last time's speed",
        "  the last time was 1970-01-01 00:00:00",
    ]
    first = screen.render("box", replace(GOOD, beside=True), None, [], []).splitlines()
    assert first[0] == "box: 2 GPUs sum what they hold, rightly"
    assert first[1].endswith(", beside the server")
    assert first[-1] == "  there was no other time to compare with"


def test_for_scripts():
    told = json.loads(screen.as_json("box", GOOD, (5.0, GOOD), ["a"], ["b"]))
    assert (told["host"], told["wrong"], told["remedies"], told["ranks"]) == ("box", ["a"], ["b"], 2)
    assert told["sizes"][1] == {"bytes": 2**28, "wrong": 0, "seconds": 1e-3, "bus_bandwidth": 2**28 / 1e-3}
    assert told["last"]["at"] == 5.0
