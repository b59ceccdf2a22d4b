"""The conversations that come with the project: what programmers ask, and what agents with tools are at."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise

from .errors import BenchError

KINDS = ("coding", "agentic")
MIXED = "mixed"
"""All kinds."""

SHOWN_DIGITS = 16
SYSTEM, USER, ASSISTANT = "system", "user", "assistant"


@dataclass(frozen=True)
class Message:
    """One turn of a conversation."""

    role: str
    content: str


@dataclass(frozen=True)
class Dialogue:
    """A conversation up to the question of a user that is to be answered next.

    It may begin with a system prompt; then user and assistant take turns, as chat templates want it. Calls of tools and
    their results are text of these two.
    """

    id: str
    kind: str
    messages: tuple[Message, ...]


def read(kind: str) -> tuple[Dialogue, ...]:
    """The conversations of a kind, or of all for MIXED, in their order; the package may lie in a zip archive.

    Raises BenchError, naming file and line, for a line that is no conversation of that kind, or an id that is there
    twice.
    """
    if kind not in (*KINDS, MIXED):
        raise BenchError(f"prompts: {kind} is none of {', '.join((*KINDS, MIXED))}")
    wanted = KINDS if kind == MIXED else (kind,)
    return tuple(dialogue for one in wanted for dialogue in parsed(*_text(one), one))


def _text(kind: str) -> tuple[str, str]:
    file = resources.files(__package__) / "prompts" / f"{kind}.jsonl"
    try:
        return file.read_text(encoding="utf-8"), str(file)
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error


def parsed(text: str, file: str, kind: str) -> tuple[Dialogue, ...]:
    """The conversations of a file's text; raises as ``read`` does, and if there is none."""
    found: dict[str, Dialogue] = {}
    # Not splitlines(), which also cuts at characters that JSON may have inside of a text.
    for number, line in enumerate(text.rstrip("\n").split("\n"), start=1):
        where = f"{file}: line {number}"
        dialogue = _dialogue(line, where)
        if dialogue.kind != kind:
            raise BenchError(f"{where} is of kind {dialogue.kind!r}, not {kind!r}")
        if dialogue.id in found:
            raise BenchError(f"{where} has {dialogue.id} a second time")
        found[dialogue.id] = dialogue
    return tuple(found.values())


def _dialogue(line: str, where: str) -> Dialogue:
    try:
        found = json.loads(line)
        messages = tuple(Message(message["role"], message["content"]) for message in found["messages"])
        dialogue = Dialogue(found["id"], found["kind"], messages)
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{where} holds no conversation with id, kind and messages: {error}") from error
    for wrong in _problems(dialogue):
        raise BenchError(f"{where}: {wrong}")
    return dialogue


def _problems(dialogue: Dialogue) -> Iterator[str]:
    texts = [dialogue.id, dialogue.kind, *(message.content for message in dialogue.messages)]
    if not all(isinstance(text, str) and text.strip() for text in texts):
        yield "id, kind or a message is no text, or an empty one"
    roles = [message.role for message in dialogue.messages]
    turns = roles[1:] if roles[:1] == [SYSTEM] else roles
    takes_turns = all({one, other} == {USER, ASSISTANT} for one, other in pairwise(turns))
    if not turns or not takes_turns or (turns[0], turns[-1]) != (USER, USER):
        yield f"user and assistant do not take turns from a user to a user: {', '.join(map(str, roles)) or 'nothing'}"


def digest(dialogues: Iterable[Dialogue]) -> str:
    """What tells these conversations from others, as hexadecimal digits."""
    told = [[one.id, one.kind, [[message.role, message.content] for message in one.messages]] for one in dialogues]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:SHOWN_DIGITS]
