"""Token ids for random prompts, by the configuration of a model."""

import itertools
import json

import pytest

from blackwell.bench import vocabulary
from blackwell.bench.errors import BenchError

PINNED = [103486, 20632, 59216]


def model(folder, **config):
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"vocab_size": 1026}, 1026),
        ({"text_config": {"vocab_size": 163840}, "vision_config": {"vocab_size": 5}}, 163840),
        ({"vocab_size": None, "text_config": {"vocab_size": 200}}, 200),
        ({"vocab_size": 300, "text_config": {"vocab_size": 200}}, 300),
    ],
)
def test_the_size_is_that_of_the_language_model(tmp_path, config, size):
    assert vocabulary.size(model(tmp_path, **config)) == size


def test_long_prompts_of_another_client_are_others_and_the_same_each_time(tmp_path):
    made = vocabulary.workload(model(tmp_path, vocab_size=163840), 131_072, 16)
    first, other = (next(made.stream(250, 1, client))[0] for client in (0, 1))
    assert len(first) == len(other) == 131_072
    assert first[:100] != other[:100]
    assert first == next(vocabulary.workload(tmp_path, 131_072, 16).stream(250, 1, 0))[0]
    assert first[:3] == PINNED


def test_both_edges_are_left_out(tmp_path):
    made = vocabulary.workload(model(tmp_path, vocab_size=1026), 512, 16)
    asked = list(itertools.islice(made.stream(250, 1, 0), 100))
    assert {(len(prompt), new) for prompt, new in asked} == {(512, 16)}
    tokens = {token for prompt, _ in asked for token in prompt}
    # 51 of each edge, and every other one is drawn.
    assert (min(tokens), max(tokens), len(tokens)) == (51, 974, 924)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "config.json is no configuration of a model: "),
        ("[]", "config.json is no configuration of a model: "),
        ("{}", "config.json tells no vocab_size, which random prompts are drawn from"),
        ('{"vocab_size": "many"}', "config.json tells no vocab_size, which random prompts are drawn from"),
        ('{"vocab_size": 3}', "config.json tells no vocab_size, which random prompts are drawn from"),
    ],
)
def test_a_configuration_that_does_not_tell_is_named(tmp_path, text, said):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(BenchError) as caught:
        vocabulary.size(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}/{said}")


def test_a_model_without_configuration_is_named(tmp_path):
    with pytest.raises(BenchError, match=f"^{tmp_path}/config.json cannot be read: No such file or directory$"):
        vocabulary.size(tmp_path)
