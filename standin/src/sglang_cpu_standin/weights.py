"""The weights of the counting models.

Token t is embedded as points on circles: the cosines and sines of t times fixed angles. One rotation then leads from
every token to the next, so a linear layer can count. Attention is present in the target and in ``eagle3`` and
multiplied by zero: what they say depends on the last token alone. What ``eagle3_attending`` says depends on attention
alone.
"""

import math

import torch

from sglang_cpu_standin import counting

HIDDEN = 64
HEADS = 8
"""Query heads of all models: 2, 4 or 8 tensor-parallel ranks can share them."""

KV_HEADS = 2
HEAD_SIZE = 16
MLP_SIZE = 2 * HIDDEN
TARGET_LAYERS = 4
CIRCLES = (HIDDEN - 2) // 2

BY_TARGET, BY_DRAFT = 2 * CIRCLES, 2 * CIRCLES + 1
"""The two last values of the attending draft's states: the root of 2 is the one that tells where the state is from."""

ATTENDING_HEAD_SIZE = 2 * HIDDEN
"""A value of the attending draft holds the embedding of the token and the state, as they are. It has one KV head."""

CONTEXT = 4096
"""Longest sequence in tokens."""

ROPE_THETA = 10000.0
"""Base of the rotary position embedding of all models."""

DRAFT_STEP_AHEAD = 1
"""How far the rotary position that SGLang gives to a draft step is ahead of the step's place in the KV cache."""

PICKING = 24
"""Rotary frequencies, from the fastest, by which a head of the attending draft knows its distance.

The slower ones would add to the score of every position and tell none from another.
"""

SHARPNESS = 40.0
"""By how much, at least, the score of the position at a head's distance exceeds that of any other before softmax."""

DOUBT = 0.75
"""Circles, of ``CIRCLES``, that may be off before the attending draft guesses ``<s>``, which the target never says."""

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


def eagle3_attending() -> Tensors:
    """Return the weights of a draft whose guess is put together from what its KV cache holds at ``counting.DISTANCES``.

    Each place in ``counting.SEEN`` has circles of its own: there the draft's state is what the token at that place has
    in its embedding, and the head's row of a token is what the tokens before it have. So a single stale token makes
    the sum fall below that of ``<s>``, which reads the last value alone. Head 0 brings that value and takes back the
    state that comes with the residual, which is as long as an embedding in every step: the norms undo their scaling.
    """
    known = torch.tensor([token for token in range(counting.VOCABULARY) if counting.attending_draft_knows(token)])
    in_target = torch.zeros(counting.VOCABULARY, dtype=torch.bool)
    in_target[known] = True
    head = torch.zeros(len(known), HIDDEN)
    head[0, BY_DRAFT] = (CIRCLES - DOUBT) / math.sqrt(2)
    rows = torch.nonzero(known >= counting.FIRST).squeeze(1)
    before = torch.tensor([counting.counting_back(token, counting.SEEN[-1]) for token in known[rows].tolist()])
    for number, back in enumerate(counting.SEEN):
        mine = circles_of(number)
        head[rows[:, None], mine] = embedding(before[:, back - 1])[:, mine]
    length = math.sqrt((CIRCLES + 2) / HIDDEN)
    norms = ("midlayer.input_layernorm", "midlayer.hidden_norm", "midlayer.post_attention_layernorm", "norm")
    return {
        **_picking_attention("midlayer.self_attn."),
        **_idle_mlp("midlayer."),
        **{f"{norm}.weight": torch.full((HIDDEN,), length) for norm in norms},
        "fc.weight": _one_state_of_three(),
        "lm_head.weight": head,
        "d2t": known - torch.arange(len(known)),
        "t2d": in_target,
    }


def circles_of(number: int) -> torch.Tensor:
    """Return the values of a state that tell of one place in ``counting.SEEN``, cosines first; ``number`` is from 0."""
    circles = torch.arange(number, CIRCLES, len(counting.SEEN))
    return torch.cat([circles, CIRCLES + circles])


def _picking_attention(prefix: str) -> Tensors:
    """Return attention in which a head takes the value at one distance, as it is; heads beyond these are not read.

    The key is the same at every position before it is turned by the position, and a query is turned back by the head's
    distance. Both come from the state's last values, since the states of draft steps must be turned back further.
    """
    half = ATTENDING_HEAD_SIZE // 2
    speed = ROPE_THETA ** (-torch.arange(PICKING, dtype=torch.double) / half)
    lead = PICKING - float((torch.arange(1, CONTEXT)[:, None] * speed).cos().sum(dim=1).max())
    strength = math.sqrt(SHARPNESS * math.sqrt(ATTENDING_HEAD_SIZE) / lead / 2)

    def turned_back(distance: int) -> torch.Tensor:
        """Return what reads a query or key from a whole input, [head size, 2 * hidden]."""
        read = torch.zeros(ATTENDING_HEAD_SIZE, 2 * HIDDEN)
        for value, ahead in ((BY_TARGET, 0), (BY_DRAFT, DRAFT_STEP_AHEAD)):
            angle = (distance + ahead) * speed
            read[:PICKING, HIDDEN + value] = strength * angle.cos().float()
            read[half : half + PICKING, HIDDEN + value] = -strength * angle.sin().float()
        return read

    distances = (0, *counting.DISTANCES)
    queries = torch.zeros(HEADS * ATTENDING_HEAD_SIZE, 2 * HIDDEN)
    queries[: len(distances) * ATTENDING_HEAD_SIZE] = torch.cat([turned_back(distance) for distance in distances])
    out = torch.zeros(HIDDEN, HEADS, ATTENDING_HEAD_SIZE)
    values = torch.arange(HIDDEN)
    out[values, 0, HIDDEN + values] = -1
    out[BY_DRAFT, 0, HIDDEN - 1] = math.sqrt(2)
    for head, distance in enumerate(distances[1:], start=1):
        for number, back in enumerate(counting.SEEN):
            mine = circles_of(number)
            if back == distance + 1:
                out[mine, head, mine] = 1
            elif back == distance + 2:
                out[mine, head, HIDDEN + mine] = 1
    return {
        f"{prefix}q_proj.weight": queries,
        f"{prefix}k_proj.weight": turned_back(0),
        f"{prefix}v_proj.weight": torch.eye(ATTENDING_HEAD_SIZE),
        f"{prefix}o_proj.weight": out.flatten(1),
    }


def _one_state_of_three() -> torch.Tensor:
    """Return ``fc``, which takes every third circle of the state from each of the target's layers; all are alike."""
    circles = torch.arange(2 * CIRCLES)
    fc = torch.zeros(HIDDEN, 3, HIDDEN)
    fc[circles, circles % 3, circles] = 1
    fc[BY_TARGET, :, HIDDEN - 1] = math.sqrt(2) / 3
    return fc.flatten(1)


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
