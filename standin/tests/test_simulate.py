"""Simulated acceptance."""

import unittest

import torch

from sglang_cpu_standin.ops import simulate


class Simulate(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def test_the_expected_mean_is_met_by_its_two_neighbours(self):
        drawn = [simulate.drawn_length(2.3, 4, "match-expected") for _ in range(4000)]
        self.assertEqual(set(drawn), {2, 3})
        self.assertAlmostEqual(sum(drawn) / len(drawn), 2.3, delta=0.03)

    def test_whole_and_extreme_means_are_exact(self):
        for mean, length in ((3.0, 3), (9.5, 4), (0.2, 1), (4.0, 4)):
            self.assertEqual({simulate.drawn_length(mean, 4, "match-expected") for _ in range(50)}, {length})

    def test_multinomial_stays_in_range(self):
        drawn = {simulate.drawn_length(2.5, 4, "multinomial") for _ in range(500)}
        self.assertEqual(drawn, {1, 2, 3, 4})

    def test_an_unknown_method_is_refused_by_name(self):
        with self.assertRaisesRegex(ValueError, "'guess'"):
            simulate.drawn_length(2.0, 4, "guess")

    def test_slots_lengths_and_tokens_are_filled(self):
        accept_index = torch.tensor([[0, 1, 2, 3], [4, -1, -1, -1]], dtype=torch.int32)
        predict, length = torch.zeros(8, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
        simulated = simulate.generate_simulated_accept_index(accept_index, predict, length, 2, 3, 2.0, "match-expected")
        self.assertEqual(simulated.tolist(), [[0, 1, -1, -1], [4, 5, -1, -1]])
        self.assertEqual((length.tolist(), set(predict.tolist())), ([1, 1], {simulate.SOME_TOKEN}))


if __name__ == "__main__":
    unittest.main()
