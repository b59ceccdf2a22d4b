"""Which run is meant by what was typed."""

import made_runs
import pytest

from blackwell.host_errors import HostError
from blackwell.report import run_names
from blackwell.sweep.points import Key

KEY = Key("deployed", 256, "full", 1, 1)
POINT = made_runs.points()[KEY]


@pytest.fixture
def results(tmp_path):
    """Two runs of box1, whose names do not sort as they began, and one of box2."""
    for place, began in (("box1/zero", 1000.0), ("box1/later", 2000.0), ("box2/20261130-061500", 500.0)):
        host, run = place.split("/")
        found = {KEY: POINT | {"began": began}}
        made_runs.write(tmp_path / "results" / place, found, plan={"host": host, "run": run})
    return tmp_path / "results"


def sentence(text, results, option="RUN"):
    with pytest.raises(HostError) as caught:
        run_names.find(option, text, results)
    return str(caught.value)


def test_a_host_and_a_run(results):
    assert run_names.find("RUN", "box1/zero", results) == results / "box1/zero"


def test_a_host_stands_for_its_newest_run(results):
    assert run_names.find("RUN", "box1", results) == results / "box1/later"


def test_a_run_that_has_just_begun_is_the_newest(results):
    begun = results / "box1/begun"
    begun.mkdir()
    (begun / "plan.json").write_text("{}")
    assert run_names.find("RUN", "box1", results) == begun


def test_a_directory(results, monkeypatch):
    assert run_names.find("RUN", str(results / "box2"), results / "none") == results / "box2/20261130-061500"
    monkeypatch.chdir(results / "box1")
    assert run_names.find("RUN", "zero", results / "none").resolve() == results / "box1/zero"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("box1/zeros", "did you mean box1/zero?"),
        ("bix2", "did you mean box2?"),
        ("elsewhere", "which has box1/later, box1/zero, box2/20261130-061500"),
    ],
)
def test_a_run_that_is_not_there(results, text, said):
    found = sentence(text, results, "--compare")
    assert found.startswith(f"--compare {text}: no such directory, and no such run in {results}")
    assert found.endswith(said)


def test_no_run_at_all(tmp_path):
    assert sentence("box1", tmp_path) == (
        f"RUN box1: no such directory, and {tmp_path} holds no run (fab -H HOST bench)"
    )


def test_a_directory_that_holds_no_run(results, tmp_path):
    (tmp_path / "empty").mkdir()
    assert sentence(str(tmp_path / "empty"), results).endswith(
        "empty holds no run of fab bench: it has no plan.json, nor has a directory in it"
    )


@pytest.mark.parametrize(("text", "said"), [("", "RUN is empty"), ("--help", "RUN --help: no run has such a name")])
def test_what_is_no_name(results, text, said):
    assert sentence(text, results).startswith(said)
