"""Writes a kind of prompts as token ids of a model.

python3 -m blackwell.bench.tokenize_prompts MODEL OUT --kind coding

Needs transformers, which every SGLang has. Runs as the user of the service: a model may bring code of its own, which
transformers runs if it is told to trust it.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import transformers

from . import chat, contexts, dialogues, durable, sources
from .errors import BenchError

WAY_OUT = "measure with --prompts random"

FILES = ("tokenizer_config.json", "tokenizer.json", "tokenizer.model")

FAULTS = (OSError, ValueError, ImportError, LookupError, TypeError, AttributeError, RuntimeError)
"""What transformers raises for a tokenizer that is not there or not whole, and what a model's own code may raise."""


def tokenized(model: Path, kind: str, *, trust_remote_code: bool) -> contexts.Tokenized:
    """The prompts of a kind as token ids of a model; raises BenchError, naming it, if it has no chat to be read."""
    if not model.is_dir():
        raise BenchError(f"{model} is no directory of a model")
    if not any((model / name).exists() for name in FILES):
        raise BenchError(f"{model} has no tokenizer, none of {', '.join(FILES)}: {WAY_OUT}")
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(model), trust_remote_code=trust_remote_code)
    except FAULTS as error:
        raise BenchError(f"{model} has no tokenizer that can be read ({_first_line(error)}): {WAY_OUT}") from error
    if not tokenizer.chat_template:
        raise BenchError(f"{model} has a tokenizer without a chat template: {WAY_OUT}")
    asked, files = dialogues.read(kind), sources.standard_library()
    try:
        made = chat.tokenized(tokenizer, asked, files.texts)
    except FAULTS as error:
        raise BenchError(f"{model} has a tokenizer that failed ({_first_line(error)}): {WAY_OUT}") from error
    except BenchError as error:
        raise BenchError(f"{model}: {error}: {WAY_OUT}") from error
    return replace(
        made, described={"prompts": kind, "conversations": dialogues.digest(asked), "source_files": files.digest}
    )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: writes the file whole or not at all; exits with 1 and one sentence if there is nothing to write."""
    parser = argparse.ArgumentParser(
        prog="python3 -m blackwell.bench.tokenize_prompts",
        description="Writes a kind of prompts as token ids of a model.",
    )
    parser.add_argument("model", type=Path, help="directory of the model")
    parser.add_argument("out", type=Path, help="file to write, as JSON")
    parser.add_argument("--kind", choices=(*dialogues.KINDS, dialogues.MIXED), required=True)
    parser.add_argument("--trust-remote-code", action="store_true", help="run the model's own code")
    given = parser.parse_args(arguments)
    transformers.logging.set_verbosity_error()
    try:
        made = tokenized(given.model, given.kind, trust_remote_code=given.trust_remote_code)
        durable.replace(given.out, contexts.as_json(made).encode())
    except BenchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
