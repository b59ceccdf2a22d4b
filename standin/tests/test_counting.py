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

    def test_counting_back_undoes_counting(self):
        text = counting.counting_prompt(1000, 300)
        self.assertEqual(text, [1000, *counting.expected(1000, 299)])
        self.assertEqual([text[-1], *counting.counting_back(text[-1], 299)], text[::-1])
        with self.assertRaisesRegex(ValueError, "token 1 "):
            counting.counting_back(1, 1)

    def test_the_attending_draft_needs_all_that_it_reads(self):
        text, place = counting.counting_prompt(12, 200), 140
        self.assertTrue(counting.attending_draft_guesses(text, place))
        for back in range(1, 141):
            changed = [*text[: place - back], 900, *text[place - back + 1 :]]
            self.assertEqual(counting.attending_draft_guesses(changed, place), back not in counting.SEEN, back)

    def test_the_attending_draft_guesses_nothing_at_the_beginning(self):
        # After 1024 tokens the text is where it began: what is asked for must not be read from its end.
        text = counting.counting_prompt(12, 1024)
        guessed = [counting.attending_draft_guesses(text, place) for place in range(200)]
        self.assertEqual(guessed.index(True), 130)

    def test_the_attending_draft_lacks_some_tokens(self):
        text = counting.counting_prompt(12, 400)
        for place in range(130, 400):
            self.assertEqual(counting.attending_draft_guesses(text, place), text[place] % 7 != 5, place)

    def test_rounds_of_the_attending_draft_by_hand(self):
        # 770 comes with the prefill. The first round gives 771, 772, 773 and the bonus 774; the draft lacks 775 and
        # 810, so the next ones give 775 alone, and 776, 777 and 810.
        prompt = counting.counting_prompt(12, 150)
        self.assertEqual(counting.expected(prompt[-1], 9), [*range(770, 778), 810])
        self.assertEqual(counting.attending_accepted_lengths(prompt, 9, 3), [4, 1, 3])

    def test_the_attending_draft_is_accepted_in_every_length(self):
        lengths = counting.attending_accepted_lengths(counting.counting_prompt(12, 150), 400, 3)
        self.assertEqual(set(lengths), {1, 2, 3, 4})
        self.assertGreater(sum(lengths) / len(lengths), 3)
        self.assertEqual(set(counting.attending_accepted_lengths([12], 100, 3)), {1})

    def test_torch_is_not_needed(self):
        program = "import sys; sys.modules['torch'] = None; import sglang_cpu_standin.counting"
        subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    unittest.main()
