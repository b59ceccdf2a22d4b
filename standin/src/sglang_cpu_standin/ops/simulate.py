"""Acceptance that is simulated instead of computed (SGLANG_SIMULATE_ACC_LEN)."""

import torch

SOME_TOKEN = 100
"""The token that SGLang emits for every position while it simulates."""


def generate_simulated_accept_index(
    accept_index: torch.Tensor,
    predict: torch.Tensor,
    accept_length: torch.Tensor,
    bs: int,
    spec_steps: int,
    simulate_acc_len: float,
    simulate_acc_method: str,
) -> torch.Tensor:
    """Replace ``generate_simulated_accept_index``, which allocates on ``cuda``.

    Returns the accepted slots [bs, spec_steps + 1] int32, -1 where refused.
    simulate_acc_len counts the bonus token. Filled: predict with one token id, accept_length [bs] without the bonus
    token.
    """
    length = drawn_length(simulate_acc_len, spec_steps + 1, simulate_acc_method)
    simulated = torch.full((bs, spec_steps + 1), -1, dtype=torch.int32)
    simulated[:, :length] = accept_index[:, :1] + torch.arange(length)
    accept_length.fill_(length - 1)
    predict.fill_(SOME_TOKEN)
    return simulated


def drawn_length(mean: float, longest: int, method: str) -> int:
    """Return a length from 1 to ``longest``, drawn as SGLANG_SIMULATE_ACC_METHOD says.

    ``match-expected`` rounds the mean up or down so that it is kept; ``multinomial`` is normal around it, then rounded.
    """
    if method == "multinomial":
        return int(torch.normal(mean, 1.0, (1,)).clamp(1, longest).round())
    if method == "match-expected":
        mean = min(max(mean, 1.0), longest)
        return int(mean) + int(torch.rand(1).item() < mean - int(mean))
    raise ValueError(f"SGLANG_SIMULATE_ACC_METHOD is {method!r}; known: multinomial, match-expected")
