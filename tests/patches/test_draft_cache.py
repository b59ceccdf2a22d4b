"""Plain rounds keep the draft's KV cache exact: a draft that attends to it is accepted as if there had been none.

The guesses of this draft need the K and V of many places of the text, so that its acceptance tells of each that is
stale. The last test takes the upkeep out and sees the acceptance fall.
"""

import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

from sglang_cpu_standin import counting
from tiers_case import FULL, TiersCase

PROMPT = 160
AFTER = 200
INTERVALS = ((0, 12), (1, 100), (2, 200), (32, 450), (512, 777))
"""Tokens that are decoded plainly before speculation goes on, and the word that the prompt counts from."""

COMPANY = ((150, 20), (250, 45), (370, 90), (560, 160), (680, 70), (720, 33))
"""Requests that are decoded plainly together: the word that each counts from, and its tokens."""


class DraftCache(TiersCase):
    """With the radix cache, so that every test counts from another word."""

    draft: ClassVar = "eagle3-attending"

    def rounds_after(self, interval: int, first: int) -> tuple[int, int]:
        """Speculative rounds after plain ones, and as many as there are with an exact cache."""
        prompt = counting.counting_prompt(first, PROMPT)
        self.schedule(*[0] * interval, [FULL])
        told = self.generate(prompt, interval + AFTER)
        self.assertEqual(told["output_ids"], counting.expected(prompt[-1], interval + AFTER))
        known = [*prompt, *counting.expected(prompt[-1], interval)]
        exact = len(counting.attending_accepted_lengths(known, AFTER, FULL))
        return told["meta_info"]["spec_verify_ct"], exact

    def test_acceptance_after_plain_rounds_is_what_it_would_have_been(self):
        for interval, first in INTERVALS:
            with self.subTest(interval=interval):
                rounds, exact = self.rounds_after(interval, first)
                self.assertEqual(rounds, exact)

    def test_it_is_with_a_change_of_tier_after_each_round(self):
        prompt = counting.counting_prompt(300, PROMPT)
        self.schedule([0, FULL])
        told = self.generate(prompt, 240)
        self.assertEqual(told["output_ids"], counting.expected(prompt[-1], 240))
        given, rounds = 1, 0
        while given < 240:
            given += 1  # the plain round
            if given < 240:
                known = [*prompt, *counting.expected(prompt[-1], given - 1)]
                given += counting.attending_accepted_lengths(known, FULL + 2, FULL)[0]
                rounds += 1
        # A round that was launched before the last one was known to be the last may count.
        self.assertAlmostEqual(told["meta_info"]["spec_verify_ct"], rounds, delta=1)

    def test_a_second_turn_drafts_from_what_plain_rounds_have_cached(self):
        prompt = counting.counting_prompt(40, PROMPT)
        self.schedule([0])
        self.generate(prompt, AFTER)
        longer = [*prompt, *counting.expected(prompt[-1], AFTER - 1)]
        self.schedule([FULL])
        told = self.generate(longer, AFTER)
        self.assertGreater(told["meta_info"]["cached_tokens"], PROMPT + AFTER - 10)
        exact = len(counting.attending_accepted_lengths(longer, AFTER, FULL))
        self.assertEqual(told["meta_info"]["spec_verify_ct"], exact)

    def test_requests_that_come_and_go_leave_each_other_an_exact_cache(self):
        # Four at once, of lengths that let one after the other leave the batch while two more join it.
        asked = [(counting.counting_prompt(first, PROMPT), n) for first, n in COMPANY]
        self.schedule([0])
        with ThreadPoolExecutor(4) as pool:
            said = list(pool.map(lambda pair: self.generate(*pair)["output_ids"], asked))
        self.schedule([FULL])
        for (prompt, n), answer in zip(asked, said, strict=True):
            with self.subTest(first=prompt[0], tokens=n):
                self.assertEqual(answer, counting.expected(prompt[-1], n))
                longer = [*prompt, *counting.expected(prompt[-1], n - 1)]
                told = self.generate(longer, AFTER)
                self.assertGreater(told["meta_info"]["cached_tokens"], PROMPT + n - 10)
                exact = len(counting.attending_accepted_lengths(longer, AFTER, FULL))
                self.assertEqual(told["meta_info"]["spec_verify_ct"], exact)

    def test_a_prompt_that_came_while_nothing_was_drafted_is_drafted_from(self):
        rounds, exact = self.rounds_after_plain_prefill(350)
        self.assertEqual(rounds, exact)

    def rounds_after_plain_prefill(self, first: int) -> tuple[int, int]:
        """Speculative rounds of a request whose prefill found the server decoding plainly, and as many as are due."""
        self.schedule([0])
        self.generate([12], 5)
        prompt = counting.counting_prompt(first, PROMPT)
        self.schedule([FULL])
        told = self.generate(prompt, AFTER)
        self.assertEqual(told["output_ids"], counting.expected(prompt[-1], AFTER))
        exact = len(counting.attending_accepted_lengths(prompt, AFTER, FULL))
        return told["meta_info"]["spec_verify_ct"], exact

    def test_it_falls_when_the_cache_is_not_kept_up(self):
        (self.steer / "cold").touch()
        self.addCleanup((self.steer / "cold").unlink)
        with self.subTest("prefill"):
            rounds, exact = self.rounds_after_plain_prefill(850)
            self.assertGreater(rounds, 2 * exact)
        for interval, first in ((32, 900), (512, 600)):
            with self.subTest(interval=interval):
                rounds, exact = self.rounds_after(interval, first)
                self.assertGreater(rounds, 2 * exact)


class UpkeepByFullExtend(DraftCache):
    """For heads whose K and V cannot be written alone."""

    steering: ClassVar = ("full-extend",)

    test_it_falls_when_the_cache_is_not_kept_up = None


if __name__ == "__main__":
    unittest.main()
