"""Filters of a probability distribution."""

import unittest

import torch

from sglang_cpu_standin.ops.renorm import top_k_renorm_prob, top_p_renorm_prob

PROBS = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.25, 0.25, 0.25, 0.25]])


class Renorm(unittest.TestCase):
    def assert_close(self, found, wanted):
        torch.testing.assert_close(found, torch.tensor(wanted), atol=1e-6, rtol=0)

    def test_top_k_keeps_the_k_largest(self):
        self.assert_close(top_k_renorm_prob(PROBS[:1], torch.tensor([2])), [[0, 4 / 7, 0, 3 / 7]])

    def test_top_k_of_one_keeps_the_maximum(self):
        self.assert_close(top_k_renorm_prob(PROBS[:1], torch.tensor([1])), [[0.0, 1, 0, 0]])

    def test_top_k_keeps_ties(self):
        self.assert_close(top_k_renorm_prob(PROBS[1:], torch.tensor([2])), [[0.25] * 4])

    def test_top_k_beyond_the_vocabulary_keeps_all(self):
        self.assert_close(top_k_renorm_prob(PROBS, torch.tensor([1 << 30, 4])), PROBS.tolist())

    def test_each_row_has_its_own_k(self):
        self.assertEqual((top_k_renorm_prob(PROBS[[0, 0]], torch.tensor([1, 3])) > 0).sum(-1).tolist(), [1, 3])

    def test_top_p_keeps_the_value_that_crosses(self):
        self.assert_close(top_p_renorm_prob(PROBS[:1], torch.tensor([0.5])), [[0, 4 / 7, 0, 3 / 7]])

    def test_top_p_of_one_keeps_all(self):
        self.assert_close(top_p_renorm_prob(PROBS, torch.tensor([1.0, 1.0])), PROBS.tolist())

    def test_a_tiny_top_p_keeps_the_maximum(self):
        self.assert_close(top_p_renorm_prob(PROBS[:1], torch.tensor([1e-6])), [[0.0, 1, 0, 0]])


if __name__ == "__main__":
    unittest.main()
