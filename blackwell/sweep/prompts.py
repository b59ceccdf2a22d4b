"""What the clients of a sweep ask for."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from blackwell.bench import dialogues, durable, tokenizing, vocabulary
from blackwell.bench.contexts import Contexts
from blackwell.bench.errors import BenchError
from blackwell.bench.workload import Request, Workload

from .plan import Plan

FILE = "prompts.json"
RANDOM = "random"

Asked = Callable[[int, int, int, int], Iterator[Request]]
"""The requests of a client: by context, clients at once, repeat and the client's number from 0."""


@dataclass(frozen=True)
class Model:
    """Where the model is and its tokenizer, who may read them, and whether they bring code of their own."""

    path: Path
    tokenizer: Path
    user: str | None = None
    group: str | None = None
    trust_remote_code: bool = False


def model(argv: Sequence[str], user: str | None, group: str | None) -> Model:
    """The model of a server's command line; raises BenchError if it names none."""
    after = dict(pairwise(argv))
    path = after.get("--model-path") or after.get("--model")
    if not path:
        raise BenchError("the command line of sglang.service names no model (--model-path)")
    tokenizer = after.get("--tokenizer-path") or path
    return Model(Path(path), Path(tokenizer), user, group, "--trust-remote-code" in argv)


def described(plan: Plan) -> dict[str, object]:
    """What a plan asks for, as a part of a fingerprint."""
    told: dict[str, object] = {"prompts": plan.prompts, "new_tokens": plan.new_tokens}
    if plan.prompts != RANDOM:
        told["conversations"] = dialogues.digest(dialogues.read(plan.prompts))
    return told


@dataclass(frozen=True)
class Prompts:
    """``asked``: the requests. ``made_of``: what they were made of beyond what a plan asks for."""

    asked: Asked
    made_of: Mapping[str, object]


def made(plan: Plan, of: Model) -> Prompts:
    """The requests of a plan; raises BenchError if the tokenizer cannot make them, or a context is too small."""
    streams: dict[int, Workload | Contexts]
    if plan.prompts == RANDOM:
        streams = {context: vocabulary.workload(of.path, context, plan.new_tokens) for context in plan.contexts}
        made_of: Mapping[str, object] = {"vocabulary": vocabulary.size(of.path)}
    else:
        tokenized = tokenizing.tokenized(
            of.tokenizer, plan.prompts, user=of.user, group=of.group, trust_remote_code=of.trust_remote_code
        )
        streams = {context: Contexts(tokenized, context, plan.new_tokens) for context in plan.contexts}
        made_of = tokenized.described

    def requests(context: int, clients: int, repeat: int, client: int) -> Iterator[Request]:
        return streams[context].stream(clients, repeat, client)

    return Prompts(requests, made_of)


def keep(directory: Path, made_of: Mapping[str, object]) -> None:
    """Write what the prompts of a run are made of, the first time; raises BenchError if they were others before.

    Their source files are those of this host's Python, which an upgrade of it changes in the middle of a run.
    """
    file = directory / FILE
    text = json.dumps(made_of, indent=1, sort_keys=True)
    try:
        before = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        durable.replace(file, f"{text}\n".encode())
        return
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    if before.strip() != text:
        raise BenchError(
            f"{file} names other prompts than are made now: Python on this host or its files are others "
            "since the run began; begin a new one (--new)"
        )
