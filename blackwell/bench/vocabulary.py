"""The token ids of a model that stand for text, for prompts that are drawn at random."""

import json
from pathlib import Path

from .errors import BenchError
from .workload import Workload

TEXT_PARTS = ("text_config", "language_config", "llm_config")
"""Where the configuration of a model that also sees or hears has that of its language model."""

EDGE = 20
"""Special tokens stand at the beginning and at the end of a vocabulary: one part of so many is left out there."""


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


def workload(model: Path, context: int, new_tokens: int) -> Workload:
    """Random prompts of ``context`` tokens of a model, answers of ``new_tokens``; raises as ``size`` does."""
    tokens = size(model)
    return Workload(context, new_tokens, first_token=tokens // EDGE, last_token=tokens - 1 - tokens // EDGE)
