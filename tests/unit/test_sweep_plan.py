"""What a sweep measures, and how long that takes."""

import json
from dataclasses import replace

import pytest

from blackwell.bench import fingerprint, known_generator
from blackwell.bench.errors import BenchError
from blackwell.sweep import estimate, events, plan, runs
from blackwell.sweep.estimate import Guess
from blackwell.sweep.plan import Plan, Settings
from blackwell.sweep.points import BASELINE, DYNAMIC, Key
from blackwell.sweep.runs import Begun

ALL = ("baseline", "full", "reduced2", "reduced1", "plain", "dynamic")
GUESS = Guess(100.0, 0.01)
NOW = Begun(fingerprint.made({"gpus": "one"}), GUESS)


def made(**changes):
    return Plan(**({"run": "one", "host": "box", "steps": 3, "arms": ALL} | changes))


def test_reduced_stands_for_every_number_of_steps_between():
    assert plan.expanded(["plain", "reduced", "full"], 4) == ["full", "reduced3", "reduced2", "reduced1", "plain"]
    assert tuple(plan.default_arms(3)) == ALL


@pytest.mark.parametrize(
    ("named", "steps", "sentence"),
    [
        (["full", "fast"], 3, "fast is no arm of this server, which drafts 3 steps: those are baseline, full, "),
        (["reduced3"], 3, "reduced3 is no arm of this server"),
        (["reduced"], 1, "arm reduced: a server of 1 draft step has no fewer of them but none"),
        (["plain", "plain"], 3, "arm plain is there twice"),
        (["reduced1", "reduced"], 3, "arm reduced1 is there twice"),
    ],
)
def test_arms_that_cannot_be_are_refused(named, steps, sentence):
    with pytest.raises(BenchError, match=sentence):
        plan.expanded(named, steps)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"levels": (0,)}, "level 0 is no number of clients from 1"),
        ({"levels": (1, 5, 1)}, "level 1 is there twice"),
        ({"levels": ()}, "there is no level to measure"),
        ({"levels": (True,)}, "level True is no number of clients from 1"),
        ({"contexts": (-5,)}, "context -5 is no number of tokens from 1"),
        ({"repeats": 0}, "repeats is 0, not above 0"),
        ({"repeats": 1}, "arm dynamic needs 2 repeats or more"),
        ({"arms": ("plain", "dynamic")}, "arm dynamic needs full and plain"),
        ({"arms": ()}, "there is no arm to measure"),
        ({"margin": 1.2}, "the margin of the proof is 1.2, not a share"),
        ({"prompts": "poems"}, "prompts 'poems' are none of coding, agentic, mixed, random"),
        ({"settings": (Settings("a b"),)}, "settings 'a b': a name has letters, digits"),
        ({"settings": (Settings("x"), Settings("x"))}, "settings x are there twice"),
        ({"settings": (Settings("x", {"NCCL": "1"}),)}, "settings x: 'NCCL' is no option"),
        ({"settings": (Settings("x", {"--flag": 1}),)}, "settings x: --flag is 1, neither true, false nor text"),
        ({"settings": (Settings("x", {}, {"A": 1}),)}, "settings x: A is 1, neither text nor null"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(changes, sentence):
    assert [problem for problem in plan.problems(made(**changes)) if problem.startswith(sentence)]


def test_a_plan_comes_back_from_its_file(tmp_path):
    asked = made(settings=(Settings(), Settings("ring", {"--flag": True}, {"NCCL_ALGO": "Ring"})))
    plan.write(tmp_path, asked)
    assert plan.read(tmp_path) == asked
    # Under another name it is the same.
    plan.write(tmp_path, made(run="two", settings=asked.settings))
    assert plan.read(tmp_path).run == "one"


def test_another_plan_in_the_same_place_is_refused(tmp_path):
    plan.write(tmp_path, made())
    with pytest.raises(BenchError, match="was begun with another plan: levels, repeats differ"):
        plan.write(tmp_path, made(levels=(1, 2), repeats=5))
    assert plan.read(tmp_path) == made()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is not JSON"),
        ("[1]", "is no plan of a sweep in format 1"),
        ('{"format": 2}', "is no plan of a sweep in format 1"),
        ('{"format": 1}', "is no plan of a sweep: arms, .* is missing"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path, text, sentence):
    (tmp_path / plan.FILE).write_text(text)
    with pytest.raises(BenchError, match=f"plan.json {sentence}"):
        plan.read(tmp_path)


def test_a_plan_with_a_level_of_0_in_its_file_is_refused(tmp_path):
    content = made().content() | {"levels": [0]}
    (tmp_path / plan.FILE).write_text(json.dumps(content))
    with pytest.raises(BenchError, match=r"plan\.json: level 0 is no number of clients from 1"):
        plan.read(tmp_path)


def test_every_point_is_there_once_and_arms_take_turns():
    asked = made(levels=(1, 10), contexts=(128, 256), repeats=2)
    static = asked.static("deployed")
    assert len(static) == len(set(static)) == 4 * 2 * 2 * 2
    assert not [key for key in static if key.arm in (BASELINE, DYNAMIC)]
    first = {(key.context, key.c, key.repeat): key.arm for key in reversed(static)}
    assert len(set(first.values())) > 1
    proof = asked.proof("deployed", 128, {1: "full", 10: "plain"})
    assert {(key.arm, key.c, key.repeat) for key in proof} == {
        (arm, c, repeat) for repeat in (3, 4) for c, best in ((1, "full"), (10, "plain")) for arm in (DYNAMIC, best)
    }
    assert {key.repeat for key in asked.proof("deployed", 128, {1: "full"}, 2)} == {5, 6}
    assert made(arms=("full", "plain")).proof("deployed", 128, {1: "full"}) == []


def test_what_is_missing_does_not_ask_which_static_arm_proved_a_level():
    asked = made(arms=("full", "plain", "dynamic"), levels=(1, 10), repeats=2, contexts=(128,))
    everything = estimate.expected(asked)
    assert len(everything) == 2 * 2 * 2 + 2 * 2 * 2
    proven = asked.proof("deployed", 128, {1: "full", 10: "plain"})
    assert estimate.missing(asked, set(asked.static("deployed")) | set(proven)) == []
    without = [key for key in proven if key != Key("deployed", 128, "plain", 10, 4)]
    assert len(estimate.missing(asked, set(asked.static("deployed")) | set(without))) == 1


def test_only_the_servers_that_are_needed_are_counted():
    asked = made(levels=(1,), contexts=(128,), settings=(Settings(), Settings("ring")), cross_check=False)
    assert estimate.servers(asked, estimate.expected(asked)) == [
        (name, speculates) for name in ("deployed", "ring") for speculates in (False, True)
    ]
    left = [Key("ring", 128, BASELINE, 1, 1)]
    assert estimate.servers(asked, left) == [("ring", False)]
    life = asked.new_tokens * GUESS.token_s * (1 + 1 / estimate.BUSY_CLIENTS)
    point = estimate.point_seconds(asked, life)
    seconds = GUESS.start_s + point + estimate.warm_up_seconds(life)
    assert estimate.whole(asked, left, GUESS) == pytest.approx(seconds)
    checked = replace(asked, cross_check=True)
    assert estimate.whole(checked, left, GUESS) == pytest.approx(seconds + known_generator.ANSWERS * life)


def test_a_window_is_of_whole_answers():
    assert estimate.window(made(window_s=20), 3.0).answers == 7
    assert estimate.window(made(window_s=20), 100.0).answers == 1
    assert estimate.window(made(window_s=1, window_lives=2), 100.0).answers == 2
    assert estimate.window(made(), 0.0).answers == 1


def test_a_run_that_is_not_done_goes_on(tmp_path):
    one = tmp_path / "20260101-000000"
    runs.begin(one, made(), NOW)
    assert runs.resumable(made(), NOW.fingerprint, tmp_path) == one
    assert runs.resumable(made(levels=(1,)), NOW.fingerprint, tmp_path) is None
    assert runs.resumable(made(), fingerprint.made({"gpus": "two"}), tmp_path) is None
    events.Events(one).end(events.STOPPED, "it was told to")
    assert runs.resumable(made(), NOW.fingerprint, tmp_path) == one
    events.Events(one).end(events.DONE)
    assert runs.resumable(made(), NOW.fingerprint, tmp_path) is None
    assert runs.begun(one) == NOW


def test_a_run_that_was_cut_off_while_it_was_begun_is_left_alone(tmp_path):
    one = tmp_path / "20260101-000000"
    one.mkdir()
    plan.write(one, made())
    assert runs.resumable(made(), NOW.fingerprint, tmp_path) is None
    with pytest.raises(BenchError, match=r"begun\.json cannot be read"):
        runs.begun(one)


def test_runs_are_found_by_name_and_by_age(tmp_path):
    with pytest.raises(BenchError, match="there is no run on this host: fab bench makes one"):
        runs.found("", tmp_path)
    for name in ("20260102-000000", "20260101-000000"):
        runs.begin(tmp_path / name, made(), NOW)
    assert runs.found("", tmp_path).name == "20260102-000000"
    assert runs.found("20260101-000000", tmp_path).name == "20260101-000000"
    with pytest.raises(BenchError, match="there is no run x on this host; its runs: 20260101-000000, 20260102-000000"):
        runs.found("x", tmp_path)


def test_events_are_read_from_where_one_was(tmp_path):
    log = events.Events(tmp_path)
    log.add("one", number=1)
    found, offset = events.after(tmp_path, 0)
    assert [(event["event"], event["number"]) for event in found] == [("one", 1)]
    assert offset == events.size(tmp_path)
    log.add("two")
    # What is being written has no end yet.
    with (tmp_path / events.FILE).open("a") as file:
        file.write('{"event": "thr')
    found, offset = events.after(tmp_path, offset)
    assert [event["event"] for event in found] == ["two"]
    assert events.after(tmp_path, offset) == ([], offset)
    assert events.ended(tmp_path) is None
    log.end(events.FAILED, "why")
    assert events.ended(tmp_path)["reason"] == "why"
    log.begin()
    assert events.ended(tmp_path) is None
