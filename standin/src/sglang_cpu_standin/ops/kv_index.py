"""Copies between ``req_to_token`` and lists of KV cache slots.

``req_to_token`` [requests, positions] int32 holds the slot of every position of every request; ``locs`` is flat and
holds the slots of one request after the other. Offsets and lengths are [batch] and count positions.
"""

import torch


def scatter_slots(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start: torch.Tensor,
    end: torch.Tensor,
    locs: torch.Tensor,
    *_sizes: int,
) -> None:
    """Replace ``assign_req_to_token_pool``: write ``locs`` to positions ``start`` to ``end`` of each request."""
    for row, first, last, taken in _spans(req_pool_indices, start, end):
        req_to_token[row, first:last] = locs[taken : taken + last - first].to(req_to_token.dtype)


def gather_slots(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start: torch.Tensor,
    end: torch.Tensor,
    locs: torch.Tensor,
    *_sizes: int,
) -> None:
    """Replace ``assign_extend_cache_locs``: read positions ``start`` to ``end`` of each request into ``locs``."""
    for row, first, last, taken in _spans(req_pool_indices, start, end):
        locs[taken : taken + last - first] = req_to_token[row, first:last]


def gather_draft_slots(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    seq_lens: torch.Tensor,
    locs: torch.Tensor,
    _pool_len: int,
    topk: int,
    steps: int,
) -> None:
    """Replace ``assign_draft_cache_locs_page_size_1``: read the ``topk * steps`` slots after each sequence."""
    gather_slots(req_pool_indices, req_to_token, seq_lens, seq_lens + topk * steps, locs)


def extend_slots(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    batch_size: int,
    draft_token_num: int,
    device: str | torch.device,
) -> torch.Tensor:
    """Replace ``assign_extend_cache_locs_func``: return the slots to verify, [batch_size * draft_token_num] int64."""
    locs = torch.empty(batch_size * draft_token_num, dtype=torch.int64, device=device)
    gather_slots(req_pool_indices, req_to_token, start_offset, end_offset, locs)
    return locs


def scatter_slots_of_batch(
    req_pool_indices: torch.Tensor,
    req_to_token: torch.Tensor,
    start_offset: torch.Tensor,
    end_offset: torch.Tensor,
    out_cache_loc: torch.Tensor,
    _batch_size: int,
) -> None:
    """Replace ``assign_req_to_token_pool_func``."""
    scatter_slots(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc)


def last_accepted(tokens: torch.Tensor, accept_lens: torch.Tensor, out: torch.Tensor, stride: int) -> None:
    """Replace ``fill_new_verified_id``: write the last accepted token of each request to ``out``.

    tokens [batch * stride] holds ``stride`` tokens a request, of which the first ``accept_lens`` [batch] (at least 1)
    are accepted.
    """
    rows = torch.arange(len(accept_lens), device=accept_lens.device) * stride
    out.copy_(tokens.reshape(-1)[rows + accept_lens - 1])


def _spans(rows: torch.Tensor, start: torch.Tensor, end: torch.Tensor) -> list[tuple[int, int, int, int]]:
    """Return (row, first position, last position, index into the flat list) of each request."""
    spans, taken = [], 0
    for row, first, last in zip(rows.tolist(), start.tolist(), end.tolist(), strict=True):
        spans.append((row, first, last, taken))
        taken += last - first
    return spans
