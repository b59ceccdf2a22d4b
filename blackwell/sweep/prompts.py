"""What the clients of a sweep ask for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from blackwell.bench import dialogues, tokenizing, vocabulary
from blackwell.bench.contexts import Contexts
from blackwell.bench.errors import BenchError
from blackwell.bench.workload import Request, Workload

from .plan import Plan

RANDOM = "random"

Asked = Callable[[int, int, int, int], Iterator[Request]]
"""The requests of a client: by context, clients at once, repeat and the client's number from 0."""


@dataclass(frozen=True)
class Model:
    """Where the model is, who may read it, and whether it brings code of its own."""

    path: Path
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
    return Model(Path(tokenizer), user, group, "--trust-remote-code" in argv)


def described(plan: Plan) -> dict[str, object]:
    """What a plan asks for, as a part of a fingerprint."""
    told: dict[str, object] = {"prompts": plan.prompts, "new_tokens": plan.new_tokens}
    if plan.prompts != RANDOM:
        told["conversations"] = dialogues.digest(dialogues.read(plan.prompts))
    return told


def asked(plan: Plan, of: Model) -> Asked:
    """The requests of a plan; raises BenchError if the tokenizer cannot make them, or a context is too small."""
    streams: dict[int, Workload | Contexts]
    if plan.prompts == RANDOM:
        streams = {context: vocabulary.workload(of.path, context, plan.new_tokens) for context in plan.contexts}
    else:
        tokenized = tokenizing.tokenized(
            of.path, plan.prompts, user=of.user, group=of.group, trust_remote_code=of.trust_remote_code
        )
        streams = {context: Contexts(tokenized, context, plan.new_tokens) for context in plan.contexts}

    def requests(context: int, clients: int, repeat: int, client: int) -> Iterator[Request]:
        return streams[context].stream(clients, repeat, client)

    return requests
