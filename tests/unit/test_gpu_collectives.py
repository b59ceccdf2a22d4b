"""The program that compares the sums of several cards with NCCL's: its options, its ranks, its verdict."""

import json
import textwrap

import pytest


@pytest.fixture(scope="module")
def program(load):
    return load("tests/gpu/collectives.py")


@pytest.fixture
def cards(tmp_path, monkeypatch):
    """Two cards, as nvidia-smi shows them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    smi = folder / "nvidia-smi"
    smi.write_text('#!/bin/sh\ncase "$*" in *compute_cap*) echo 9.0; echo 9.0 ;; *) echo A, 1; echo A, 1 ;; esac\n')
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


SUM = {"what": "sum", "bytes": 4096, "wanted": "one-shot", "ran": {"one-shot": 1}, "is_right": True}
TIME = {"what": "time", "bytes": 4096, "way": "one-shot", "us": 7.5, "nccl_us": 21.25}
END = {"what": "end"}


@pytest.fixture
def ranks(request, program, tmp_path, monkeypatch):
    """Runs the program with ranks that note given rows and then do something; returns its status."""

    request.getfixturevalue("cards")

    def run(rows, then="", *arguments):
        rank = tmp_path / "rank.py"
        rank.write_text(
            textwrap.dedent("""
                import os, pathlib, signal, sys
                out, rank, ranks, port, built = sys.argv[1:]
                rows = pathlib.Path(__file__).with_name("rows").read_text().splitlines(keepends=True)
                with open(f"{out}/rank-{rank}.jsonl", "w") as said:
                    said.writelines(rows)
            """)
            + then
        )
        (tmp_path / "rows").write_text("".join(json.dumps(row) + "\n" for row in rows))
        monkeypatch.setattr(program, "RANK", rank)
        return program.main([str(tmp_path / "out"), *arguments])

    return run


def test_equal_sums_are_a_success(ranks, tmp_path, capsys):
    assert ranks([SUM, TIME, END]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split() for line in said[:2]] == [
        ["sum", "of", "4096", "bytes", "by", "one-shot", "equal", "one-shot", "x1", "|", "one-shot", "x1"],
        ["time", "of", "4096", "bytes", "7.50", "us", "by", "one-shot,", "21.25", "us", "by", "nccl"],
    ]
    result = json.loads((tmp_path / "out/collectives.json").read_text())
    assert (result["gpu"], result["problems"], result["ranks"]) == ("2 x A", [], [[SUM, TIME, END]] * 2)


def test_a_sum_that_went_another_way_is_a_failure(ranks, capsys):
    assert ranks([{**SUM, "ran": {"nccl": 1}, "is_right": False}, END]) == 1
    said = capsys.readouterr().out
    assert "rank 1: sum of 4096 bytes by one-shot ran as {'nccl': 1}" in said
    assert "WRONG" in said


def test_a_rank_that_stops_in_the_middle_is_a_failure(ranks, capsys):
    assert ranks([SUM], "sys.exit(3)") == 1
    assert "rank 0 ended with 3 after sum of 4096 bytes by one-shot" in capsys.readouterr().out


def test_a_rank_that_noted_nothing_is_a_failure(ranks, capsys):
    assert ranks([], "sys.exit(3)") == 1
    assert "rank 0 ended with 3 after nothing" in capsys.readouterr().out


def test_ranks_that_hang_are_killed_and_named(ranks, capsys):
    assert ranks([SUM], "signal.pause()", "--seconds", "1") == 1
    assert "rank 1 was killed after sum of 4096 bytes by one-shot" in capsys.readouterr().out


def test_the_others_do_not_wait_for_a_rank_that_failed(ranks, capsys):
    fail = "if rank == '0':\n    sys.exit(3)\nsignal.pause()\n"
    assert ranks([SUM], fail, "--seconds", "600") == 1
    said = capsys.readouterr().out
    assert "rank 0 ended with 3" in said
    assert "rank 1 was killed" in said


def test_ranks_know_the_real_architecture_and_have_no_multicast(ranks, tmp_path):
    keys = ["FLASHINFER_CUDA_ARCH_LIST", "TORCH_SYMM_MEM_DISABLE_MULTICAST", "SGLANG_IS_FLASHINFER_AVAILABLE"]
    ranks([END], f"print(*(os.environ[key] for key in {keys}))")
    assert (tmp_path / "out/rank-1.log").read_text() == "9.0a 1 true\n"


def test_what_an_earlier_run_noted_does_not_count(ranks):
    ranks([SUM, END])
    assert ranks([SUM, END], "os.unlink(f'{out}/rank-{rank}.jsonl')") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tp", "1"], "--tp is 1, and one card has nothing to sum"),
        (["--tp", "4"], "--tp is 4, and nvidia-smi shows 2 cards"),
        (["--built", "/absent"], "--built: /absent has no trtllm_comm_sm120/trtllm_comm_sm120.so"),
    ],
)
@pytest.mark.usefixtures("cards")
def test_a_wrong_option_is_one_sentence(program, tmp_path, capsys, *, arguments, said):
    assert program.main([str(tmp_path / "out"), *arguments]) == 2
    assert capsys.readouterr().err == f"collectives.py: {said}\n"
    assert not (tmp_path / "out").exists()
