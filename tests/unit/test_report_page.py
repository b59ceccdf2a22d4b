"""The page of a run: what stands in it, and that nothing else gets into it."""

import json
import statistics

import made_runs
import pytest
from page_reader import Page, rendered

from blackwell.report import groups, numbers, one_run, run_files, series
from blackwell.sweep.points import Key

FOUND = made_runs.points()
FEW = {key: at for key, at in FOUND.items() if key.arm in ("full", "plain") and key.c in (1, 10, 100)}
ONE = Key("deployed", 256, "full", 10, 2)


def html(directory, command="fab report box1", *, figures=False):
    run = run_files.read(directory)
    return rendered(one_run.page(run, groups.groups(run), command), figures=figures)


def shown(directory, *, figures=False):
    return Page(html(directory, figures=figures))


def written(directory, found=FEW, **changes):
    return shown(made_runs.write(directory, found, **changes))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return made_runs.whole(tmp_path_factory.mktemp("run"), plan={"note": "numbers check plumbing only"})


@pytest.fixture(scope="module")
def whole(directory):
    return shown(directory, figures=True)


def column(found, name, arm):
    values = {}
    for key, at in found.items():
        if key.arm == arm and at["marked"] is None and at[name] is not None:
            values.setdefault(str(key.c), []).append(at[name])
    return {level: statistics.median(at) for level, at in values.items()}


@pytest.mark.parametrize("arm", made_runs.PLAN["arms"])
@pytest.mark.parametrize(
    ("head", "name", "digits"),
    [
        ("output tokens/s", "tok_s", 0),
        ("tokens/s of one client", "user_tok_s", 0),
        ("median answer, s", "answer_s_p50", 2),
        ("p95 answer, s", "answer_s_p95", 2),
        ("running batch", "running_batch", 2),
        ("acceptance, tokens", "acceptance", 3),
        ("KV tokens", "kv_tokens", 0),
        ("power, W", "power_w", 0),
        ("SM clock, MHz", "sm_mhz", 0),
    ],
)
def test_the_table_has_the_medians_of_the_points(whole, arm, head, name, digits):
    cells = {level: cell[0].replace(" ", "") for level, cell in whole.column("measured", arm, head).items()}
    wanted = column(FOUND, name, arm)
    assert len(cells) == 8
    assert {level: float(text) for level, text in cells.items() if text != numbers.NONE} == {
        level: pytest.approx(value, abs=0.5000001 * 10**-digits if value >= 100 or digits else 0.05)
        for level, value in wanted.items()
    }


def test_the_table_has_the_intervals(whole):
    cells = {str(cell.c): cell for cell in series.cells(FOUND, "deployed", 256) if cell.arm == "plain"}
    for level, (_, beside, _) in whole.column("measured", "plain", "output tokens/s").items():
        low, high = map(float, beside.split(" to "))
        assert (low, high) == pytest.approx((cells[level].tok_s.low, cells[level].tok_s.high), abs=0.5)


def test_how_many_points_count(whole):
    assert {cell[0] for cell in whole.column("measured", "baseline", "points").values()} == {"3"}
    assert whole.column("measured", "full", "points")["1"][0] == "6"


def test_the_answer_comes_first(whole):
    told = made_runs.derived(FOUND)["explained"]
    text = whole.text
    assert text.index(numbers.sentence(told[0])) < text.index("The policy reaches 0.98 of") < text.index("Throughput")
    for clause in told:
        assert numbers.sentence(clause) in text


def test_the_note_is_shown_big(whole):
    assert whole.notes == ["numbers check plumbing only"]


def test_the_proof_by_level(whole, directory):
    levels = json.loads((directory / "proof.json").read_text())["levels"]
    head = "holds 0.98"
    cells = whole.column("proof", "", head)
    assert [cells[str(level["c"])][0] for level in levels] == [
        "holds" if level["ok"] else "does not hold" for level in levels
    ]
    assert [whole.column("proof", "", "policy / static")[str(level["c"])][0] for level in levels] == [
        f"{level['ratio']:.3f}" for level in levels
    ]


def test_a_proof_without_points_says_why(tmp_path):
    level = {"context": 256, "c": 5, "best": "", "dynamic": None, "static": None, "ratio": None, "ok": None}
    proof = {"margin": 0.98, "levels": [level | {"why": "no static arm has a point there that counts"}]}
    cells = written(tmp_path, proof=proof).tables["proof"][""]
    assert cells[0][-1] == ("not known", "no static arm has a point there that counts", "doubt")


def test_baseline_beside_plain(whole):
    plain, without = column(FOUND, "tok_s", "plain"), column(FOUND, "tok_s", "baseline")
    cells = whole.column("baseline", "", "plain / baseline")
    assert {level: cell[0] for level, cell in cells.items()} == {
        level: f"{plain[level] / without[level]:.3f}" for level in without
    }
    assert whole.column("baseline", "", "KV tokens, baseline")["1"][0] == "1 012 480"
    ratios = [float(cell[0]) for cell in cells.values()]
    certain = sum(cell[2] == "bad" for cell in cells.values())
    assert f"Plain gives {min(ratios):.3f} to {max(ratios):.3f} of the baseline" in whole.text
    assert f"it is certainly slower at {certain} of 8 levels" in whole.text


def test_the_cross_check(whole):
    cells = [cell[0] for cell in whole.tables["check"][""][0]]
    assert cells == ["full", "1", "256", "deployed", "362", "356", "0.97", "1.015"]
    assert whole.heads["check"][-1] == "this bench / bench_serving"


def test_a_check_that_failed_says_why(tmp_path):
    found = {"settings": "deployed", "context": 256, "arm": "full", "c": 1, "tok_s": 362.0}
    check = [found | {"bench_serving_tok_s": None, "ratio": None, "problem": "it did not <end>"}]
    (row,) = written(tmp_path, check=check).tables["check"][""]
    assert row[5][:2] == (numbers.NONE, "it did not <end>")


def test_what_is_unknown_is_said(whole):
    assert "NCCL was unknown: /proc/4711/maps cannot be read: Permission denied." in whole.text
    parts = {row[0][0]: row[1][0] for row in whole.tables["fingerprint"][""]}
    assert parts["the driver"] == "580.95.05"
    assert parts["the NCCL_* variables"] == "none"
    assert parts["the workload"] == "new_tokens=128, prompt_tokens=256, prompts=random"


def test_a_fingerprint_that_is_not_recorded(tmp_path):
    made_runs.write(tmp_path, FEW)
    for file in (tmp_path / "fingerprints").iterdir():
        file.unlink()
    assert "nobody can say what its numbers are valid for" in shown(tmp_path).text


def test_plan_and_commands(whole):
    plan = {row[0][0]: row[1][0] for row in whole.tables["plan"][""]}
    assert (plan["levels"], plan["repeats"], plan["prompts"]) == ("1, 2, 5, 10, 30, 70, 100, 250", "3", "random")
    assert "fab report box1" in whole.text
    assert "sglang.launch_server" in whole.text


def test_what_opens_something_is_not_shown(tmp_path):
    argv = ["python", "--api-key", "sesame", "--admin-api-key=sesame", "--hf-token", "sesame", "--tp-size", "2"]
    settings = [
        {"name": "a", "flags": {"--api-key": "sesame", "--tp-size": "4"}, "environment": {"HF_TOKEN": "sesame"}},
    ]
    text = html(made_runs.write(tmp_path, FEW, deployed={"argv": argv}, plan={"settings": settings}))
    assert "sesame" not in text
    assert "--tp-size 2" in text
    assert "--tp-size=4" in text


def test_the_page_needs_nothing_else(whole):
    assert "script" not in whole.tags
    assert "link" not in whole.tags
    assert [one[:22] for one in whole.pointed if not one.startswith("#")] == ["data:image/png;base64,"] * 8


def test_every_link_leads_somewhere(directory):
    text = html(directory)
    for target in {one for one in Page(text).pointed if one.startswith("#")}:
        assert f'id="{target[1:]}"' in text


def test_markup_is_shown_and_not_obeyed(tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"
    found = FEW | {ONE: FOUND[ONE] | {"marked": evil, "note": evil}}
    plan = {"note": evil, "host": evil, "run": evil, "command": evil}
    policy = made_runs.derived(FEW) | {"explained": [evil]}
    ended = {"status": "failed", "reason": evil, "at": 1.0}
    text = html(made_runs.write(tmp_path, found, plan=plan, policy=policy, exit=ended, deployed={"argv": [evil]}), evil)
    read = Page(text)
    assert "script" not in read.tags
    assert "<img src=x" not in text
    assert read.notes == [evil]
    assert read.text.count("alert(1)") >= 8


def test_a_marked_point_is_listed_with_its_reason(tmp_path):
    why = "over-saturated: the server decoded 5 of 10 requests, the others waited in its queue"
    read = written(tmp_path, FEW | {ONE: FOUND[ONE] | {"marked": why, "note": "the clocks were slowed"}})
    assert [[cell[0] for cell in row] for row in read.tables["marked"][""]] == [[str(ONE), why]]
    assert f"1 of {len(FEW)} points do not count." in read.text
    assert f"The clocks were slowed: {ONE}." in read.text
    assert read.column("measured", "full", "points")["10"][0] == "5 of 6"


def test_points_that_all_count(whole):
    assert "Every point counts." in whole.text
    assert "marked" not in whole.tables


def test_a_run_in_which_nothing_counts(tmp_path):
    read = written(tmp_path, {key: at | {"marked": "the server ended"} for key, at in FEW.items()}, done=False)
    assert "No point counts: there is nothing to draw." in read.text
    assert read.column("measured", "plain", "output tokens/s")["1"][0] == numbers.NONE
    assert "Where speculation stops to pay is not known" in read.text


def test_a_run_that_is_not_finished(tmp_path):
    read = written(tmp_path, dict(list(FEW.items())[:8]), done=False)
    assert "The run is not finished: this is what its first 8 points say." in read.text
    assert "Baseline, reduced2, reduced1 and dynamic: not measured yet." in read.text
    assert "The run has no cross-check." in read.text
    assert "proof" not in read.tables


def test_one_repeat_has_no_intervals(tmp_path):
    found = {key: at for key, at in FOUND.items() if key.repeat == 1 and key.arm != "dynamic"}
    read = written(tmp_path, found, plan={"repeats": 1})
    assert {cell[1] for cell in read.column("measured", "full", "output tokens/s").values()} == {""}
    assert "Every point was measured once" in read.text
    assert "how certain that is, one repeat does not tell" in read.text


def test_a_single_point(tmp_path):
    read = written(tmp_path, {ONE: FOUND[ONE] | {"user_tok_s": None, "answer_s_p50": None, "answer_s_p95": None}})
    assert read.column("measured", "full", "output tokens/s")["10"][0] == numbers.shown(FOUND[ONE]["tok_s"])


def test_what_was_not_measured_is_left_out_and_said(tmp_path):
    found = {key: at | {"power_w": None, "sm_mhz": None, "temperature_c": None} for key, at in FEW.items()}
    read = written(tmp_path, found)
    assert "power, W" not in read.heads["measured"]
    assert "Not measured: power, SM clock and temperature." in read.text


def test_points_of_another_fingerprint_are_named(tmp_path):
    other = run_files.Fingerprint({**made_runs.FINGERPRINT.parts, "driver": "585.10"}, {})
    made_runs.write(tmp_path, {ONE: FOUND[ONE]}, fingerprint=other)
    assert "keeps 1 point of fingerprint" in written(tmp_path).text


def test_settings_are_compared(tmp_path):
    settings = [{"name": "deployed"}, {"name": "ring", "environment": {"NCCL_ALGO": "Ring"}}]
    read = written(tmp_path, FOUND | made_runs.points("ring", times=0.5), plan={"settings": settings})
    first, second = (
        read.column("settings-256", "plain", f"{name}, tokens/s")["100"][0] for name in ("deployed", "ring")
    )
    assert float(second) == pytest.approx(float(first) / 2, abs=1)
    ratio = read.column("settings-256", "plain", "ring / deployed")["100"]
    assert (ratio[0], ratio[2]) == ("0.500", "bad")
    assert len(read.tables["measured"]["plain"]) == len(read.tables["measured-2"]["plain"]) == 8
    assert "NCCL_ALGO=Ring" in read.text


def test_flags_that_are_many_are_folded(tmp_path):
    flags = {f"flag_{number}": number for number in range(40)}
    fingerprint = run_files.Fingerprint(made_runs.FINGERPRINT.parts | {"flags": flags}, {})
    read = written(tmp_path, fingerprint=fingerprint)
    assert {row[0][0]: row[1][0] for row in read.tables["fingerprint-flags"][""]} == {
        name: str(value) for name, value in flags.items()
    }
    assert "details" in read.tags
    assert "Nothing of it is unknown." in read.text
