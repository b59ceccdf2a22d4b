"""What is left to be written of plain rounds, by itself: it is of one batch, and is copied when it is added."""

import unittest

import torch
from sglang.srt.speculative.draft_kv import DraftKVBacklog, Positions


class Request:
    """Equal to none but itself, as those of the scheduler."""


def added(first: float, rows: int) -> Positions:
    numbers = torch.arange(first, first + rows)
    return Positions(numbers, numbers + 100, numbers[:, None] * torch.ones(3), numbers + 200)


class Backlog(unittest.TestCase):
    def setUp(self):
        self.backlog = DraftKVBacklog()
        self.requests = [Request(), Request()]
        self.indices = torch.tensor([4, 7])

    def test_it_holds_others_as_soon_as_the_batch_is_another_one(self):
        one, two = self.requests
        batch = [one, two]
        self.assertFalse(self.backlog.holds_others_than(batch))
        self.backlog.add(batch, self.indices, added(0, 2))
        self.assertFalse(self.backlog.holds_others_than([one, two]))
        for others in ([one], [two, one], [one, two, Request()], [one, Request()]):
            self.assertTrue(self.backlog.holds_others_than(others))
        # As the scheduler does it, in place.
        batch.append(Request())
        self.assertTrue(self.backlog.holds_others_than(batch))
        self.backlog.take()
        self.assertFalse(self.backlog.holds_others_than([one]))

    def test_everything_is_taken_in_order_and_once(self):
        self.backlog.add(self.requests, self.indices, added(0, 2))
        self.backlog.add(self.requests, self.indices, added(10, 2))
        taken = self.backlog.take()
        self.assertEqual(taken.tokens.tolist(), [0, 1, 10, 11])
        self.assertEqual(taken.positions.tolist(), [100, 101, 110, 111])
        self.assertEqual(taken.hidden_states[:, 0].tolist(), [0, 1, 10, 11])
        self.assertEqual(taken.slots.tolist(), [200, 201, 210, 211])
        self.assertEqual(self.backlog.rounds, [])

    def test_hidden_states_that_a_graph_overwrites_are_kept(self):
        shared = added(1, 2)
        self.backlog.add(self.requests, self.indices, shared)
        shared.hidden_states.zero_()
        self.assertEqual(self.backlog.take().hidden_states[:, 0].tolist(), [1, 2])

    def test_it_is_due_by_its_rows(self):
        rounds = 0
        while not self.backlog.is_due:
            self.backlog.add(self.requests, self.indices, added(0, 2))
            rounds += 1
        self.assertEqual(rounds * 2, DraftKVBacklog.MAX_ROWS)


if __name__ == "__main__":
    unittest.main()
