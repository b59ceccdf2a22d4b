"""Slots of KV cache pages for the tokens that are added to each request.

Page n holds the slots from ``n * page_size`` on. ``free_pages`` lists the pages to take, in order; the allocator itself
removes them afterwards. Where there are too few, it refuses the result, so what is left unwritten does not matter.
"""

import torch


def extend_slots(
    prefix_lens: torch.Tensor,
    seq_lens: torch.Tensor,
    last_loc: torch.Tensor,
    free_pages: torch.Tensor,
    out_indices: torch.Tensor,
    _batch_upper: int,
    page_size: int,
    _tokens_upper: int,
) -> None:
    """Replace ``alloc_extend_kernel``: fill ``out_indices`` with the slots of each request's new tokens.

    prefix_lens and seq_lens [batch] count a request's tokens before and after; last_loc [batch] is the slot of its
    last token so far, whose page is filled up first.
    """
    in_page = torch.arange(page_size, device=out_indices.device)
    written = taken = 0
    for before, after, last in zip(prefix_lens.tolist(), seq_lens.tolist(), last_loc.tolist(), strict=True):
        pages = free_pages[taken : taken + _pages(after, page_size) - _pages(before, page_size)]
        slots = torch.cat([last + 1 + in_page[: -before % page_size], (pages[:, None] * page_size + in_page).flatten()])
        slots = slots[: after - before]
        out_indices[written : written + len(slots)] = slots
        written += after - before
        taken += _pages(after, page_size) - _pages(before, page_size)


def decode_slots(
    seq_lens: torch.Tensor,
    last_loc: torch.Tensor,
    free_pages: torch.Tensor,
    out_indices: torch.Tensor,
    batch_upper: int,
    page_size: int,
) -> None:
    """Replace ``alloc_decode_kernel``: fill ``out_indices`` [batch] with the slot of each request's one new token.

    seq_lens [batch] counts the new token; the rest is as in ``extend_slots``.
    """
    extend_slots(seq_lens - 1, seq_lens, last_loc, free_pages, out_indices, batch_upper, page_size, len(seq_lens))


def _pages(tokens: int, page_size: int) -> int:
    return -(-tokens // page_size)
