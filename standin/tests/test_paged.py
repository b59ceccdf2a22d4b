"""Slots of KV cache pages, beside what SGLang itself computes where it launches no kernel."""

import importlib
import itertools
import unittest

import torch

from sglang_cpu_standin.ops import paged


def allocator():
    """Return SGLang's module as the server has it; importing it arms the patches."""
    importlib.import_module("sgl_kernel")
    return importlib.import_module("sglang.srt.mem_cache.allocator")


class NoKvCache:
    """The allocator keeps it and asks nothing of it here."""


class Paged(unittest.TestCase):
    def test_a_page_is_filled_up_before_the_next_is_taken(self):
        out = torch.full((9,), -1)
        paged.extend_slots(
            torch.tensor([3, 4, 0]),
            torch.tensor([4, 9, 3]),
            torch.tensor([42, 83, -1]),
            torch.tensor([7, 5, 9, 1]),
            out,
            *(4, 4, 16),
        )
        self.assertEqual(out.tolist(), [43, 28, 29, 30, 31, 20, 36, 37, 38])

    def test_any_batch_gets_the_slots_of_sglangs_own_version(self):
        naive, draw = allocator().alloc_extend_naive, torch.Generator().manual_seed(1)
        for page_size, requests, _ in itertools.product((2, 16, 64), (1, 2, 5), range(20)):
            before = torch.randint(0, 150, (requests,), generator=draw)
            after = before + torch.randint(1, 150, (requests,), generator=draw)
            last = torch.where(before > 0, 1000 * page_size + (before - 1) % page_size, -1)
            free = 1 + torch.randperm(900, generator=draw)
            mine, wanted = (torch.full((int((after - before).sum()),), -1) for _ in range(2))
            paged.extend_slots(before, after, last, free, mine, 8, page_size, 1024)
            naive(before, after, last, free, wanted, page_size, "cpu")
            self.assertEqual(mine.tolist(), wanted.tolist())

    def test_one_token_more_is_in_the_same_page_or_begins_the_next(self):
        out = torch.zeros(3, dtype=torch.long)
        paged.decode_slots(torch.tensor([5, 8, 1]), torch.tensor([83, 46, -1]), torch.tensor([7, 5]), out, 4, 4)
        self.assertEqual(out.tolist(), [28, 47, 20])

    def test_too_few_pages_are_for_the_allocator_to_refuse(self):
        pool = allocator().PagedTokenToKVPoolAllocator(64, 16, torch.bfloat16, "cpu", NoKvCache(), need_sort=False)
        lengths, nothing = torch.tensor([40, 17]), torch.zeros(2, dtype=torch.long)
        self.assertIsNone(pool.alloc_extend(nothing, nothing, lengths, lengths, nothing - 1, 57))
        self.assertEqual(pool.available_size(), 64)

    def test_the_allocator_gives_each_slot_once_and_takes_it_back(self):
        pool = allocator().PagedTokenToKVPoolAllocator(160, 16, torch.bfloat16, "cpu", NoKvCache(), need_sort=False)
        lengths, nothing = torch.tensor([40, 16]), torch.zeros(2, dtype=torch.long)
        first = pool.alloc_extend(nothing, nothing, lengths, lengths, nothing - 1, 56)
        second = pool.alloc_decode(lengths + 1, lengths + 1, first[[39, 55]])
        self.assertEqual(int(second[0]), int(first[39]) + 1)
        self.assertEqual(len({*first.tolist(), *second.tolist()}), 58)
        self.assertEqual(pool.available_size(), 160 - 5 * 16)
        pool.free(torch.cat([first, second]))
        self.assertEqual(pool.available_size(), 160)


if __name__ == "__main__":
    unittest.main()
