"""The plain numbers of the counting models; needs no torch."""

import subprocess
import sys
import unittest

from sglang_cpu_standin import counting


class Counting(unittest.TestCase):
    def test_it_counts_inside_a_block_and_jumps_after_it(self):
        self.assertEqual(counting.expected(12, 8), [13, 14, 15, 16, 17, 50, 51, 52])

    def test_the_last_block_jumps_to_an_early_one(self):
        self.assertEqual(counting.next_token(counting.VOCABULARY - 1), counting.FIRST + 4 * counting.BLOCK)

    def test_every_word_follows_exactly_one_other(self):
        words = range(counting.FIRST, counting.VOCABULARY)
        self.assertEqual(sorted(counting.next_token(word) for word in words), list(words))

    def test_what_is_no_word_is_refused(self):
        for token in (0, 1, counting.VOCABULARY):
            with self.subTest(token), self.assertRaisesRegex(ValueError, f"token {token} "):
                counting.expected(token, 1)

    def test_the_text_has_a_blank_before_each_word(self):
        self.assertEqual(counting.expected_text(15, 3), " n16 n17 n50")

    def test_rounds_by_hand(self):
        # 13 comes with the prefill. The first round gives 14, 15, 16 and the bonus 17. The next guesses 18 where the
        # target jumps to 50, and the one after it guesses 19, since it counts on from 17.
        self.assertEqual(counting.accepted_lengths(12, 8, 3), [4, 1, 1, 2])

    def test_rounds_give_all_tokens_but_the_first(self):
        for n in range(1, 40):
            lengths = counting.accepted_lengths(12, n, 3)
            self.assertGreaterEqual(sum(lengths), n - 1)
            self.assertLess(sum(lengths[:-1]), max(n - 1, 1))

    def test_more_than_half_a_token_is_gained(self):
        for start in (2, 12, 500, 1025):
            lengths = counting.accepted_lengths(start, 400, 3)
            self.assertGreater(sum(lengths) / len(lengths), 1.5)

    def test_one_step_gives_at_most_two_tokens(self):
        self.assertEqual(set(counting.accepted_lengths(12, 100, 1)), {1, 2})

    def test_torch_is_not_needed(self):
        program = "import sys; sys.modules['torch'] = None; import sglang_cpu_standin.counting"
        subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    unittest.main()
