"""What an all-reduce proved, what is wrong with it, and what to do then."""

from dataclasses import replace

import pytest

from blackwell.host_errors import HostError
from blackwell.interconnect import proof
from blackwell.interconnect.proof import Proof, Size

GOOD = Proof(
    kind="cuda",
    ranks=2,
    beside=False,
    reached=("done", "done"),
    failed={},
    peers=2,
    facts={"gpu": "NVIDIA H200", "torch": "2.9.1", "nccl": "2.27.5"},
    sizes=(Size(2**20, 0, 50e-6), Size(2**28, 0, 1e-3)),
)


def told(rank, *, wrong=0, seconds=1e-3):
    return [
        {"stage": "imported torch", "torch": "2.9.1"},
        {"stage": "opened its GPU", "gpu": "NVIDIA H200", "nccl": "2.27.5", "peers": [1 - rank]},
        {"stage": "summed one number"},
        {"stage": "summed 1024 bytes", "size": 1024, "wrong": wrong, "seconds": seconds},
        {"stage": "done"},
    ]


def rank(rows, *, status=0, said=""):
    return {"told": rows, "status": status, "said": said}


def test_the_slowest_rank_counts_and_wrong_sums_of_all():
    rows = [rank(told(0, wrong=1, seconds=2e-3)), rank(told(1, wrong=2))]
    found = proof.parse("box", "cuda", {"ranks": rows, "total": 2, "active": True})
    assert found.sizes == (Size(1024, 3, 2e-3),)
    assert (found.peers, found.beside, found.facts) == (2, True, GOOD.facts)
    assert not found.hung
    assert not found.sums
    assert proof.verdict(found, None) == ["3 sums of 1024 bytes were wrong"]


def test_what_could_not_be_run_is_an_error_that_names_the_host():
    with pytest.raises(HostError, match=r"^box: it has no GPU, and an all-reduce takes two$"):
        proof.parse("box", "cuda", {"problem": "it has no GPU, and an all-reduce takes two"})


def test_a_hang_says_how_far_the_ranks_came_and_what_to_do():
    rows = [rank(told(0)[:2], status=None), rank(told(1)[:3], status=None)]
    found = proof.parse("box", "cuda", {"ranks": rows, "active": False})
    wrong = proof.verdict(found, GOOD)
    assert wrong == [
        "it hung; 1 of 2 ranks had reached: opened its GPU, 1 of 2 ranks had reached: summed one number"
    ]  # fmt: skip
    todo = proof.remedies(found, wrong, "box")
    assert todo[0] == "fab -H box doctor"
    assert all(any(word in step for step in todo) for word in ("IOMMU", "ACS", "NCCL_P2P_DISABLE=1"))


def test_a_rank_that_told_nothing():
    found = proof.parse("box", "cuda", {"ranks": [rank([], status=None), rank([], status=None)], "active": False})
    assert proof.verdict(found, None) == ["it hung; 2 of 2 ranks had reached: nothing"]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("Traceback\n  File\ntorch.OutOfMemoryError: CUDA out\n[W] leaked\n", "torch.OutOfMemoryError: CUDA out"),
        ("ValueError: first\nDuring handling\nRuntimeError: second\n", "RuntimeError: second"),
        ("Bus error\n\n", "Bus error"),
        ("", "it ended with -9"),
    ],
)  # fmt: skip
def test_a_rank_that_failed_says_why(said, line):
    rows = [rank(told(0)[:2], status=None), rank(told(1)[:1], status=-9, said=said)]
    found = proof.parse("box", "cuda", {"ranks": rows, "active": False})
    assert proof.verdict(found, None) == [f"rank 1 failed after imported torch: {line}"]
    assert proof.remedies(found, ["it"], "box") == ["fab -H box doctor"]


def test_all_is_well():
    assert proof.verdict(GOOD, None) == proof.verdict(GOOD, GOOD) == proof.remedies(GOOD, [], "box") == []


@pytest.mark.parametrize(("seconds", "slower"), [(1e-3, False), (1.2e-3, False), (1.3e-3, True), (0.1e-3, False)])
def test_slower_than_the_last_time(seconds, slower):
    now = replace(GOOD, sizes=(GOOD.sizes[0], Size(2**28, 0, seconds)))
    assert bool(proof.verdict(now, GOOD)) == slower
    if slower:
        assert proof.verdict(now, GOOD) == ["268435456 bytes took 1.30 times as long as the last time"]


def test_only_sizes_that_both_have_are_compared_and_no_speed_of_a_failure():
    assert proof.verdict(replace(GOOD, sizes=(Size(7, 0, 9.0),)), GOOD) == []
    wrong = replace(GOOD, sizes=(Size(2**20, 4, 9.0), GOOD.sizes[1]))
    assert proof.verdict(wrong, GOOD) == ["4 sums of 1048576 bytes were wrong"]


def test_the_bandwidth_of_the_bus():
    # nccl-tests, PERFORMANCE.md: algorithm bandwidth times 2 (n - 1) / n.
    assert proof.bus_bandwidth(Size(2**30, 0, 0.5), 8) == pytest.approx(2**31 * 2 * 7 / 8)
    assert proof.bus_bandwidth(Size(2**30, 0, 0.5), 2) == pytest.approx(2**31)


def test_the_processor_has_no_bridges():
    assert proof.remedies(replace(GOOD, kind="cpu", reached=("done", "nothing")), ["it hung"], "box") == []
