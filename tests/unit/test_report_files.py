"""A run's directory, read: what is there, what is left out, and what is wrong."""

import json
import shutil
from pathlib import Path

import made_runs
import pytest

from blackwell.bench.fingerprint import Fingerprint
from blackwell.host_errors import HostError
from blackwell.report import run_files
from blackwell.sweep.points import Key

FOUND = made_runs.points()
OTHER = Fingerprint({**made_runs.FINGERPRINT.parts, "driver": "585.10"}, made_runs.FINGERPRINT.unknown)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return made_runs.whole(tmp_path_factory.mktemp("template") / "run")


@pytest.fixture
def run(template, tmp_path):
    return Path(shutil.copytree(template, tmp_path / "run"))


def sentence(directory):
    with pytest.raises(HostError) as caught:
        run_files.read(directory)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def lines(run):
    return (run / "points.jsonl").read_text().splitlines()


def rewrite(run, found):
    (run / "points.jsonl").write_text("".join(f"{line}\n" for line in found))


def test_a_whole_run(run):
    found = run_files.read(run)
    assert found.points == FOUND
    assert list(found.points) == list(FOUND)
    assert found.fingerprint == made_runs.FINGERPRINT
    assert found.name == "box1/20261130-061500"
    assert found.left_out == ()
    assert found.exit["status"] == "done"
    assert found.policy["policy"]["version"] == 1
    assert len(found.proof["levels"]) == 8


def test_what_is_not_there_yet_is_none(tmp_path):
    found = run_files.read(made_runs.write(tmp_path / "run", FOUND, done=False, deployed=None))
    assert (found.policy, found.proof, found.check, found.exit, found.deployed) == (None,) * 5


def test_half_a_line_at_the_end_is_left_out(run):
    with (run / "points.jsonl").open("a") as file:
        file.write('{"settings":"deployed","context":256,"arm":"pl')
    assert run_files.read(run).points == FOUND


def test_points_of_another_fingerprint_are_left_out_and_named(tmp_path):
    key = Key("deployed", 256, "full", 1, 1)
    made_runs.write(tmp_path, {key: FOUND[key]}, fingerprint=OTHER)
    made_runs.write(tmp_path, FOUND)
    found = run_files.read(tmp_path)
    assert found.points == FOUND
    assert found.left_out == (
        (
            f"{tmp_path / 'points.jsonl'} keeps 1 point of fingerprint {OTHER.digest[:12]}, not counted here: "
            "the driver was 585.10, it is 580.95.05"
        ),
    )


def test_a_fingerprint_that_is_not_recorded(tmp_path):
    key = Key("deployed", 256, "full", 1, 1)
    made_runs.write(tmp_path, {key: FOUND[key]}, fingerprint=OTHER)
    made_runs.write(tmp_path, FOUND)
    (tmp_path / "fingerprints" / f"{made_runs.FINGERPRINT.digest}.json").unlink()
    found = run_files.read(tmp_path)
    assert found.fingerprint is None
    assert found.points == FOUND
    assert found.left_out[0].endswith("what the points that count were measured under is not recorded")


def test_a_directory_that_is_no_run(tmp_path):
    assert sentence(tmp_path) == f"{tmp_path / 'plan.json'} is not there: {tmp_path} is no run of fab bench"


@pytest.mark.parametrize("content", [None, "", '{"settings":"dep'])
def test_a_run_without_a_point(run, content):
    (run / "points.jsonl").unlink()
    if content is not None:
        (run / "points.jsonl").write_text(content)
    assert sentence(run) == f"{run / 'points.jsonl'} has no point yet: there is nothing to report"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tok_s": "fast"}, 'has tok_s "fast", not a number from 0'),
        ({"tok_s": 0}, "has tok_s 0, not a number above 0"),
        ({"tok_s": float("nan")}, "has tok_s NaN, not a number from 0"),
        ({"c": 0}, "has c 0, not a whole number from 1"),
        ({"c": True}, "has c true, not a whole number from 1"),
        ({"arm": "base"}, 'has arm "base", not baseline, full, reducedN, plain or dynamic'),
        ({"settings": "../up"}, 'has settings "../up", not letters, digits, . _ and -'),
        ({"answer_s_p50": -1}, "has answer_s_p50 -1, not a number above 0 or null"),
        ({"marked": True}, "has marked true, not text or null"),
    ],
)
def test_a_line_of_another_form_is_named(run, change, said):
    found = lines(run)
    found[2] = json.dumps(json.loads(found[2]) | change)
    rewrite(run, found)
    assert sentence(run) == f"{run / 'points.jsonl'}: line 3 {said}"


def test_a_line_that_lacks_something_is_named(run):
    found = lines(run)
    point = json.loads(found[1])
    del point["running_batch"], point["tok_s"]
    found[1] = json.dumps(point)
    rewrite(run, found)
    assert sentence(run) == f"{run / 'points.jsonl'}: line 2 lacks tok_s, running_batch"


def test_a_marked_point_may_have_given_nothing(run):
    found = lines(run)
    found[0] = json.dumps(json.loads(found[0]) | {"tok_s": 0, "running_batch": 0, "marked": "the server ended"})
    rewrite(run, found)
    assert next(iter(run_files.read(run).points.values()))["marked"] == "the server ended"


def test_a_line_that_is_no_point_is_named(run):
    rewrite(run, [*lines(run)[:3], "nonsense", *lines(run)[3:]])
    assert sentence(run).startswith(f"{run / 'points.jsonl'}: line 4 holds no point")


def test_a_point_that_is_there_twice_is_named(run):
    rewrite(run, [*lines(run), lines(run)[0]])
    assert "a second time" in sentence(run)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("plan", "{", "is not JSON: "),
        ("plan", "[]", "has [], not an object: the plan of a run"),
        ("plan", json.dumps(made_runs.PLAN | {"format": 2}), "has format 2, not 1, the version of this format"),
        ("plan", json.dumps(made_runs.PLAN | {"levels": []}), "has levels [], not a list of whole numbers from 1"),
        ("plan", '{"format": 1}', "lacks run, host, arms, levels, contexts, repeats, settings"),
        ("policy", '{"explained": []}', "lacks policy"),
        ("proof", '{"margin": 0.98, "levels": [{"c": 1}]}', "lacks context, best, ratio, ok in levels[1]"),
        ("check", '[{"arm": "full"}]', "lacks settings, context, c, tok_s, bench_serving_tok_s, ratio in [1]"),
        ("exit", '{"status": "gone", "reason": "", "at": 1}', 'has status "gone", not done, failed or stopped'),
        ("deployed", '{"argv": [1]}', "has argv[1] 1, not text"),
    ],
)
def test_a_file_of_another_form_is_named(run, name, content, said):
    (run / f"{name}.json").write_text(content)
    assert sentence(run).startswith(f"{run / f'{name}.json'} {said}")


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"version": 1, "tiers": []}, "tiers is [], not a list of tiers of which exactly one, the last, has no"),
        ({"version": 1, "tiers": [{"steps": "full"}, {"max_batch": 4, "steps": 0}]}, "tier 1 has no max_batch"),
    ],
)
@pytest.mark.parametrize("place", ["first", "others"])
def test_a_policy_that_is_none_is_named(run, policy, said, place):
    good = json.loads((run / "policy.json").read_text())
    bad = good | {"policy": policy}
    (run / "policy.json").write_text(json.dumps(bad if place == "first" else good | {"others": [bad]}))
    assert sentence(run).startswith(f"{run / 'policy.json'}: policy: {said}")


def test_a_file_that_cannot_be_read(run):
    (run / "exit.json").unlink()
    (run / "exit.json").mkdir()
    assert sentence(run) == f"{run / 'exit.json'} cannot be read: Is a directory"
