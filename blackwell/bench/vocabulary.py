"""The token ids of a model that stand for text, for prompts that are drawn at random."""

import functools
import json
import random
from pathlib import Path

from .contexts import Contexts, Conversation, Tokenized
from .errors import BenchError

TEXT_PARTS = ("text_config", "language_config", "llm_config")
"""Where the configuration of a model that also sees or hears has that of its language model."""

EDGE = 20
"""Special tokens stand at the beginning and at the end of a vocabulary: one part of so many is left out there."""

DRAWN = 1_000_000
"""Tokens that are drawn; prompts are pieces of these. To draw each anew takes longer than a client may be idle."""

SEED = 59
"""Any: with one that is fixed, every run asks for the same prompts."""


def size(model: Path) -> int:
    """The size of a model's vocabulary; raises BenchError, naming the file, if its configuration does not tell."""
    file = model / "config.json"
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        parts = [found, *(found[name] for name in TEXT_PARTS if isinstance(found.get(name), dict))]
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, AttributeError) as error:
        raise BenchError(f"{file} is no configuration of a model: {error}") from error
    for part in parts:
        if type(part.get("vocab_size")) is int and part["vocab_size"] >= EDGE:
            return part["vocab_size"]
    raise BenchError(f"{file} tells no vocab_size, which random prompts are drawn from")


def workload(model: Path, context: int, new_tokens: int) -> Contexts:
    """Random prompts of ``context`` tokens of a model, answers of ``new_tokens``; raises as ``size`` does."""
    nothing_else = Conversation("random", (), ())
    return Contexts(Tokenized((nothing_else,), _drawn(size(model)), {"prompts": "random"}), context, new_tokens)


@functools.cache
def _drawn(tokens: int) -> tuple[int, ...]:
    known = range(tokens // EDGE, tokens - tokens // EDGE)
    return tuple(random.Random(SEED).choices(known, k=DRAWN))
