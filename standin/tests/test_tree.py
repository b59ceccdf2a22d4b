"""The tree of draft tokens: layout, greedy verification, sampling."""

import unittest

import torch

from sglang_cpu_standin.ops import tree

CHAIN = [-1, 0, 1, 2]
"""Parents of the slots of a chain of three draft tokens."""

FORK = [-1, 0, 0, 1, 1]
"""The root has two children; the first of them has two."""


def links(parents: list[int], batch: int = 1) -> dict[str, torch.Tensor]:
    """Return the links of a tree, worked out from the parents by search."""
    n = len(parents)
    children = {slot: [child for child in range(n) if parents[child] == slot] for slot in range(n)}
    first = [min(children[slot], default=-1) for slot in range(n)]
    later = [[other for other in children.get(parents[slot], []) if other > slot] for slot in range(n)]
    return {
        "retrive_index": torch.arange(batch * n).view(batch, n),
        "retrive_next_token": torch.tensor([first] * batch),
        "retrive_next_sibling": torch.tensor([[min(after, default=-1) for after in later]] * batch),
    }


def buffers(batch: int, n: int, depth: int) -> dict[str, torch.Tensor]:
    return {
        "predicts": torch.zeros(batch * n, dtype=torch.int32),
        "accept_index": torch.full((batch, depth + 1), -1, dtype=torch.int32),
        "accept_token_num": torch.zeros(batch, dtype=torch.int32),
    }


def build(parent_list, selected, seq_lens, topk, n, mode):
    """Call the operation with fresh buffers, and return them."""
    batch = len(seq_lens)
    size = sum(seq_lens) * n + n * n * batch if mode == tree.FULL_MASK else n * n * batch
    out = {
        "tree_mask": torch.full((size,), fill_value=True),
        "positions": torch.full((batch * n,), -1),
        "retrive_index": torch.full((batch, n), -1),
        "retrive_next_token": torch.full((batch, n), -1),
        "retrive_next_sibling": torch.full((batch, n), -1),
    }
    given = torch.tensor(parent_list), torch.tensor(selected), torch.tensor(seq_lens)
    tree.build_tree_kernel_efficient(*given, *out.values(), topk, 3, n, mode)
    return out


class Build(unittest.TestCase):
    def assert_links(self, out, parents, batch):
        for name, wanted in links(parents, batch).items():
            self.assertEqual(out[name].tolist(), wanted.tolist(), name)

    def test_a_chain(self):
        out = build([[-1, 0, 1]] * 2, [[0, 1, 2]] * 2, [5, 2], 1, 4, tree.FULL_MASK)
        self.assertEqual(out["positions"].tolist(), [5, 6, 7, 8, 2, 3, 4, 5])
        self.assert_links(out, CHAIN, 2)
        first, second = out["tree_mask"][: 4 * 9].view(4, 9), out["tree_mask"][4 * 9 :].view(4, 6)
        for mask, seq_len in ((first, 5), (second, 2)):
            self.assertTrue(mask[:, :seq_len].all(), "every slot sees the sequence")
            self.assertEqual(mask[:, seq_len:].tolist(), torch.ones(4, 4).tril().bool().tolist())

    def test_a_chain_of_one_has_no_parents_to_name(self):
        out = build([[]], [[0]], [3], 1, 2, tree.QLEN_ONLY)
        self.assertEqual((out["positions"].tolist(), out["tree_mask"].tolist()), ([3, 4], [True, False, True, True]))
        self.assert_links(out, [-1, 0], 1)

    def test_a_root_alone_is_verified_as_one_token(self):
        out = build([[], []], [[], []], [3, 5], 1, 1, tree.QLEN_ONLY)
        self.assertEqual((out["positions"].tolist(), out["tree_mask"].tolist()), ([3, 5], [True, True]))
        self.assert_links(out, [-1], 2)
        given = buffers(2, 1, 0)
        tree.verify_tree_greedy(
            **given, **links([-1], 2), candidates=torch.tensor([[7], [8]]), target_predict=torch.tensor([[9], [4]])
        )
        self.assertEqual([given[name].tolist() for name in given], [[9, 4], [[0], [1]], [0, 0]])

    def test_a_fork(self):
        # topk 2: candidates 0 and 1 hang on the root, 2 and 3 (group 1) on candidate 0, 4 and 5 on candidate 1.
        out = build([[-1, 0, 1]], [[0, 1, 2, 3]], [4], 2, 5, tree.QLEN_ONLY)
        self.assertEqual(out["positions"].tolist(), [4, 5, 5, 6, 6])
        self.assert_links(out, FORK, 1)
        seen = [[slot for slot in range(5) if row[slot]] for row in out["tree_mask"].view(5, 5).tolist()]
        self.assertEqual(seen, [[0], [0, 1], [0, 2], [0, 1, 3], [0, 1, 4]])

    def test_a_packed_mask_is_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "mask mode 2"):
            build([[-1, 0, 1]], [[0, 1, 2]], [4], 1, 4, 2)


class VerifyGreedy(unittest.TestCase):
    def verify(self, parents, candidates, target):
        batch, n = len(candidates), len(parents)
        out = buffers(batch, n, depth=3)
        tree.verify_tree_greedy(
            *out.values(), torch.tensor(candidates), **links(parents, batch), target_predict=torch.tensor(target)
        )
        return {name: value.tolist() for name, value in out.items()}

    def test_a_chain_is_accepted_up_to_the_first_difference(self):
        out = self.verify(CHAIN, [[1, 2, 3, 9]], [[2, 3, 4, 5]])
        self.assertEqual(out["accept_token_num"], [2])
        self.assertEqual(out["accept_index"], [[0, 1, 2, -1]])
        self.assertEqual(out["predicts"], [2, 3, 4, 0], "the token after the last accepted slot is the target's")

    def test_a_whole_chain_and_none_of_it(self):
        out = self.verify(CHAIN, [[1, 2, 3, 4], [1, 7, 8, 9]], [[2, 3, 4, 5], [2, 3, 4, 5]])
        self.assertEqual(out["accept_token_num"], [3, 0])
        self.assertEqual(out["accept_index"], [[0, 1, 2, 3], [4, -1, -1, -1]])
        self.assertEqual(out["predicts"], [2, 3, 4, 5, 2, 0, 0, 0])

    def test_the_sibling_is_tried(self):
        out = self.verify(FORK, [[1, 7, 2, 8, 9]], [[2, 0, 6, 0, 0]])
        self.assertEqual((out["accept_token_num"], out["accept_index"]), ([1], [[0, 2, -1, -1]]))
        self.assertEqual(out["predicts"], [2, 0, 6, 0, 0])

    def test_random_trees_agree_with_a_plain_search(self):
        torch.manual_seed(0)
        for _ in range(200):
            n = int(torch.randint(2, 9, ()))
            parents = [-1] + [int(torch.randint(slot, ())) for slot in range(1, n)]
            candidates, target = torch.randint(3, (2, n)).tolist()
            path = [0]
            while len(path) < 4:
                fitting = [
                    slot for slot in range(n) if parents[slot] == path[-1] and candidates[slot] == target[path[-1]]
                ]
                if not fitting:
                    break
                path.append(fitting[0])
            out = self.verify(parents, [candidates], [target])
            self.assertEqual(out["accept_index"], [path + [-1] * (4 - len(path))])
            self.assertEqual([out["predicts"][slot] for slot in path], [target[slot] for slot in path])


class Sampling(unittest.TestCase):
    """The emitted tokens must follow the target's distribution, whatever was drafted."""

    BATCH = 6000

    def setUp(self):
        torch.manual_seed(0)
        self.probs = torch.tensor([[0.1, 0.3, 0.05, 0.25, 0.3], [0.5, 0.1, 0.1, 0.1, 0.2], [0.2, 0.2, 0.2, 0.2, 0.2]])

    def sample(self, parents, candidates, target_probs, depth, coin=None):
        n, batch = len(parents), self.BATCH if coin is None else 1
        out = buffers(batch, n, depth)
        tree.tree_speculative_sampling_target_only(
            *out.values(),
            torch.tensor([candidates] * batch),
            **links(parents, batch),
            uniform_samples=torch.rand(batch, n) if coin is None else torch.full((1, n), max(coin, 0.5)),
            uniform_samples_for_final_sampling=torch.rand(batch) if coin is None else torch.tensor([coin]),
            target_probs=target_probs.repeat(batch, 1, 1),
            draft_probs=torch.zeros(batch, n, target_probs.shape[-1]),
        )
        return out

    def assert_follows(self, tokens, probs):
        found = torch.bincount(tokens.long(), minlength=len(probs)) / len(tokens)
        four_sigma = 4 * (probs * (1 - probs) / len(tokens)).sqrt() + 1e-9
        self.assertTrue(((found - probs).abs() <= four_sigma).all(), f"{found.tolist()} is not {probs.tolist()}")

    def test_one_draft_token(self):
        out = self.sample([-1, 0], [9, 1], self.probs[[0, 1]], depth=1)
        self.assert_follows(out["predicts"].view(-1, 2)[:, 0], self.probs[0])
        accepted = out["accept_token_num"] == 1
        self.assertAlmostEqual(float(accepted.float().mean()), 0.3, delta=0.03)
        self.assert_follows(out["predicts"].view(-1, 2)[accepted, 1], self.probs[1])

    def test_two_draft_tokens_side_by_side(self):
        out = self.sample([-1, 0, 0], [9, 3, 1], self.probs, depth=1)
        self.assert_follows(out["predicts"].view(-1, 3)[:, 0], self.probs[0])
        self.assertAlmostEqual(float(out["accept_token_num"].float().mean()), 0.55, delta=0.03)

    def test_a_certain_token_is_always_accepted_and_an_impossible_one_never(self):
        certain = torch.eye(5)[[2, 4, 0]]
        out = self.sample([-1, 0, 1], [9, 2, 4], certain, depth=2)
        self.assertEqual(set(out["accept_token_num"].tolist()), {2})
        out = self.sample([-1, 0, 1], [9, 3, 4], certain, depth=2)
        self.assertEqual(set(out["accept_token_num"].tolist()), {0})
        self.assertEqual(set(out["predicts"].view(-1, 3)[:, 0].tolist()), {2})

    def test_a_token_of_probability_zero_is_never_drawn(self):
        edges = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]] * 2)
        for coin in (0.0, 0.5, 1 - 2**-24):
            out = self.sample([-1, 0], [9, 0], edges, depth=1, coin=coin)
            self.assertIn(int(out["predicts"][0]), {1, 3}, coin)

    def test_a_token_comes_out_even_if_rounding_leaves_no_mass(self):
        nearly = torch.tensor([[1 - 2**-23, 0.0, 0.0, 0.0, 0.0]] * 2)
        out = self.sample([-1, 0], [9, 0], nearly, depth=1, coin=1 - 2**-24)
        self.assertEqual(out["accept_token_num"].tolist(), [0])
        self.assertIn(int(out["predicts"][0]), range(5))


if __name__ == "__main__":
    unittest.main()
