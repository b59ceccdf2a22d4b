"""The text of speculation.yml: what is written is what is read, and a change by hand is seen."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from blackwell import paths, speculation_text
from blackwell.speculation_setting import Setting
from blackwell.speculation_text import Origin

TYPED = Origin("fab -H box threshold 12", "2026-11-30T06:15:00+00:00")
MEASURED = Origin(
    "fab -H box tune",
    "2026-11-30T06:15:00+00:00",
    run="20261130-061500",
    fingerprint="5f77" * 16,
    crossover="all draft steps pay up to 14 requests in a batch and no longer from 19 on: the gain is 1 at 16.2, "
    "between 12.5 and 20.1 with a probability of 95 %: measured with 8 levels",
)
POLICY = {
    "version": 1,
    "tiers": [{"max_batch": 8, "steps": "full"}, {"max_batch": 24, "steps": 1}, {"steps": 0}],
    "margin": 2,
    "dwell": 16,
}
SETTINGS = {"threshold": Setting(12), "policy": Setting(policy=POLICY), "neither": Setting()}


@pytest.fixture(params=SETTINGS)
def setting(request):
    return SETTINGS[request.param]


@pytest.mark.parametrize("origin", [TYPED, MEASURED])
def test_what_is_written_is_read(setting, origin):
    text = speculation_text.render("box", setting, origin)
    assert yaml.safe_load(text) == setting.variables
    assert speculation_text.origin(text) == origin
    assert not speculation_text.by_hand(text)


def test_it_is_as_the_trees_own_files(setting, tmp_path):
    file = tmp_path / "speculation.yml"
    file.write_text(speculation_text.render("box", setting, MEASURED))
    words = [Path(sys.executable).with_name("yamllint"), "--strict", "-c", paths.ROOT / ".yamllint", file]
    done = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("threshold: 12", "threshold: 13"),
        lambda text: text + "# for the demo on Friday\n",
        lambda text: text.replace("box threshold 12", "box threshold 13"),
        lambda text: text.replace(speculation_text.DIGEST, "# sum: "),
        lambda _: "sglang_server_speculative_disable_batch_threshold: 12\n",
    ],
)
def test_a_change_by_hand_is_seen(change):
    assert speculation_text.by_hand(change(speculation_text.render("box", Setting(12), TYPED)))


@pytest.mark.parametrize("text", ["", "a: 1\n", "---\n# command: x\na: 1\n", "a: 1\n# command: x\n# date: y\n"])
def test_a_text_that_does_not_say_where_it_comes_from(text):
    assert speculation_text.origin(text) is None


def test_several_lines_become_one_sentence():
    origin = Origin("fab", "today", crossover="first\nsecond")
    text = speculation_text.render("box", Setting(12), origin)
    assert speculation_text.origin(text).crossover == "first second"
    assert yaml.safe_load(text) == Setting(12).variables
