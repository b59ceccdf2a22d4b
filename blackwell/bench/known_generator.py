"""The same load from the generator that people know, ``sglang.bench_serving`` of the installed release, as a check.

The points of a sweep come from ``load``, and not from here, for four reasons. It keeps exactly so many requests in
flight, and can show it. It counts the window in which all clients are busy, where bench_serving divides by the whole
run: its throughput has the first prefill and the last stragglers in it. It knows of each request how many verifications
it took part in. And it ends a level by aborting what is in flight, where bench_serving waits for all. What the two
should agree on is the output per second but for that ramp and tail, and if they do not, one of them does not load the
server as it says.

Each of bench_serving's requests opens an HTTP session of its own, so that aiohttp's limit of 100 connections, which
holds for one session, never binds.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import BenchError
from .workload import Request

MODULE = "sglang.bench_serving"
ANSWERS = 4
"""Of each client: of a run with so many, the ramp and the tail are a small part."""

SECONDS = 3600
SHOWN = 300
"""Characters of its last line that are repeated."""

TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None,
    "decoder": None,
    "model": {"type": "WordLevel", "vocab": {"word": 0}, "unk_token": "word"},
}
TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "chat_template": "{% for message in messages %}{{ message['content'] }} {% endfor %}",
}
"""Stands in for the model's tokenizer, with which bench_serving counts tokens anew, beside the server's own count.

So it takes any model, one without a chat template too, and runs no code that a model brings.
"""


@dataclass(frozen=True)
class Found:
    """What bench_serving found: output tokens per second, mean requests in flight, and seconds, all over its run."""

    tok_s: float
    concurrency: float
    seconds: float


def requests(asked: Callable[[int], Iterator[Request]], clients: int, answers: int) -> list[Request]:
    """The first requests of every client, all first ones first, then all second ones, and so on."""
    rounds = zip(*(itertools.islice(asked(client), answers) for client in range(clients)), strict=True)
    return [request for together in rounds for request in together]


def dataset(asked: Sequence[Request]) -> str:
    """Requests as bench_serving's dataset ``openai`` has them.

    It sends the messages of a line where the token ids of a prompt belong, but what else a line has goes into the
    request as it is, and over that. So the server is asked for exactly the prompts of the sweep.
    """
    messages = [{"role": "user", "content": "word"}]
    lines = ({"messages": messages, "max_tokens": new, "input_ids": prompt} for prompt, new in asked)
    return "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)


def command(url: str, clients: int, prompts: int, directory: Path, python: str = sys.executable) -> list[str]:
    """The command line; ``directory`` has the dataset and the tokenizer, and gets the results.

    Without warm-up, which would send the messages and not the prompt; the server has been warmed up. The length of
    every answer is what was asked for: bench_serving ignores the end of a text unless it is told not to.
    """
    return [
        *(python, "-m", MODULE, "--backend", "sglang", "--base-url", url.rstrip("/")),
        *("--dataset-name", "openai", "--dataset-path", str(directory / "dataset.jsonl")),
        *("--model", str(directory / "tokenizer"), "--num-prompts", str(prompts), "--max-concurrency", str(clients)),
        *("--warmup-requests", "0", "--disable-tqdm", "--output-file", str(directory / "results.jsonl")),
    ]


def measure(
    url: str,
    clients: int,
    asked: Callable[[int], Iterator[Request]],
    *,
    answers: int = ANSWERS,
    python: str = sys.executable,
) -> Found:
    """Have bench_serving load a server with the first ``answers`` requests of each client, ``clients`` at a time.

    ``python`` is that of the release. Raises BenchError with its last line if it fails or does not end within
    ``SECONDS``, and if not every request was answered in full.
    """
    sent = requests(asked, clients, answers)
    with tempfile.TemporaryDirectory(prefix="blackwell-check-") as scratch:
        directory = Path(scratch)
        (directory / "dataset.jsonl").write_text(dataset(sent), encoding="utf-8")
        (directory / "tokenizer").mkdir()
        (directory / "tokenizer" / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        (directory / "tokenizer" / "tokenizer_config.json").write_text(json.dumps(TOKENIZER_CONFIG))
        _run(command(url, clients, len(sent), directory, python), directory)
        try:
            text = (directory / "results.jsonl").read_text(encoding="utf-8")
        except OSError as error:
            raise BenchError(f"{MODULE} wrote no results: {error.strerror}") from error
    return parsed(text, len(sent), sum(new for _, new in sent))


def _run(words: Sequence[str], directory: Path) -> None:
    # What it imports may keep something at home, or beside a release that belongs to root.
    environment = os.environ | {"HOME": str(directory), "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    try:
        done = subprocess.run(
            words,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{MODULE} did not end within {SECONDS} s") from error
    except OSError as error:
        raise BenchError(f"{MODULE} cannot be run: {words[0]}: {error.strerror}") from error
    if done.returncode:
        # It prints the traceback of a request in one line; what it failed of itself is on stderr.
        said = (done.stderr.strip() or done.stdout.strip()).decode(errors="replace").splitlines()
        raise BenchError(f"{MODULE} failed: {said[-1].strip()[:SHOWN] if said else 'without a word'}")


def parsed(text: str, wanted: int, tokens: int) -> Found:
    """The results of one run; raises BenchError if they are none, or not of so many requests and output tokens."""
    try:
        (line,) = text.splitlines()
        found = json.loads(line)
        completed, given = int(found["completed"]), int(found["total_output_tokens"])
        made = Found(float(found["output_throughput"]), float(found["concurrency"]), float(found["duration"]))
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{MODULE} wrote results of another form: {error}") from error
    if completed != wanted:
        raise BenchError(f"{MODULE} had {completed} of {wanted} requests answered")
    if given != tokens:
        raise BenchError(f"{MODULE} was given {given} tokens of the {tokens} that it asked for")
    return made
