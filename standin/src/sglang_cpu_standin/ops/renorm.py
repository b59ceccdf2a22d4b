"""Filters of a probability distribution over the vocabulary."""

import torch


def top_k_renorm_prob(probs: torch.Tensor, top_k: torch.Tensor) -> torch.Tensor:
    """Replace ``sgl_kernel.top_k_renorm_prob``: keep each row's ``top_k`` largest values and scale them to sum 1.

    probs [rows, vocabulary] float; top_k [rows] int, values beyond the vocabulary keep all. Ties with the k-th value
    are kept.
    """
    largest_first = probs.sort(dim=-1, descending=True).values
    last_kept = top_k.to(torch.int64).view(-1, 1).clamp(1, probs.shape[-1]) - 1
    kept = torch.where(probs >= largest_first.gather(-1, last_kept), probs, 0.0)
    return kept / kept.sum(dim=-1, keepdim=True)


def top_p_renorm_prob(probs: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """Replace ``sgl_kernel.top_p_renorm_prob``: keep each row's largest values up to mass ``top_p``, scaled to sum 1.

    probs [rows, vocabulary] float; top_p [rows] in (0, 1]. The value that crosses ``top_p`` is kept.
    """
    values, order = probs.sort(dim=-1, descending=True)
    mass_before = values.cumsum(dim=-1) - values
    values = torch.where(mass_before < top_p.view(-1, 1), values, 0.0)
    kept = torch.zeros_like(probs).scatter_(-1, order, values)
    return kept / kept.sum(dim=-1, keepdim=True)
