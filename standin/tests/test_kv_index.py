"""Copies between the table of KV cache slots and flat lists of slots."""

import unittest

import torch

from sglang_cpu_standin.ops import kv_index
from sglang_cpu_standin.ops.launch import TorchKernel


def table() -> torch.Tensor:
    """Row r, position p holds slot 100 * r + p."""
    return (100 * torch.arange(4)[:, None] + torch.arange(20)).int()


class KvIndex(unittest.TestCase):
    def setUp(self):
        self.rows = torch.tensor([3, 1])
        self.start = torch.tensor([5, 2])

    def test_gather_reads_each_request_after_the_other(self):
        locs = torch.full((6,), -1)
        kv_index.gather_slots(self.rows, table(), self.start, torch.tensor([7, 5]), locs, 20, 2)
        self.assertEqual(locs.tolist(), [305, 306, 102, 103, 104, -1])

    def test_scatter_writes_where_gather_reads_and_nowhere_else(self):
        slots, end, locs = table(), torch.tensor([7, 5]), torch.tensor([9, 8, 7, 6, 5])
        kv_index.scatter_slots(self.rows, slots, self.start, end, locs, 20, 2)
        back = torch.zeros(5, dtype=torch.long)
        kv_index.gather_slots(self.rows, slots, self.start, end, back)
        self.assertEqual(back.tolist(), [9, 8, 7, 6, 5])
        self.assertEqual(int((slots != table()).sum()), 5)

    def test_scatter_of_a_batch_takes_upstreams_arguments(self):
        slots = table()
        kv_index.scatter_slots_of_batch(self.rows, slots, self.start, self.start + 1, torch.tensor([7, 8]), 2)
        self.assertEqual((int(slots[3, 5]), int(slots[1, 2])), (7, 8))

    def test_a_kernel_is_launched_with_a_grid(self):
        locs = torch.zeros(6, dtype=torch.long)
        TorchKernel(kv_index.gather_draft_slots)[(2,)](self.rows, table(), self.start, locs, 20, 1, 3)
        self.assertEqual(locs.tolist(), [305, 306, 307, 102, 103, 104])

    def test_extend_returns_the_slots_to_verify(self):
        locs = kv_index.extend_slots(self.rows, table(), self.start, self.start + 4, 2, 4, "cpu")
        self.assertEqual((locs.tolist(), locs.dtype), ([305, 306, 307, 308, 102, 103, 104, 105], torch.int64))

    def test_the_last_accepted_token_is_found_in_each_stride(self):
        out = torch.zeros(3, dtype=torch.int32)
        tokens = torch.tensor([10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33])
        kv_index.last_accepted(tokens, torch.tensor([1, 4, 2]), out, 4)
        self.assertEqual(out.tolist(), [10, 23, 31])


if __name__ == "__main__":
    unittest.main()
