"""Prompts of a given number of tokens: a conversation, lengthened by source files in its first question.

A prompt is made of token ids: those of the chat template up to the place, a piece of the tokenized files, those of the
rest. A tokenizer might join what meets at the two seams, or at the ends of the piece, so that tokenizing the same text
as a whole may give a token more or less. To the speed of a server that makes no difference, and a prompt of 128k tokens
is cut in a millisecond.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import BenchError
from .workload import Request

LEAST_FILLER = 16
"""Tokens of source files that each prompt has: those of one conversation would all be the same without."""

FORMAT = 1


@dataclass(frozen=True)
class Conversation:
    """Token ids of a conversation in its chat template, before and after the place for source files."""

    id: str
    prefix: tuple[int, ...]
    rest: tuple[int, ...]

    @property
    def shortest(self) -> int:
        """Tokens of the shortest prompt that it makes."""
        return len(self.prefix) + LEAST_FILLER + len(self.rest)


@dataclass(frozen=True)
class Tokenized:
    """Conversations and source files as a model's tokenizer reads them; ``described`` tells from what."""

    conversations: tuple[Conversation, ...]
    filler: tuple[int, ...]
    described: Mapping[str, Any] = field(default_factory=dict)


def as_json(tokenized: Tokenized) -> str:
    """What ``parsed`` reads."""
    conversations = [
        {"id": one.id, "prefix": list(one.prefix), "rest": list(one.rest)} for one in tokenized.conversations
    ]
    return json.dumps(
        {
            "format": FORMAT,
            "described": dict(tokenized.described),
            "conversations": conversations,
            "filler": list(tokenized.filler),
        },
        separators=(",", ":"),
    )


def parsed(text: str, file: str) -> Tokenized:
    """Reads ``as_json``; raises BenchError, naming the file, for anything else."""
    try:
        found = json.loads(text)
        conversations = tuple(
            Conversation(str(one["id"]), _ids(one["prefix"]), _ids(one["rest"])) for one in found["conversations"]
        )
        made = Tokenized(conversations, _ids(found["filler"]), dict(found["described"]))
        version = found["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{file} holds no tokenized prompts: {error}") from error
    if version != FORMAT:
        raise BenchError(f"{file} holds tokenized prompts of format {version!r}, not {FORMAT}")
    if not made.conversations or not made.filler:
        raise BenchError(f"{file} holds no conversations, or no source files")
    return made


def _ids(found: list) -> tuple[int, ...]:
    if not all(type(token) is int and token >= 0 for token in found):
        raise TypeError("a token id is no whole number from 0")
    return tuple(found)


@dataclass(frozen=True)
class Contexts:
    """Prompts of exactly ``context`` tokens, answers of ``new_tokens``; the requests are those of every arm.

    Raises BenchError, when it is made, if every conversation is longer.
    """

    tokenized: Tokenized
    context: int
    new_tokens: int = 256

    def __post_init__(self) -> None:
        """Refuses a context into which no conversation fits."""
        if not self.fitting:
            least = min(self.tokenized.conversations, key=lambda one: one.shortest)
            raise BenchError(
                f"contexts: {self.context} tokens are too few, the shortest prompt of this model, {least.id}, "
                f"takes {least.shortest}"
            )

    @property
    def fitting(self) -> tuple[Conversation, ...]:
        """The conversations that are short enough; none is ever cut."""
        return tuple(one for one in self.tokenized.conversations if one.shortest <= self.context)

    @property
    def longest(self) -> int:
        """Tokens of the longest answer."""
        return self.new_tokens

    def stream(self, clients: int, repeat: int, client: int) -> Iterator[Request]:
        """The endless requests of one client out of ``clients``.

        Each has its own piece of the source files, which begins anywhere in them: beyond the template and a system
        prompt, the server's prefix cache knows nothing of it.
        """
        fitting, ring = self.fitting, self.tokenized.filler
        rng = random.Random(f"{self.context} tokens, {clients} clients, repeat {repeat}, client {client}")
        while True:
            one = rng.choice(fitting)
            length = self.context - len(one.prefix) - len(one.rest)
            yield [*one.prefix, *_piece(ring, rng.randrange(len(ring)), length), *one.rest], self.new_tokens


def _piece(ring: tuple[int, ...], start: int, length: int) -> tuple[int, ...]:
    """``length`` tokens from ``start`` on; the first follows the last."""
    piece = ring[start : start + length]
    while len(piece) < length:
        piece += ring[: length - len(piece)]
    return piece
