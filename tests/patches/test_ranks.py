"""Two tensor-parallel ranks, each a scheduler of its own, decide the same in every round; every answer is right."""

import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import decisions
from sglang_cpu_standin import counting
from tiers_case import FULL, POLICY, TIERS, TiersCase

RANKS = 2
COMPANY = 6
"""Requests that are aborted together."""
NO_HYSTERESIS = {**POLICY, "margin": 0, "dwell": 1}


class Ranks(TiersCase):
    draft: ClassVar = "eagle3-attending"
    # A rank counts the processors that are named for it; without AMX it is not bound to them.
    options: ClassVar = (f"--tp-size={RANKS}",)
    environment: ClassVar = {"SGLANG_CPU_OMP_THREADS_BIND": "0|0"}
    steering: ClassVar = ("decisions",)

    def tearDown(self):
        try:
            super().tearDown()
        finally:
            # Ranks that differ take the server down; this says why.
            summary = decisions.summary(self.settled())
            self.assertTrue(summary["same"], summary)

    def settled(self) -> list[list[decisions.Decision]]:
        return decisions.settled(self.steer, RANKS)

    def since(self, begun: int) -> dict:
        """Summary of what was decided after the first ``begun`` decisions."""
        return decisions.summary([taken[begun:] for taken in self.settled()])

    def begun(self) -> int:
        return len(self.settled()[0])

    def test_a_load_that_crosses_the_thresholds(self):
        for policy in (POLICY, NO_HYSTERESIS):
            with self.subTest(policy=policy):
                self.change(speculative_load_policy=policy)
                begun = self.begun()
                self.assertEqual(self.wrong_answers(clients=8, total=16, longest=60), [])
                self.assertEqual(self.wrong_answers(clients=1, total=2, longest=60), [])
                seen = self.since(begun)
                self.assertEqual(set(seen["decode_rounds"]), {str(steps) for steps in TIERS}, seen)
        self.change(speculative_load_policy=POLICY)

    def test_tiers_that_are_forced_and_requests_that_are_aborted_under_load(self):
        begun = self.begun()
        with self.forced_to_and_fro():
            self.assertEqual(self.wrong_answers(clients=6, total=12, longest=60), [])
            told = self.aborted()
            self.assertEqual(self.wrong_answers(clients=6, total=6, longest=60), [])
        self.assertEqual([answer["meta_info"]["finish_reason"]["type"] for answer in told], ["abort"] * len(told))
        seen = self.since(begun)
        self.assertGreater(seen["tier_changes"], 5)
        self.assertGreater(seen["live_changes"], 5)

    def test_a_draft_that_two_ranks_share_is_accepted_as_one_rank_has_it(self):
        prompt = counting.counting_prompt(300, 160)
        self.schedule(*[0] * 32, [FULL])
        told = self.generate(prompt, 232)
        self.assertEqual(told["output_ids"], counting.expected(prompt[-1], 232))
        known = [*prompt, *counting.expected(prompt[-1], 32)]
        exact = len(counting.attending_accepted_lengths(known, 200, FULL))
        self.assertEqual(told["meta_info"]["spec_verify_ct"], exact)

    def aborted(self) -> list[dict]:
        """Answers to requests that were aborted all at once while they were decoded together."""
        with ThreadPoolExecutor(COMPANY) as pool:
            asked = [pool.submit(self.generate, [12 + number], 1000) for number in range(COMPANY)]
            while decisions.read(self.steer, RANKS)[0][-1].get("requests") != COMPANY:
                time.sleep(0.05)
            self.server.ask("/abort_request", {"rid": "", "abort_all": True})
            return [answer.result() for answer in asked]


if __name__ == "__main__":
    unittest.main()
