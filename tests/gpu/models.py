"""Model directories that need no download.

``dense`` is a Llama of 8 billion parameters, ``small`` one of 0.2, ``mla`` a small model with DeepSeek-V3's attention
and dense layers: a configuration each, served with random weights (``--load-format dummy``). Each has an EAGLE-3 head
of one layer beside it, named ``<model>-eagle3``. ``counting`` holds the stand-in's counting models, whose words and
acceptance are known beforehand.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

STANDIN = Path(__file__).resolve().parents[2] / "standin" / "src"

VOCABULARY = 32000
CONTEXT = 8192

LLAMA: Mapping[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "vocab_size": VOCABULARY,
    "max_position_embeddings": CONTEXT,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "attention_bias": False,
    "mlp_bias": False,
    "head_dim": 128,
}
DENSE = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8}
SMALL = {"hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 8, "num_key_value_heads": 8}
DENSE_LAYERS = 32
HEAD = {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": VOCABULARY}
MLA: Mapping[str, object] = {
    **LLAMA,
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "moe_intermediate_size": 512,
    "num_hidden_layers": 10,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": 512,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    # No layer has experts: this is about attention.
    "first_k_dense_replace": 10,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
    "routed_scaling_factor": 1.0,
    "norm_topk_prob": True,
    "moe_layer_freq": 1,
}

MODELS: Mapping[str, Mapping[str, object]] = {
    "dense": {**LLAMA, **DENSE, "num_hidden_layers": DENSE_LAYERS},
    "dense-eagle3": {**LLAMA, **DENSE, **HEAD},
    "small": {**LLAMA, **SMALL, "num_hidden_layers": 10},
    "small-eagle3": {**LLAMA, **SMALL, **HEAD},
    "mla": MLA,
    "mla-eagle3": {**LLAMA, **SMALL, **HEAD},
}


def write(out: Path) -> None:
    """Write a directory for each of ``MODELS`` into ``out``, the counting models and the stand-in's hooks."""
    write_random(out)
    write_counting(out / "counting")


def write_random(out: Path) -> None:
    """Write a directory for each of ``MODELS``, which have random weights, into ``out``, and the stand-in's hooks."""
    for name, config in MODELS.items():
        (out / name).mkdir(parents=True, exist_ok=True)
        (out / name / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    # The server's probe wants the stand-in's hooks, and nothing else of its directory.
    (out / "hooks").mkdir(exist_ok=True)
    (out / "hooks" / "sglang_cpu_standin").symlink_to(STANDIN / "sglang_cpu_standin")


GPU_HEAD_SIZE = 64
"""Smallest size of an attention head that the kernels of a GPU take; the counting target's own is smaller."""


def write_counting(out: Path) -> None:
    """Write ``target`` and ``eagle3-attending`` of the counting models into ``out``.

    In a process of its own: the stand-in's directory would shadow the real kernels in this one.
    """
    program = (
        "import sys; from pathlib import Path; from sglang_cpu_standin import weights; "
        f"weights.HEAD_SIZE = {GPU_HEAD_SIZE}; "
        "from sglang_cpu_standin import models; models.write_models(Path(sys.argv[1]))"
    )
    path = os.pathsep.join([str(STANDIN), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", program, str(out)], env=environment, check=True)
