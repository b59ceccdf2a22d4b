"""250 clients at once: of the project's own load at a real server, and of bench_serving, which checks it.

Run by the Python of a release, with the checkout, standin/tests and tests/unit on its path; a server is started, which
takes a minute or two on two cores: python -m unittest tests/release/test_load.py
"""

import itertools
import tempfile
import unittest
from pathlib import Path

from bench_fake import serving
from serving import Server
from sglang_cpu_standin import models

from blackwell.bench import known_generator, load, tokenizing, user_speed, vocabulary, window
from blackwell.bench.contexts import Contexts
from blackwell.bench.errors import BenchError
from blackwell.bench.load import Length

CLIENTS = 250
TOGETHER = 128
"""Requests that the server decodes at once; the others wait."""


class BenchServing(unittest.TestCase):
    """The real program against a server whose pace is known."""

    def test_250_clients_are_250_requests_in_flight_with_the_prompts_that_were_asked_for(self):
        with serving(pace=1000, together=CLIENTS) as fake:
            found = known_generator.measure(
                fake.url, CLIENTS, lambda client: itertools.repeat(([1, 2, client], 50)), answers=2
            )
        self.assertEqual(fake.most, CLIENTS)
        self.assertEqual(fake.given, 2 * CLIENTS * 50)
        self.assertAlmostEqual(found.tok_s * found.seconds, fake.given, places=3)
        sent = sorted(body["input_ids"][-1] for body in fake.bodies)
        self.assertEqual(sent, sorted([*range(CLIENTS)] * 2))
        self.assertEqual({body["sampling_params"]["ignore_eos"] for body in fake.bodies}, {True})

    def test_requests_that_fail_are_no_result(self):
        with serving(pace=1000, fail_from=6) as fake, self.assertRaises(BenchError) as caught:
            known_generator.measure(fake.url, 2, lambda _: itertools.repeat(([1], 5)), answers=4)
        self.assertEqual(str(caught.exception), "sglang.bench_serving had 5 of 8 requests answered")

    def test_a_server_that_is_not_there_is_no_result(self):
        with serving() as fake:
            url = fake.url
        with self.assertRaisesRegex(BenchError, r"^sglang.bench_serving failed: .*Connection refused"):
            known_generator.measure(url, 2, lambda _: itertools.repeat(([1], 5)), answers=1)


class RealServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.out = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        models.write_models(cls.out / "models")
        cls.model = cls.out / "models" / "target"
        options = (
            *("--speculative-algorithm=EAGLE3", "--speculative-num-steps=3", "--speculative-eagle-topk=1"),
            *("--speculative-num-draft-tokens=4", f"--speculative-draft-model-path={cls.out}/models/eagle3"),
            *("--max-total-tokens=32768", f"--max-running-requests={TOGETHER}", "--disable-radix-cache"),
        )
        environment = {"SGLANG_ENABLE_SPEC_V2": "1", "SGLANG_CPU_STANDIN_START_METHOD": "fork"}
        (cls.out / "probe").mkdir()
        server = cls.enterClassContext(Server(cls.out, *options, probe=cls.out / "probe", **environment))
        cls.url = f"http://127.0.0.1:{server.port}"

    def test_the_server_counts_250_requests_that_run_or_wait(self):
        asked = vocabulary.workload(self.model, 16, 16)
        found = load.measure(self.url, CLIENTS, lambda client: asked.stream(CLIENTS, 1, client), Length(answers=1))
        # On two cores, some client waits a time slice until it may send its next request.
        self.assertGreater(window.fewest_in_flight(found), 0.95 * CLIENTS)
        # Those that it prefills at the moment it counts in neither.
        self.assertEqual(window.held(found.polls), CLIENTS)
        self.assertTrue(0 < window.running_batch(found.polls) <= TOGETHER)
        self.assertGreater(window.acceptance(found.records), 1)
        self.assertGreaterEqual(len(user_speed.answered(found)), CLIENTS)

    def test_both_generators_have_conversations_answered(self):
        prompts = Contexts(tokenizing.tokenized(self.model, "mixed"), 512, 16)
        own = load.measure(self.url, 4, lambda client: prompts.stream(4, 1, client), Length(answers=2))
        self.assertGreater(window.tokens_per_second(own), 0)
        known = known_generator.measure(self.url, 4, lambda client: prompts.stream(4, 1, client), answers=2)
        self.assertGreater(known.tok_s, 0)
        self.assertLessEqual(known.concurrency, 4)


if __name__ == "__main__":
    unittest.main()
