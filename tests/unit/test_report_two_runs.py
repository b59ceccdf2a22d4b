"""The page of a run beside another."""

import statistics

import made_runs
import pytest
from page_reader import Page, rendered

from blackwell.bench.fingerprint import made
from blackwell.host_errors import HostError
from blackwell.report import exports, groups, shared, two_runs
from blackwell.report.run_files import Run
from blackwell.sweep.points import Key

LEVELS = (1, 10, 100)
OLD = {key: at for key, at in made_runs.points().items() if key.c in LEVELS}
NEW = {key: at for key, at in made_runs.points(rows=made_runs.OTHER_ROWS).items() if key.c in (*LEVELS, 250)}
PARTS = {"driver": "580.95", "flags": {"tp_size": 1}}


def run(found, name, parts=PARTS, plan=None, **files):
    plan = made_runs.PLAN | {"run": name} | (plan or {})
    return Run(f"/runs/{name}", plan, f"digest of {name}", None if parts is None else made(parts), found, **files)


def both(old, new):
    return (old, groups.groups(old)), (new, groups.groups(new))


def read(old, new, *, figures=False):
    return Page(rendered(two_runs.page(*both(old, new), "fab report new --compare old"), figures=figures))


@pytest.fixture(scope="module")
def page():
    old = run(OLD, "old", plan={"note": "a <b>note</b>"}, policy=made_runs.derived(OLD))
    new = run(NEW, "new", PARTS | {"driver": "585.10"}, plan={"prompts": "coding"})
    return read(old, new, figures=True)


def median(found, arm, c):
    return statistics.median(at["tok_s"] for key, at in found.items() if (key.arm, key.c) == (arm, c))


@pytest.mark.parametrize("arm", made_runs.PLAN["arms"])
def test_ratios_by_arm_and_level(page, arm):
    cells = page.column("ratios", arm, "ratio")
    assert {level: cell[0] for level, cell in cells.items()} == {
        str(c): f"{median(NEW, arm, c) / median(OLD, arm, c):.3f}" for c in LEVELS
    }


def test_levels_that_only_one_has_are_not_compared(page):
    assert "250" not in page.column("ratios", "full", "ratio")
    assert page.column("second-measured", "full", "output tokens/s")["250"][0] == f"{median(NEW, 'full', 250):.0f}"


def test_what_changed_between_them(page):
    assert "From old to new: The driver was 580.95, it is 585.10." in page.text
    assert "Between them, 1 part of the fingerprint changed." in page.text
    assert [[cell[0] for cell in row] for row in page.tables["plans"][""]] == [["prompts", "random", "coding"]]


def test_the_same_fingerprint():
    old, new = run(OLD, "old"), run(NEW, "new")
    told = read(old, new).text
    assert "Both were measured under the same fingerprint." in told
    assert "Nothing of the fingerprint." in told


def test_a_fingerprint_that_is_not_recorded():
    told = read(run(OLD, "old", None), run(NEW, "new")).text
    assert "What one of them was measured under is not recorded" in told
    assert "Not known: old records no fingerprint." in told


def test_policies_side_by_side(page):
    cells = {row[0][0]: [cell[0] for cell in row[1:]] for row in page.tables["policies"][""]}
    assert page.heads["policies"] == ["", "old", "new"]
    assert cells["policy"][0].startswith("The policy: all draft steps up to ")
    assert cells["policy"][1].startswith("The run has no policy yet; its points so far would give ")
    assert '"version": 1' in cells["as JSON"][0]
    assert cells["as JSON"][1] == "-"


def test_a_note_of_either_is_shown(page):
    assert page.notes == ["old: a <b>note</b>"]
    assert "b" not in page.tags


def test_both_are_in_four_figures(page):
    assert len([one for one in page.pointed if one.startswith("data:image/png")]) == 8


def test_certainly_faster_is_counted():
    fast = {key: at | {"tok_s": 2 * at["tok_s"]} for key, at in OLD.items()}
    told = read(run(OLD, "old"), run(fast, "new"))
    assert "new gives 2.000 to 2.000 of the output of old." in told.text
    assert (
        "Of 18 arms and levels that both have, it is certainly faster at 18 and certainly slower at 0; about 1 "
        in told.text
    )
    assert {cell[2] for cell in told.column("ratios", "plain", "ratio").values()} == {"good"}


def test_a_marked_point_counts_in_neither():
    key = Key("deployed", 256, "full", 1, 1)
    wrong = OLD | {key: OLD[key] | {"tok_s": 1e6, "marked": "late"}}
    found = shared.pairs(groups.groups(run(wrong, "old")), groups.groups(run(OLD, "new")))
    (row,) = [row for row in exports.ratios(found) if (row["arm"], row["c"]) == ("full", 1)]
    assert row["first_tok_s"] == statistics.median(
        at["tok_s"] for at_key, at in OLD.items() if (at_key.arm, at_key.c) == ("full", 1) and at_key != key
    )


def test_one_repeat_is_compared_without_certainty():
    old, new = ({key: at for key, at in found.items() if key.repeat == 1} for found in (OLD, NEW))
    told = read(run(old, "old", plan={"repeats": 1}), run(new, "new", plan={"repeats": 1}))
    assert "one repeat does not tell how certain that is" in told.text
    assert {row[-1][0] for row in told.tables["ratios"]["full"]} == {"no interval"}


def test_runs_of_two_hosts_are_named_with_them():
    told = read(run(OLD, "same", plan={"host": "box1"}), run(OLD, "same", plan={"host": "box2"}))
    assert told.heads["policies"] == ["", "box1/same", "box2/same"]


@pytest.mark.parametrize(
    "other",
    [
        {Key(**{**vars(key), "context": 8}): at for key, at in OLD.items()},
        {Key(**{**vars(key), "settings": "ring"}): at for key, at in OLD.items()},
        {Key(**{**vars(key), "c": key.c + 1}): at for key, at in OLD.items()},
        {key: at | {"marked": "late"} for key, at in OLD.items()},
    ],
)
def test_runs_that_have_nothing_in_common(other):
    with pytest.raises(HostError) as caught:
        two_runs.page(*both(run(OLD, "old"), run(other, "new")), "")
    assert str(caught.value) == (
        "box1/new and box1/old cannot be compared: they have no arm at any level with the same settings and context in "
        "common"
    )
