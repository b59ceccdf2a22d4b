"""What the clients of a sweep ask for, and that a run goes on with the same."""

import json
from pathlib import Path

import pytest

from blackwell.bench.errors import BenchError
from blackwell.sweep import prompts
from blackwell.sweep.plan import Plan

ARGV = ("python", "-m", "sglang.launch_server", "--model-path", "/m/target")


def test_the_tokenizer_of_a_command_line_is_not_where_the_model_is():
    found = prompts.model((*ARGV, "--tokenizer-path", "/m/tokenizer"), None, None)
    assert (found.path, found.tokenizer) == (Path("/m/target"), Path("/m/tokenizer"))
    assert prompts.model(ARGV, None, None).tokenizer == Path("/m/target")


def test_random_prompts_are_drawn_from_the_vocabulary_of_the_model(tmp_path):
    model, tokenizer = tmp_path / "model", tmp_path / "tokenizer"
    model.mkdir()
    tokenizer.mkdir()
    (model / "config.json").write_text(json.dumps({"vocab_size": 1000}))
    plan = Plan("run", "host", 2, ("full",), levels=(1,), contexts=(16,), new_tokens=4, prompts="random")
    made = prompts.made(plan, prompts.Model(model, tokenizer))
    assert made.made_of == {"vocabulary": 1000}
    ids, new_tokens = next(made.asked(16, 1, 1, 0))
    assert (len(ids), new_tokens) == (16, 4)
    assert max(ids) < 1000


def test_a_run_goes_on_with_the_prompts_that_it_began_with_alone(tmp_path):
    prompts.keep(tmp_path, {"source_files": "a1", "prompts": "mixed"})
    prompts.keep(tmp_path, {"prompts": "mixed", "source_files": "a1"})
    with pytest.raises(BenchError, match=r"prompts\.json names other prompts than are made now.*--new"):
        prompts.keep(tmp_path, {"prompts": "mixed", "source_files": "b2"})
    assert json.loads((tmp_path / "prompts.json").read_text())["source_files"] == "a1"
