"""A real server whose decode rounds draft 3, 1 or no tokens: every answer is what it is without speculation."""

import http.client
import json
import re
import threading
import unittest
from contextlib import suppress
from typing import ClassVar

from sglang_cpu_standin import counting
from tiers_case import FULL, POLICY, TIERS, TiersCase, each_way

LOG_INTERVAL = 40
"""Decode rounds between two lines of the decode log."""

GRAMMAR_WORDS = 6


class Tokens(TiersCase):
    @each_way
    def test_concurrent_requests_of_all_lengths_say_what_the_target_says(self):
        self.assertEqual(self.wrong_answers(clients=6, total=18, longest=120), [])

    def test_the_policy_itself_changes_tiers_and_no_token(self):
        before = self.load_state()["rounds"]
        self.assertEqual(self.wrong_answers(clients=8, total=40, longest=150), [])
        self.assertEqual(self.wrong_answers(clients=1, total=2, longest=150), [])
        after = self.load_state()["rounds"]
        self.assertTrue(all(after[steps] > before[steps] for steps in after), after)

    @each_way
    def test_a_stop_string_ends_the_text_at_the_same_place(self):
        told = self.generate([12], 100, stop=["n200", counting.word(counting.expected(12, 30)[-1])])
        self.assertEqual(told["meta_info"]["finish_reason"]["type"], "stop")
        self.assertEqual(told["text"].strip(), counting.expected_text(12, 29).strip())

    @each_way
    def test_a_stop_token_ends_it(self):
        stop = counting.expected(12, 21)[-1]
        told = self.generate([12], 100, stop_token_ids=[stop])
        self.assertEqual(told["output_ids"], counting.expected(12, 21))

    @each_way
    def test_a_grammar_is_kept_to(self):
        # The grammar sees the words without the blanks between them.
        regex = rf"(n[0-9]+){{{GRAMMAR_WORDS}}}"
        told = self.generate([12], 40, regex=regex)
        self.assertEqual(told["text"].split(), counting.expected_text(12, GRAMMAR_WORDS).split())
        self.assertEqual(told["meta_info"]["finish_reason"]["type"], "stop")

    @each_way
    def test_a_second_turn_counts_on_from_the_cache(self):
        first = counting.counting_prompt(700, 80)
        self.generate(first[:20], 60)
        told = self.generate(first, 40)
        self.assertEqual(told["output_ids"], counting.expected(first[-1], 40))
        self.assertGreater(told["meta_info"]["cached_tokens"], 60)

    def test_sampling_that_leaves_one_choice_says_the_same(self):
        for steps in TIERS:
            with self.subTest(steps=steps):
                self.schedule([steps])
                told = self.generate([300], 80, temperature=1.0, top_p=1e-6)
                self.assertEqual(told["output_ids"], counting.expected(300, 80))

    def test_requests_that_are_given_up_leave_the_others_alone(self):
        self.schedule([3, 0, 1, 0])
        gone = [threading.Thread(target=self.give_up, args=(word,)) for word in (40, 50)]
        for thread in gone:
            thread.start()
        self.assertEqual(self.wrong_answers(clients=4, total=12, longest=120), [])
        for thread in gone:
            thread.join()
        self.assertEqual(self.idle_tokens(), 0)

    def test_nothing_is_left_allocated_after_a_load(self):
        self.schedule([3, 0, 0, 1])
        self.wrong_answers(clients=8, total=24, longest=100)
        self.assertEqual(self.idle_tokens(), 0)

    def give_up(self, word: int):
        """Close the connection after the first words."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        body = {
            "input_ids": [word],
            "stream": True,
            "sampling_params": {"max_new_tokens": 2000, "temperature": 0},
        }
        connection.request("POST", "/generate", json.dumps(body), {"Content-Type": "application/json"})
        with suppress(OSError):
            connection.getresponse().read(400)
        connection.close()

    def idle_tokens(self) -> int:
        """Tokens in use by running requests, after those that are under way have ended; the cache's do not count."""
        for _ in range(200):
            load = json.loads(self.server.ask("/get_load"))[0]
            if load["num_reqs"] == 0:
                break
            self.generate([12], 1)
        # An idle server compares what is free, cached and used with the size of the pool, and stops if they differ.
        self.server.ask("/flush_cache", {})
        return json.loads(self.server.ask("/get_load"))[0]["num_tokens"]


class Control(TiersCase):
    def test_the_live_state_shows_a_change_of_policy(self):
        try:
            self.change(speculative_disable_batch_threshold=3)
            state = json.loads(self.server.ask("/server_info"))["internal_states"][0]
            self.assertEqual(state["speculative_disable_batch_threshold"], 3)
            self.assertEqual(state["speculative_load_state"]["tiers"], [{"max_batch": 3, "steps": 3}, {"steps": 0}])
            self.assertEqual(
                (state["speculative_load_state"]["margin"], state["speculative_load_state"]["dwell"]), (2, 16)
            )
        finally:
            self.change(speculative_load_policy=POLICY)
        self.assertEqual(self.load_state()["dwell"], POLICY["dwell"])

    def test_a_forced_tier_shows_and_is_run(self):
        for steps, shown in (("full", FULL), (1, 1), (0, 0)):
            with self.subTest(steps=steps):
                self.force(steps)
                before = self.load_state()
                self.assertEqual(before["forced_steps"], shown)
                self.generate([12], 50)
                after = self.load_state()
                grown = {n for n in after["rounds"] if after["rounds"][n] > before["rounds"][n]}
                self.assertEqual(grown, {str(shown)})

    def test_what_cannot_be_is_refused_with_a_reason_and_changes_nothing(self):
        before = self.load_state()
        for changes, reason in (
            ({"speculative_force_steps": 2}, "must be one of 3, 1, 0"),
            ({"speculative_disable_batch_threshold": 8}, "whose max_running_requests is 8"),
            ({"speculative_load_policy": {}}, "version must be 1"),
            ({"speculative_force_steps": 0, "no_such_option": 1}, "another key of the same request was refused"),
            ({"speculative_accept_threshold_single": 0.5}, "an acceptance threshold"),
        ):
            with self.subTest(changes=changes):
                self.assertIn(reason, self.refusal("/set_internal_state", {"server_args": changes}))
                self.assertEqual(self.load_state(), before)

    def test_it_can_be_changed_under_load(self):
        with self.forced_to_and_fro():
            self.assertEqual(self.wrong_answers(clients=6, total=30, longest=120), [])
        self.assertGreater(self.load_state()["switches"], 5)

    def test_an_interval_of_plain_rounds_alone_is_logged(self):
        self.force(0)
        seen = len(self.server.log)
        self.generate([12], 3 * LOG_INTERVAL)
        lines = [line for line in self.server.log[seen:] if "Decode batch" in line]
        self.assertGreater(len(lines), 1)
        self.assertIn("draft steps: 0, gen throughput", re.sub(r"cpu graph: \w+, ", "", lines[-1]))
        self.force("full")
        self.generate([12], 6 * LOG_INTERVAL)
        self.assertRegex(self.server.log[-2] + self.server.log[-3], r"draft steps: 3, accept len: [1-4]\.\d\d")

    def test_metrics_count_what_the_state_counts(self):
        self.wrong_answers(clients=6, total=12, longest=80)
        self.generate([12], 30)
        state = self.load_state()
        metrics = self.server.ask("/metrics/")
        rounds = {
            int(n): float(v) for n, v in re.findall(r'sglang:spec_rounds_total\{.*steps="(\d)".*\} (\S+)', metrics)
        }
        self.assertEqual(rounds, {int(n): v for n, v in state["rounds"].items() if v})
        self.assertEqual(self.metric(metrics, "spec_tier_switches_total"), state["switches"])
        self.assertEqual(self.metric(metrics, "spec_num_steps"), state["steps"])

    def test_the_server_speculates_again_after_a_load(self):
        self.assertEqual(self.wrong_answers(clients=8, total=16, longest=100), [])
        self.generate([12], 60)
        self.assertEqual(self.load_state()["steps"], FULL)

    def test_sampling_parameters_that_would_depend_on_the_load_are_refused(self):
        for name, value in (
            ("min_new_tokens", 3),
            ("min_p", 0.2),
            ("frequency_penalty", 0.5),
            ("presence_penalty", 0.5),
            ("repetition_penalty", 1.1),
            ("logit_bias", {"12": 5.0}),
        ):
            with self.subTest(name=name):
                body = {"text": "n12", "sampling_params": {"max_new_tokens": 5, name: value}}
                self.assertIn(f"{name}=", self.refusal("/generate", body))
        body = {"text": "n12", "return_logprob": True, "sampling_params": {"max_new_tokens": 5}}
        self.assertIn("Log probabilities are refused", self.refusal("/generate", body))

    def test_the_same_parameters_are_taken_where_they_ask_for_nothing(self):
        nothing = {"min_new_tokens": 0, "min_p": 0.0, "frequency_penalty": 0.0, "presence_penalty": 0.0}
        told = self.generate([12], 10, repetition_penalty=1.0, logit_bias={}, **nothing)
        self.assertEqual(told["output_ids"], counting.expected(12, 10))

    def metric(self, metrics: str, name: str) -> float:
        return float(re.search(rf"^sglang:{name}\{{.*\}} (\S+)$", metrics, re.M)[1])


class Pages(TiersCase):
    """Requests are taken back every few rounds, as when memory runs out."""

    options: ClassVar = ("--page-size=16",)
    environment: ClassVar = {"SGLANG_TEST_RETRACT": "1"}

    @each_way
    def test_concurrent_requests_say_what_the_target_says(self):
        self.assertEqual(self.wrong_answers(clients=6, total=18, longest=120), [])

    @each_way
    def test_a_second_turn_counts_on_from_the_cache(self):
        first = counting.counting_prompt(500, 100)
        self.generate(first[:20], 80)
        told = self.generate(first, 40)
        self.assertEqual(told["output_ids"], counting.expected(first[-1], 40))
        self.assertGreater(told["meta_info"]["cached_tokens"], 60)

    def test_requests_were_taken_back(self):
        self.wrong_answers(clients=4, total=8, longest=100)
        self.assertTrue(any("Testing retraction" in line for line in self.server.log))


class LargePages(Pages):
    options: ClassVar = ("--page-size=64",)
    environment: ClassVar = {}

    test_requests_were_taken_back = None


class WithoutAPolicy(TiersCase):
    """The patched source without the options: what stock does."""

    policy: ClassVar = ""

    def test_tokens_and_rounds_are_those_of_stock(self):
        for first, n in ((12, 100), (1020, 37)):
            told = self.generate([first], n)
            self.assertEqual(told["output_ids"], counting.expected(first, n))
            self.assertEqual(told["meta_info"]["spec_verify_ct"], len(counting.accepted_lengths(first, n, FULL)))

    def test_no_trace_of_a_policy_is_there(self):
        self.generate([12], 50)
        self.assertIsNone(self.load_state())
        self.assertNotIn("sglang:spec_rounds", self.server.ask("/metrics/"))
        self.assertFalse([line for line in self.server.log if "draft steps" in line or "tier" in line])

    def test_no_sampling_parameter_is_refused(self):
        self.generate([12], 10, min_p=0.2, frequency_penalty=0.5, min_new_tokens=2)

    def test_there_is_nothing_to_change(self):
        self.assertIn(
            "started without a load policy",
            self.refusal("/set_internal_state", {"server_args": {"speculative_force_steps": 0}}),
        )

    def test_the_other_settings_can_be_changed_as_before(self):
        self.assertEqual(self.change(speculative_accept_threshold_single=1.0), [True])


if __name__ == "__main__":
    unittest.main()
