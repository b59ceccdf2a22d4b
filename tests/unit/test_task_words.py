"""A word after a task's name that may be left out."""

import subprocess

import pytest

from blackwell import paths, task_words

FAB = paths.ROOT / ".venv/bin/fab"
TASKS = ("speculation", "threshold", "status", "ask")


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("threshold 12", "threshold --to=12"),
        ("threshold 12 --live-only", "threshold --to=12 --live-only"),
        ("threshold", "threshold"),
        ("threshold --to 12", "threshold --to 12"),
        ("threshold -1", "threshold --to=-1"),
        ("threshold -i inventory", "threshold -i inventory"),
        ("speculation off --dry-run", "speculation --to=off --dry-run"),
        ("speculation status", "speculation status"),
        ("threshold speculation on", "threshold speculation --to=on"),
        ("threshold 12 13", "threshold --to=12 13"),
        ("status 12", "status 12"),
    ],
)
def test_what_invoke_reads(typed, read):
    assert task_words.spelled_out(typed.split(), ("speculation", "threshold"), TASKS) == read.split()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        # What was typed reached the task, which looks for its host last.
        (["threshold", "12", "--live-only"], "fab: nowhere.invalid is not in "),
        (["speculation", "off"], "fab: nowhere.invalid is not in "),
        (["threshold", "many"], "fab: the threshold is 'many', not a number of requests"),
        (["threshold", "-1"], "fab: the threshold is '-1', not a number of requests"),
        (["speculation", "maybe"], "fab: speculation is on, off or auto, not 'maybe'"),
        (["speculation", "on", "--release"], "fab: on and --release exclude each other"),
    ],
)
def test_as_typed(words, said, tmp_path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {box: {}}}")
    command = [FAB, "--search-root", paths.ROOT, "-H", "nowhere.invalid", *words, "--inventory", tmp_path / "hosts.yml"]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said), done.stderr


def test_a_word_too_many_is_refused():
    command = [FAB, "-H", "box", "threshold", "12", "13"]
    done = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "No idea what '13' is!\n")
