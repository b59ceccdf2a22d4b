"""Which lengths reach the stock attention backend in each forward mode."""

import unittest
from types import SimpleNamespace

import torch

from sglang_cpu_standin.attention import MultiStepDraftBackend, speculative_backend

BATCH = 4
"""Place of the batch among the arguments of a forward call: q, k, v, layer, batch."""


class StockBackend:
    """Records the lengths that it is called with."""

    def __init__(self, runner):
        self.runner = runner

    def forward_extend(self, *given):
        return {
            name: getattr(given[BATCH], name).tolist() for name in ("seq_lens", "extend_prefix_lens", "extend_seq_lens")
        }

    def forward_decode(self, *given):
        return given[BATCH].seq_lens.tolist()


class Mode(SimpleNamespace):
    verify = draft_extend = False

    def is_target_verify(self):
        return self.verify

    def is_draft_extend(self, *, include_v2):
        return include_v2 and self.draft_extend


def batch(mode: Mode, seq_lens: list[int], extend_seq_lens: list[int] | None = None, topk: int = 1) -> SimpleNamespace:
    return SimpleNamespace(
        forward_mode=mode,
        seq_lens=torch.tensor(seq_lens),
        extend_seq_lens=torch.tensor(extend_seq_lens or [0] * len(seq_lens)),
        extend_prefix_lens=torch.tensor([0] * len(seq_lens)),
        spec_info=SimpleNamespace(topk=topk, draft_token_num=4),
    )


class Attention(unittest.TestCase):
    def setUp(self):
        self.kind = speculative_backend(StockBackend)

    def extend(self, given):
        return self.kind(None).forward_extend(None, None, None, None, given)

    def test_verify_attends_to_the_sequence_and_the_draft(self):
        given = batch(Mode(verify=True), [7, 3])
        self.assertEqual(
            self.extend(given), {"seq_lens": [11, 7], "extend_prefix_lens": [7, 3], "extend_seq_lens": [4, 4]}
        )
        self.assertEqual(given.seq_lens.tolist(), [7, 3], "the caller's batch must stay as it is")

    def test_draft_extend_counts_its_tokens_already(self):
        given = batch(Mode(draft_extend=True), [11, 7], [4, 1])
        self.assertEqual(
            self.extend(given), {"seq_lens": [11, 7], "extend_prefix_lens": [7, 6], "extend_seq_lens": [4, 1]}
        )

    def test_every_batch_may_have_another_number_of_tokens(self):
        backend = self.kind(None)
        for tokens in (4, 2, 1):
            given = batch(Mode(verify=True), [7, 3])
            given.spec_info.draft_token_num = tokens
            self.assertEqual(
                backend.forward_extend(None, None, None, None, given),
                {
                    "seq_lens": [7 + tokens, 3 + tokens],
                    "extend_prefix_lens": [7, 3],
                    "extend_seq_lens": [tokens, tokens],
                },
            )
            given = batch(Mode(draft_extend=True), [7, 3], [tokens, 1])
            self.assertEqual(
                backend.forward_extend(None, None, None, None, given)["extend_prefix_lens"], [7 - tokens, 2]
            )

    def test_fewer_draft_steps_than_there_are_backends_for(self):
        steps = MultiStepDraftBackend(self.kind, "runner", topk=1, steps=4).attn_backends
        for lengths in ([7, 3], [9]):
            self.assertEqual(
                steps[0].forward_decode(None, None, None, None, batch(Mode(), lengths)), [n + 1 for n in lengths]
            )

    def test_prefill_is_left_alone(self):
        given = batch(Mode(), [11], [4])
        self.assertEqual(self.extend(given), {"seq_lens": [11], "extend_prefix_lens": [0], "extend_seq_lens": [4]})

    def test_a_tree_with_branches_is_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "topk is 2"):
            self.extend(batch(Mode(verify=True), [7], topk=2))

    def test_the_target_decodes_with_its_own_lengths(self):
        self.assertEqual(self.kind(None).forward_decode(None, None, None, None, batch(Mode(), [7, 3])), [7, 3])

    def test_each_draft_step_sees_one_token_more(self):
        steps = MultiStepDraftBackend(self.kind, "runner", topk=1, steps=3).attn_backends
        seen = [step.forward_decode(None, None, None, None, batch(Mode(), [7, 3])) for step in steps]
        self.assertEqual(seen, [[8, 4], [9, 5]])

    def test_a_draft_with_branches_is_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "--speculative-eagle-topk is 4"):
            MultiStepDraftBackend(self.kind, "runner", topk=4, steps=3)

    def test_there_are_no_buffers_to_fill(self):
        self.assertEqual(self.kind(None).get_verify_buffers_to_fill_after_draft(), [None, None])


if __name__ == "__main__":
    unittest.main()
