"""What is typed for a sweep."""

import pytest

from blackwell.bench_control import options, screen
from blackwell.host_errors import HostError

NAMES = ("arms", "levels", "contexts", "repeats", "window", "new-tokens", "prompts", "settings", "margin")
NOTHING = dict.fromkeys(NAMES, "")


def test_nothing_typed_leaves_every_default():
    assert options.wanted(NOTHING) == {}


def test_what_is_typed_becomes_a_plan():
    typed = {
        "arms": "full, plain",
        "levels": "1,10",
        "contexts": "64",
        "repeats": "5",
        "window": "2.5",
        "margin": "0.9",
    }
    assert options.wanted(NOTHING | typed | {"prompts": "random", "new-tokens": "16"}) == {
        "arms": ["full", "plain"],
        "levels": [1, 10],
        "contexts": [64],
        "repeats": 5,
        "window_s": 2.5,
        "margin": 0.9,
        "prompts": "random",
        "new_tokens": 16,
    }


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("levels", "1,0", "--levels: '0' is no whole number from 1"),
        ("levels", "1,ten", "--levels: 'ten' is no whole number from 1"),
        ("contexts", "-1", "--contexts: '-1' is no whole number from 1"),
        ("repeats", "1.5", "--repeats: '1.5' is no whole number from 1"),
        ("window", "nan", "--window: 'nan' is no number above 0"),
        ("window", "inf", "--window: 'inf' is no number above 0"),
        ("margin", "0", "--margin: '0' is no number above 0"),
        ("prompts", "poems", "--prompts is 'poems', none of coding, agentic, mixed, random"),
        ("settings", "/nowhere.yml", "--settings: /nowhere.yml cannot be read: No such file or directory"),
    ],
)
def test_nonsense_is_refused(name, text, sentence):
    with pytest.raises(HostError) as caught:
        options.wanted(NOTHING | {name: text})
    assert str(caught.value) == sentence


def test_settings_are_read_from_a_file(tmp_path):
    file = tmp_path / "settings.yml"
    file.write_text(
        "- name: deployed\n- name: ring\n  flags: {--enable-symm-mem: true, --cuda-graph-max-bs: 64}\n"
        "  environment: {NCCL_ALGO: Ring, NCCL_PROTO: null, NCCL_MAX_NCHANNELS: 8}\n"
    )
    assert options.settings(file) == [
        {"name": "deployed", "flags": {}, "environment": {}},
        {
            "name": "ring",
            "flags": {"--enable-symm-mem": True, "--cuda-graph-max-bs": "64"},
            "environment": {"NCCL_ALGO": "Ring", "NCCL_PROTO": None, "NCCL_MAX_NCHANNELS": "8"},
        },
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not YAML"),
        ("name: x", "holds no list of settings"),
        ("[]", "holds no list of settings"),
        ("- flags: {}", "entry 1 has no name"),
        ("- name: x\n  nccl: {}", "x has nccl, but may have flags, environment"),
        ("- name: x\n  flags: [a]", "flags of x is no mapping"),
        ("- name: x\n  flags:", "flags of x is no mapping"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused(tmp_path, text, sentence):
    file = tmp_path / "settings.yml"
    file.write_text(text)
    with pytest.raises(HostError, match=sentence):
        options.settings(file)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min"), (7200, "2 h 0 min"), (9000, "2 h 30 min")],
)
def test_durations_are_in_words(seconds, words):
    assert screen.duration(seconds) == words


def test_a_point_says_how_far_the_sweep_is():
    event = {
        "event": "point",
        "settings": "deployed",
        "context": 64,
        "arm": "full",
        "c": 10,
        "repeat": 2,
        "tok_s": 123.45,
        "acceptance": 2.884,
        "running_batch": 10.0,
        "marked": None,
        "done": 7,
        "all": 120,
        "left_s": 300,
    }
    assert screen.event(event) == (
        "[  7/120] full at 10, 64 tokens, repeat 2: 123.5 tok/s, batch 10, 2.88 tokens a round; 5 min left"
    )
    assert "MARKED: why; " in screen.event(event | {"marked": "why"})


def test_an_event_of_another_version_is_no_error():
    assert screen.event({"event": "unheard of"}) == "unheard of"
