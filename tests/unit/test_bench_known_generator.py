"""The check with bench_serving, as far as it goes without SGLang; tests/release has the rest."""

import itertools
import json
import sys
from pathlib import Path

import pytest

from blackwell.bench import known_generator
from blackwell.bench.errors import BenchError
from blackwell.bench.known_generator import Found

RESULTS = {
    "backend": "sglang",
    "max_concurrency": 250,
    "duration": 3.2227241579967085,
    "completed": 750,
    "total_output_tokens": 37500,
    "output_throughput": 11636.118439410755,
    "concurrency": 202.16938621857372,
    "accept_length": None,
}


def asked(client):
    return (([client, number], 10 + number) for number in itertools.count())


def test_the_first_requests_of_all_clients_in_rounds():
    assert known_generator.requests(asked, 3, 2) == [
        ([0, 0], 10),
        ([1, 0], 10),
        ([2, 0], 10),
        ([0, 1], 11),
        ([1, 1], 11),
        ([2, 1], 11),
    ]


def test_a_line_has_the_prompt_and_the_length_of_the_answer():
    first, second = known_generator.dataset([([5, 6], 7), ([8], 9)]).splitlines()
    assert json.loads(first) == {
        "messages": [{"role": "user", "content": "word"}],
        "max_tokens": 7,
        "input_ids": [5, 6],
    }
    assert json.loads(second)["input_ids"] == [8]


def test_the_command():
    words = known_generator.command("http://127.0.0.1:30000/", 250, 1000, Path("/run/x"), "/venv/python")
    assert " ".join(words) == (
        "/venv/python -m sglang.bench_serving --backend sglang --base-url http://127.0.0.1:30000 "
        "--dataset-name openai --dataset-path /run/x/dataset.jsonl --model /run/x/tokenizer "
        "--num-prompts 1000 --max-concurrency 250 --warmup-requests 0 --disable-tqdm --output-file /run/x/results.jsonl"
    )


def test_the_results():
    found = known_generator.parsed(json.dumps(RESULTS) + "\n", 750, 37500)
    assert found == Found(
        tok_s=RESULTS["output_throughput"], concurrency=RESULTS["concurrency"], seconds=RESULTS["duration"]
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "sglang.bench_serving wrote results of another form: "),
        ("{", "sglang.bench_serving wrote results of another form: "),
        ("[]", "sglang.bench_serving wrote results of another form: "),
        (json.dumps(RESULTS) * 2, "sglang.bench_serving wrote results of another form: "),
        (json.dumps(RESULTS | {"concurrency": None}), "sglang.bench_serving wrote results of another form: "),
        ('{"completed": 750}', "sglang.bench_serving wrote results of another form: 'total_output_tokens'"),
        (json.dumps(RESULTS | {"completed": 749}), "sglang.bench_serving had 749 of 750 requests answered"),
        (
            json.dumps(RESULTS | {"total_output_tokens": 37499}),
            "sglang.bench_serving was given 37499 tokens of the 37500 that it asked for",
        ),
    ],
)
def test_results_that_do_not_count_are_refused(text, said):
    with pytest.raises(BenchError) as caught:
        known_generator.parsed(text, 750, 37500)
    assert str(caught.value).startswith(said)


def test_its_last_line_is_raised_if_it_fails():
    with pytest.raises(BenchError) as caught:
        known_generator.measure("http://127.0.0.1:1", 2, asked)
    assert str(caught.value).startswith("sglang.bench_serving failed: ")
    assert "No module named 'sglang'" in str(caught.value)
    assert sys.executable in str(caught.value)


def test_a_python_that_is_not_there_is_named():
    with pytest.raises(BenchError) as caught:
        known_generator.measure("http://127.0.0.1:1", 2, asked, python="/nowhere/python")
    assert str(caught.value) == "sglang.bench_serving cannot be run: /nowhere/python: No such file or directory"
