"""``fab report`` as it is typed."""

import csv
import json
import os
import subprocess
import sys

import made_runs
import pytest

from blackwell import paths
from blackwell.report import numbers

FOUND = {key: at for key, at in made_runs.points().items() if key.c in (1, 10, 100)}
PLAN = {"levels": [1, 10, 100], "note": "numbers check plumbing only"}
NO_DRAWING = "import sys; sys.modules['matplotlib'] = None; from fabric.main import program; program.run()"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    results = tmp_path_factory.mktemp("results")
    made_runs.write(results / "box1" / "old", FOUND, plan=PLAN | {"run": "old"}, policy=made_runs.derived(FOUND))
    later = {key: at | {"began": at["began"] + 1e6} for key, at in FOUND.items()}
    made_runs.write(results / "box1" / "new", later, plan=PLAN | {"run": "new", "note": ""}, done=False)
    return results


def fab(*words, program=("-m", "fabric")):
    return subprocess.run(
        [sys.executable, *program, *words],
        cwd=paths.ROOT,
        env=os.environ | {"PYTHONPATH": str(paths.ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def refused(*words, **options):
    done = fab("report", *words, **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fab: ")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("fab: ").strip()


def test_a_report_of_one_run(results, tmp_path):
    done = fab("report", str(results / "box1/old"), "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stderr) == (0, "")
    told = done.stdout.splitlines()
    assert told[0].startswith("Speculation on box1. Run old. The run was done at ")
    assert told[1] == "NOTE: numbers check plumbing only"
    assert told[2] == numbers.sentence(made_runs.derived(FOUND)["explained"][0])
    assert told[-1] == str(tmp_path / "out/report.html")
    files = sorted(str(file.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("*") if file.is_file())
    assert files == [
        *(f"figures/{name}.png" for name in ("pareto", "ratio", "throughput", "user-speed")),
        *("medians.csv", "medians.jsonl", "points.csv", "points.jsonl", "report.html"),
    ]
    assert (tmp_path / "out/figures/ratio.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "out/points.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["arm"], int(row["c"]), int(row["repeat"]), float(row["tok_s"])) for row in rows] == [
        (key.arm, key.c, key.repeat, at["tok_s"]) for key, at in FOUND.items()
    ]
    lines = [json.loads(line) for line in (tmp_path / "out/points.jsonl").read_text().splitlines()]
    assert [line["began"] for line in lines] == [at["began"] for at in FOUND.values()]


def test_a_report_as_json_of_the_newest_run_of_a_host(results):
    done = fab("report", str(results / "box1"), "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["run"], told["status"], told["policy"]) == (0, "new", None, None)
    assert told["answer"][0]["sentences"][0].startswith("Speculation pays")
    assert {row["arm"] for row in told["medians"]} == set(made_runs.PLAN["arms"])
    assert told["files"][0] == str(results / "box1/new/report/report.html")
    assert (results / "box1/new/report/report.html").is_file()


def test_a_report_of_two_runs(results):
    done = fab("report", str(results / "box1/new"), "--compare", str(results / "box1/old"), "--json")
    told = json.loads(done.stdout)
    assert (told["compared_with"], told["ratios"][0]["ratio"]) == ("box1/old", 1.0)
    assert (results / "box1/new/report-beside-box1-old/ratios.csv").is_file()


def test_what_is_refused(results, tmp_path):
    assert "no such directory" in refused("box1/none")
    new = str(results / "box1/new")
    assert refused(new, "--compare", new) == f"--compare {new} is the run itself: name another one"
    (tmp_path / "file").write_text("")
    assert refused(new, "--out", str(tmp_path / "file")) == (
        f"{tmp_path / 'file'} cannot be written: File exists; name another directory with --out"
    )
    done = fab("report")
    assert done.returncode == 1
    assert "'report' did not receive required positional arguments: 'run'" in done.stderr


def test_a_control_node_without_matplotlib(results, tmp_path):
    said = refused(str(results / "box1/new"), "--out", str(tmp_path / "out"), program=("-c", NO_DRAWING))
    assert said == "matplotlib is not in the control environment: run scripts/bootstrap control"
    assert not (tmp_path / "out").exists()


def test_other_tasks_do_not_load_it():
    code = "import fabfile, sys; print(sorted({'matplotlib', 'jinja2', 'numpy'} & sys.modules.keys()))"
    assert fab(program=("-c", code)).stdout == "[]\n"
