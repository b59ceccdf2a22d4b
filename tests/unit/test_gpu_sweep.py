"""What the sweep on a card refuses, and what it would do."""

import pytest


@pytest.fixture(scope="module")
def sweep(load):
    return load("tests/gpu/sweep.py")


@pytest.fixture
def cardless(sweep, monkeypatch):
    """The program on a machine without a card."""
    monkeypatch.setattr(sweep.machine, "cards", list)
    return sweep


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--levels", "0"], "level 0 is no number of clients from 1"),
        (["--arms", "base"], "base is no arm of this server, which drafts 3 steps"),
        (["--arms", "plain", "dynamic"], "arm dynamic needs full and plain"),
        (["--levels", "300"], "300 clients do not fit: 256 requests and 131072 tokens do"),
        (["--levels", "250", "--prompt-tokens", "1000"], "250 clients do not fit"),
        (["--repeats", "0"], "repeats is 0, not above 0"),
        ([], "nvidia-smi shows 0 cards"),
    ],
)
def test_what_cannot_be_is_refused(cardless, out, capsys, options, sentence):
    assert cardless.main([str(out), *options]) == 2
    assert sentence in capsys.readouterr().err
    assert not out.exists()


def test_a_package_that_is_not_there_is_refused(sweep, out, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(sweep.machine, "cards", lambda: ["NVIDIA H200, 580.1"])
    assert sweep.main([str(out), "--stock", str(tmp_path)]) == 2
    assert f"--stock is '{tmp_path}', where no stock sglang is" in capsys.readouterr().err
    assert not out.exists()


def test_a_dry_run_counts_points_and_starts_nothing(sweep, out, capsys):
    options = ["--dry-run", "--arms", "baseline", "full", "plain", "dynamic", "--levels", "1", "10"]
    assert sweep.main([str(out), *options]) == 0
    # Two arms of the engine's own, the baseline, and the policy beside the better one.
    assert capsys.readouterr().out.startswith(f"{2 * 3 * (1 + 2 + 2)} points of baseline, full, plain, dynamic: ")
    assert not out.exists()
