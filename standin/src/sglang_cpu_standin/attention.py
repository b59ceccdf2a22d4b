"""SGLang's torch-native attention backend, with the forward modes of speculative decoding for a chain of draft tokens.

The stock backend knows plain prefill and decode. The other modes differ only in which lengths describe the batch, so
they are told to it in those terms: ``seq_lens`` counts all positions that are attended to, ``extend_prefix_lens``
those before the queries.
"""

import copy

import torch


def speculative_backend(base: type) -> type:
    """Return a subclass of ``TorchNativeAttnBackend`` that also serves target verify, draft extend and draft decode."""

    class SpeculativeTorchNativeBackend(base):
        """Attention by ``scaled_dot_product_attention``, for any forward mode with ``topk`` 1."""

        draft_step: int | None = None
        """Which step of the draft's decode this instance serves, from 0; None for the target's own decode."""

        def get_verify_buffers_to_fill_after_draft(self) -> list[None]:
            """Return no buffers: without CUDA graphs the mask and the positions are made afresh."""
            return [None, None]

        def update_verify_buffers_to_fill_after_draft(self, spec_info: object, cuda_graph_bs: int | None) -> None:
            """Do nothing: there are no buffers."""

        def forward_extend(
            self,
            q: torch.Tensor,
            k: torch.Tensor,
            v: torch.Tensor,
            layer: object,
            batch: object,
            *args: object,
            **kwargs: object,
        ) -> torch.Tensor:
            """Attend from the new tokens of each request to its whole sequence; shapes are upstream's."""
            return super().forward_extend(q, k, v, layer, as_plain_extend(batch), *args, **kwargs)

        def forward_decode(
            self,
            q: torch.Tensor,
            k: torch.Tensor,
            v: torch.Tensor,
            layer: object,
            batch: object,
            *args: object,
            **kwargs: object,
        ) -> torch.Tensor:
            """Attend from one token of each request to its whole sequence; shapes are upstream's."""
            if self.draft_step is not None:
                batch = with_lengths(batch, seq_lens=batch.seq_lens + self.draft_step + 1)
            return super().forward_decode(q, k, v, layer, batch, *args, **kwargs)

    return SpeculativeTorchNativeBackend


class MultiStepDraftBackend:
    """Attention of the draft's decode, as ``TritonMultiStepDraftBackend``: a backend for each step but the last."""

    def __init__(self, backend: type, runner: object, topk: int, steps: int) -> None:
        """``backend`` is made by ``speculative_backend``; raise NotImplementedError unless ``topk`` is 1."""
        if topk != 1:
            raise NotImplementedError(
                f"sglang-cpu-standin drafts one chain of tokens; --speculative-eagle-topk is {topk}"
            )
        self.attn_backends = [backend(runner) for _ in range(steps - 1)]
        for step, attention in enumerate(self.attn_backends):
            attention.draft_step = step

    def init_forward_metadata(self, _batch: object) -> None:
        """Do nothing: the lengths are taken from the batch at each call."""


def as_plain_extend(batch: object) -> object:
    """Return the batch as plain prefill describes it.

    In target verify ``seq_lens`` counts the tokens before the tree; in draft extend it counts the new tokens too.
    """
    if batch.forward_mode.is_target_verify():
        if batch.spec_info.topk != 1:
            raise NotImplementedError(
                f"sglang-cpu-standin verifies one chain of tokens; topk is {batch.spec_info.topk}"
            )
        new = torch.full_like(batch.seq_lens, batch.spec_info.draft_token_num)
        return with_lengths(
            batch, seq_lens=batch.seq_lens + new, extend_prefix_lens=batch.seq_lens, extend_seq_lens=new
        )
    if batch.forward_mode.is_draft_extend(include_v2=True):
        return with_lengths(batch, extend_prefix_lens=batch.seq_lens - batch.extend_seq_lens)
    return batch


def with_lengths(batch: object, **lengths: torch.Tensor) -> object:
    """Return a shallow copy of a ``ForwardBatch`` with other lengths; it shares every tensor that is not named."""
    changed = copy.copy(batch)
    vars(changed).update(lengths)
    return changed
