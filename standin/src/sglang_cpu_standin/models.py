"""Writes the counting models: ``python -m sglang_cpu_standin.models OUT`` makes one directory in ``OUT`` for each.

What they say is described in ``counting``, their weights in ``weights``. ``FIXTURES`` is the place for another one.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from sglang_cpu_standin import counting, weights

STAMP = "counting-models.json"
"""File of a complete output directory; it names the sources that the models were made from."""

CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }} {% endfor %}"
"""Joins the contents of all messages: the answer continues the last word of the last one."""


@dataclass(frozen=True)
class Model:
    """One model directory: what makes its weights, and what its configuration says besides ``LLAMA``."""

    tensors: Callable[[], weights.Tensors]
    config: Mapping[str, object] = field(default_factory=dict)


LLAMA: Mapping[str, object] = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "vocab_size": counting.VOCABULARY,
    "hidden_size": weights.HIDDEN,
    "intermediate_size": weights.MLP_SIZE,
    "num_attention_heads": weights.HEADS,
    "num_key_value_heads": weights.KV_HEADS,
    "head_dim": weights.HEAD_SIZE,
    "max_position_embeddings": weights.CONTEXT,
    "rms_norm_eps": 1e-6,
    "rope_theta": weights.ROPE_THETA,
    "hidden_act": "silu",
    "attention_bias": False,
    "tie_word_embeddings": False,
    "bos_token_id": 0,
    "eos_token_id": 1,
}

EAGLE3: Mapping[str, object] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "target_hidden_size": weights.HIDDEN,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2], "use_aux_hidden_state": True},
}
"""What the configurations of all drafts say besides ``LLAMA``."""

FIXTURES: Mapping[str, Model] = {
    "target": Model(
        weights.target, {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": weights.TARGET_LAYERS}
    ),
    "eagle3": Model(
        weights.eagle3,
        {**EAGLE3, "draft_vocab_size": sum(map(counting.draft_knows, range(counting.VOCABULARY)))},
    ),
    "eagle3-attending": Model(
        weights.eagle3_attending,
        {
            **EAGLE3,
            "draft_vocab_size": sum(map(counting.attending_draft_knows, range(counting.VOCABULARY))),
            "num_key_value_heads": 1,
            "head_dim": weights.ATTENDING_HEAD_SIZE,
        },
    ),
}
"""Directory name -> model."""


def sources() -> str:
    """Return the SHA-256 of the sources that decide what is written."""
    digest = sha256()
    for module in (counting, weights, sys.modules[__name__]):
        digest.update(Path(module.__file__).read_bytes())
    return digest.hexdigest()


def is_complete(out: Path) -> bool:
    """Return whether ``out`` holds the models that these sources write."""
    try:
        return json.loads((out / STAMP).read_text())["sources"] == sources()
    except (OSError, ValueError, KeyError):
        return False


def write_models(out: Path) -> bool:
    """Make ``out`` hold the models and return whether anything was written.

    ``out`` appears complete or not at all. Raises FileExistsError if it is there and was not written by this module.
    """
    if is_complete(out):
        return False
    if out.exists() and not (out / STAMP).is_file():
        raise FileExistsError(f"{out} is there and holds no counting models; name another directory or remove it")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
        fresh, old = Path(scratch) / "new", Path(scratch) / "old"
        fresh.mkdir()
        for name, model in FIXTURES.items():
            write_model(fresh / name, model)
        (fresh / STAMP).write_text(json.dumps({"sources": sources()}))
        readable_by_all(fresh)
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    return True


def write_model(directory: Path, model: Model) -> None:
    """Write one model in the layout of the Hugging Face hub; ``directory`` must not exist."""
    directory.mkdir()
    tensors = {name: _stored(tensor) for name, tensor in model.tensors().items()}
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    tokenizer().save(str(directory / "tokenizer.json"))
    _write_json(directory / "config.json", {**LLAMA, **model.config})
    _write_json(directory / "generation_config.json", {"bos_token_id": 0, "eos_token_id": 1})
    _write_json(
        directory / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "model_max_length": weights.CONTEXT,
            "chat_template": CHAT_TEMPLATE,
        },
    )


def tokenizer() -> Tokenizer:
    """Return the tokenizer: words apart by white space; an unknown word is read as the first one."""
    words = range(counting.FIRST, counting.VOCABULARY)
    vocabulary = {"<s>": 0, "</s>": 1} | {counting.word(token): token for token in words}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=counting.word(counting.FIRST)))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(["<s>", "</s>"])
    return made


def readable_by_all(directory: Path) -> None:
    """Let any user read a directory and all in it, and only the owner write: the server runs as another user."""
    for parent, _, files in os.walk(directory):
        Path(parent).chmod(0o755)
        for name in files:
            (Path(parent) / name).chmod(0o644)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m sglang_cpu_standin.models", description="Write the counting models."
    )
    parser.add_argument("out", type=Path, metavar="OUT", help=f"directory to hold {'/, '.join(FIXTURES)}/")
    out = parser.parse_args(arguments).out.absolute()
    try:
        written = write_models(out)
    except OSError as error:
        sys.stderr.write(f"models: {error}\n")
        return 1
    sys.stdout.write(f"{'wrote' if written else 'unchanged'}: {', '.join(str(out / name) for name in FIXTURES)}\n")
    return 0


def _stored(tensor: torch.Tensor) -> torch.Tensor:
    return (tensor.bfloat16() if tensor.is_floating_point() else tensor).contiguous()


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
