"""The weights of the counting models.

Token t is embedded as points on circles: the cosines and sines of t times fixed angles. One rotation then leads from
every token to the next, so a linear layer can count. Attention is present in both models and multiplied by zero: what
they say depends on the last token alone.
"""

import math

import torch

from sglang_cpu_standin import counting

HIDDEN = 64
HEADS = 4
KV_HEADS = 2
HEAD_SIZE = HIDDEN // HEADS
MLP_SIZE = 2 * HIDDEN
TARGET_LAYERS = 4
CIRCLES = (HIDDEN - 2) // 2

Tensors = dict[str, torch.Tensor]


def angles() -> torch.Tensor:
    """Return the angle by which each circle turns from a token to the next, [circles] in radians, from 0.2 to 3."""
    golden_ratio = (1 + math.sqrt(5)) / 2
    return 0.2 + 2.8 * (torch.arange(1, CIRCLES + 1, dtype=torch.double) * golden_ratio % 1)


def embedding(tokens: torch.Tensor) -> torch.Tensor:
    """Return the embedding of tokens [n] as [n, hidden]; the last two values of each are 1."""
    turned = tokens.double()[:, None] * angles()
    return torch.cat([turned.cos(), turned.sin(), torch.ones(len(tokens), 2)], dim=1).float()


def rotation() -> torch.Tensor:
    """Return R [hidden, hidden] with R @ embedding(t) = embedding(t + 1)."""
    cos, sin = angles().cos().diag(), angles().sin().diag()
    turn = torch.eye(HIDDEN, dtype=torch.double)
    turn[: 2 * CIRCLES, : 2 * CIRCLES] = torch.cat([torch.cat([cos, -sin], dim=1), torch.cat([sin, cos], dim=1)])
    return turn.float()


def target() -> Tensors:
    """Return the weights of the target, a ``LlamaForCausalLM``: its head leads from t to ``next_token(t)``."""
    words = torch.arange(counting.FIRST, counting.VOCABULARY)
    head = torch.zeros(counting.VOCABULARY, HIDDEN)
    head[[counting.next_token(token) for token in words.tolist()]] = embedding(words)
    tensors = {
        "model.embed_tokens.weight": embedding(torch.arange(counting.VOCABULARY)),
        "model.norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": head,
    }
    for number in range(TARGET_LAYERS):
        prefix = f"model.layers.{number}."
        tensors |= _attention(prefix, HIDDEN) | _idle_mlp(prefix)
        tensors |= {f"{prefix}{norm}.weight": torch.ones(HIDDEN) for norm in _NORMS}
    return tensors


def eagle3() -> Tensors:
    """Return the weights of the draft, a ``LlamaForCausalLMEagle3``: it turns the target's state by one token, twice.

    ``fc`` turns the state of the target's first layer, the MLP turns it again; a later draft step starts from the
    draft's own state and only the MLP turns it. The head knows the reduced vocabulary, and ``d2t`` leads from it to
    the target's.
    """
    known = torch.tensor([token for token in range(counting.VOCABULARY) if counting.draft_knows(token)])
    in_target = torch.zeros(counting.VOCABULARY, dtype=torch.bool)
    in_target[known] = True
    return {
        **_attention("midlayer.", 2 * HIDDEN),
        **_turning_mlp("midlayer."),
        "midlayer.hidden_norm.weight": torch.ones(HIDDEN),
        "midlayer.input_layernorm.weight": torch.ones(HIDDEN),
        "fc.weight": torch.cat([rotation(), torch.zeros(HIDDEN, 2 * HIDDEN)], dim=1),
        "norm.weight": torch.ones(HIDDEN),
        "lm_head.weight": embedding(known),
        "d2t": known - torch.arange(len(known)),
        "t2d": in_target,
    }


_NORMS = ("input_layernorm", "post_attention_layernorm")


def _attention(prefix: str, width: int) -> Tensors:
    """Return attention over inputs of ``width`` values that fills the KV cache and adds nothing to the result."""
    sizes = {"q": HEADS * HEAD_SIZE, "k": KV_HEADS * HEAD_SIZE, "v": KV_HEADS * HEAD_SIZE}
    tensors = {
        f"{prefix}self_attn.{name}_proj.weight": 0.05 * torch.arange(size * width).sin().view(size, width)
        for name, size in sizes.items()
    }
    return tensors | {f"{prefix}self_attn.o_proj.weight": torch.zeros(HIDDEN, HEADS * HEAD_SIZE)}


def _idle_mlp(prefix: str) -> Tensors:
    """Return an MLP that adds nothing to the result."""
    wide = 0.05 * torch.arange(MLP_SIZE * HIDDEN).cos().view(MLP_SIZE, HIDDEN)
    return {
        f"{prefix}mlp.gate_proj.weight": wide,
        f"{prefix}mlp.up_proj.weight": wide,
        f"{prefix}mlp.down_proj.weight": torch.zeros(HIDDEN, MLP_SIZE),
    }


def _turning_mlp(prefix: str) -> Tensors:
    """Return an MLP, and the norm before it, that add (R - 1) x to x, for x an embedding.

    silu(z) - silu(-z) = z, so a pair of rows of the gate with opposite signs carries a linear map exactly; ``up``
    reads the constant last value of an embedding. The norm undoes its own scaling: every embedding has the same root
    mean square.
    """
    change = rotation() - torch.eye(HIDDEN)
    gate, up, down = torch.zeros(MLP_SIZE, HIDDEN), torch.zeros(MLP_SIZE, HIDDEN), torch.zeros(HIDDEN, MLP_SIZE)
    turning = torch.arange(2 * CIRCLES)
    gate[2 * turning], gate[2 * turning + 1] = change[turning], -change[turning]
    up[: 4 * CIRCLES, HIDDEN - 1] = 1
    down[turning, 2 * turning], down[turning, 2 * turning + 1] = 1, -1
    return {
        f"{prefix}mlp.gate_proj.weight": gate,
        f"{prefix}mlp.up_proj.weight": up,
        f"{prefix}mlp.down_proj.weight": down,
        f"{prefix}post_attention_layernorm.weight": torch.full((HIDDEN,), math.sqrt((CIRCLES + 2) / HIDDEN)),
    }
