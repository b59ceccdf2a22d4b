"""Real servers from end to end; four are started one after the other, which takes a few minutes on two cores.

Run by itself: ``python standin/tests/test_server.py``. Discovery includes it only if STANDIN_SERVER_TEST is set.
"""

import http.client
import json
import os
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import torch
from serving import ANSWER_SECONDS, Server

from sglang_cpu_standin import counting, models, weights

PROBE = Path(__file__).resolve().parent / "probe"
STEPS = 3
SPECULATION = (
    "--speculative-algorithm=EAGLE3",
    f"--speculative-num-steps={STEPS}",
    "--speculative-eagle-topk=1",
    f"--speculative-num-draft-tokens={STEPS + 1}",
)


def spoken_under(allowed: range, start: int, n: int) -> list[int]:
    """Return ``n`` tokens that greedy decoding gives after ``start`` if a grammar leaves ``allowed`` ones."""
    before = weights.embedding(torch.tensor([counting.previous_token(token) for token in allowed]))
    tokens = []
    for _ in range(n):
        start = allowed[int((before @ weights.embedding(torch.tensor([start]))[0]).argmax())]
        tokens.append(start)
    return tokens


class CountingServer(Server):
    """A server whose probe notes which worker serves which event loop."""

    def __init__(self, out: Path, *options: str, **environment: str):
        self.notes = out / "notes"
        self.notes.write_text("")
        super().__init__(out, *options, probe=PROBE, STANDIN_PROBE=str(self.notes), **environment)

    def generate(self, start: int, n: int, **sampling: float) -> dict:
        return self.continue_tokens([start], n, **sampling)

    def continue_tokens(self, prompt: list[int], n: int, **sampling: object) -> dict:
        parameters = {"max_new_tokens": n, "temperature": 0, **sampling}
        body = {"text": " ".join(map(counting.word, prompt)), "sampling_params": parameters}
        return json.loads(self.ask("/generate", body))


@unittest.skipUnless(__name__ == "__main__" or os.environ.get("STANDIN_SERVER_TEST"), "STANDIN_SERVER_TEST is not set")
class ServerCase(unittest.TestCase):
    """Starts a server for all tests of a class."""

    options: tuple[str, ...] = ()
    draft = "eagle3"
    environment: ClassVar[dict[str, str]] = {}

    @classmethod
    def setUpClass(cls):
        out = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        models.write_models(out / "models")
        speculates = set(SPECULATION) <= set(cls.options)
        draft = (f"--speculative-draft-model-path={out}/models/{cls.draft}",) if speculates else ()
        cls.server = cls.enterClassContext(CountingServer(out, *cls.options, *draft, **cls.environment))

    def check_grammar(self):
        """Without a grammar n17 is followed by n50; ``</s>`` ends a text that can only end."""
        ids = self.server.generate(12, 60, regex="(n1[0-9]){25}")["output_ids"]
        self.assertEqual(ids, [*spoken_under(range(10, 20), 12, 25), 1])
        self.assertEqual(self.server.generate(12, 30, regex="(n[0-9]+){5}")["output_ids"], [*range(13, 18), 1])

    def together(self, starts: list[int], n: int, **sampling: float) -> list[dict]:
        with ThreadPoolExecutor(len(starts)) as pool:
            return list(pool.map(lambda start: self.server.generate(start, n, **sampling), starts))


class Speculating(ServerCase):
    options = SPECULATION
    environment: ClassVar = {"SGLANG_ENABLE_SPEC_V2": "1"}

    def test_tokens_and_rounds_are_the_expected_ones(self):
        for start, n in ((12, 100), (1020, 37), (2, 1)):
            answer = self.server.generate(start, n)
            self.assertEqual(answer["output_ids"], counting.expected(start, n))
            rounds = answer["meta_info"].get("spec_verify_ct", 0)
            self.assertEqual(rounds, len(counting.accepted_lengths(start, n, STEPS)))

    def test_four_requests_at_once_are_not_mixed_up(self):
        starts = [12, 100, 555, 901]
        answers = self.together(starts, 150)
        self.assertEqual([answer["output_ids"] for answer in answers], [counting.expected(s, 150) for s in starts])

    def test_a_second_turn_uses_the_cache_and_counts_on(self):
        first = counting.expected_text(700, 60)
        body = {"text": f"n700{first}", "sampling_params": {"max_new_tokens": 50, "temperature": 0}}
        for _ in range(2):
            answer = json.loads(self.server.ask("/generate", body))
            self.assertEqual(answer["output_ids"], counting.expected(counting.expected(700, 60)[-1], 50))
        self.assertGreater(answer["meta_info"]["cached_tokens"], 50)

    def test_sampling_that_leaves_one_choice_gives_the_same_tokens(self):
        answers = self.together([12, 300], 80, temperature=1.0, top_p=1e-6)
        self.assertEqual([a["output_ids"] for a in answers], [counting.expected(s, 80) for s in (12, 300)])

    def test_sampling_with_many_choices_gives_other_tokens(self):
        tokens = self.server.generate(12, 100, temperature=20.0, ignore_eos=True)["output_ids"]
        self.assertEqual(len(tokens), 100)
        self.assertGreater(len(set(tokens)), 10)
        self.assertNotEqual(tokens, counting.expected(12, 100))

    def test_the_server_reports_the_acceptance(self):
        self.server.generate(12, 200)
        state = json.loads(self.server.ask("/get_server_info"))["internal_states"][0]
        self.assertGreater(state["avg_spec_accept_length"], 1.5)

    def test_the_overlap_worker_was_at_work(self):
        self.server.generate(12, 20)
        notes = self.server.notes.read_text().splitlines()
        self.assertEqual(
            set(notes), {"EAGLEWorkerV2 EXTEND event_loop_overlap", "EAGLEWorkerV2 DECODE event_loop_overlap"}
        )

    def test_the_chat_continues_the_last_word(self):
        body = {
            "model": "counting",
            "messages": [{"role": "user", "content": "n40 n12"}],
            "max_tokens": 20,
            "temperature": 0,
        }
        message = json.loads(self.server.ask("/v1/chat/completions", body))["choices"][0]["message"]
        self.assertEqual(message["content"], counting.expected_text(12, 20))

    def test_it_is_healthy(self):
        self.server.ask("/health")
        self.server.ask("/health_generate")

    def test_a_grammar_is_kept(self):
        self.check_grammar()


class Attending(ServerCase):
    """A draft that needs its KV cache, in pages; the scheduler ends itself if it has lost or doubled a slot."""

    page_size = 16
    steps = STEPS
    options = (*SPECULATION, f"--page-size={page_size}", "--chunked-prefill-size=128")
    draft = "eagle3-attending"
    environment: ClassVar = {
        "SGLANG_ENABLE_SPEC_V2": "1",
        "SGLANG_CPU_STANDIN_START_METHOD": "fork",
        "SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY": "1",
    }

    def check_answer(self, answer: dict, prompt: list[int], n: int):
        self.assertEqual(answer["output_ids"], counting.expected(prompt[-1], n))
        rounds = counting.attending_accepted_lengths(prompt, n, self.steps)
        self.assertEqual(answer["meta_info"]["spec_verify_ct"], len(rounds))

    def test_tokens_and_rounds_are_the_expected_ones(self):
        for prompt, n in ((counting.counting_prompt(12, 150), 300), ([12], 200), ([40, *range(12, 16)], 30)):
            self.check_answer(self.server.continue_tokens(prompt, n), prompt, n)

    def test_a_prompt_in_several_chunks_fills_the_drafts_cache(self):
        prompt = counting.counting_prompt(333, 400)
        self.check_answer(self.server.continue_tokens(prompt, 100), prompt, 100)

    def test_requests_at_once_are_not_mixed_up(self):
        prompts = [counting.counting_prompt(first, 140 + first % 7) for first in (20, 110, 560, 910)]
        with ThreadPoolExecutor(len(prompts)) as pool:
            answers = list(pool.map(lambda prompt: self.server.continue_tokens(prompt, 150), prompts))
        for prompt, answer in zip(prompts, answers, strict=True):
            self.check_answer(answer, prompt, 150)

    def test_a_second_turn_finds_the_drafts_cache_too(self):
        prompt = counting.counting_prompt(700, 150)
        self.check_answer(self.server.continue_tokens(prompt, 60), prompt, 60)
        prompt = counting.counting_prompt(700, 250)
        answer = self.server.continue_tokens(prompt, 100)
        self.check_answer(answer, prompt, 100)
        self.assertEqual(answer["meta_info"]["cached_tokens"], (150 + 60 - 1) // self.page_size * self.page_size)

    def test_a_request_that_is_given_up_leaves_nothing_behind(self):
        body = {"text": "n12", "sampling_params": {"max_new_tokens": 3000, "temperature": 0}, "stream": True}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_SECONDS)
        connection.request("POST", "/generate", json.dumps(body), {"Content-Type": "application/json"})
        connection.getresponse().readline()
        connection.close()
        self.check_answer(self.server.generate(12, 50), [12], 50)

    def test_a_grammar_is_kept(self):
        self.check_grammar()

    @classmethod
    def tearDownClass(cls):
        """See that the scheduler lives after it was idle, which is when it looks for lost slots."""
        cls.server.ask("/get_server_info")
        if cls.server.generate(12, 5)["output_ids"] != counting.expected(12, 5):
            raise AssertionError("the server counts no longer")


class Plain(ServerCase):
    environment: ClassVar = {"SGLANG_CPU_STANDIN_START_METHOD": "fork"}

    def test_tokens_are_the_expected_ones(self):
        starts = [12, 100, 555, 901]
        answers = self.together(starts, 100)
        self.assertEqual([answer["output_ids"] for answer in answers], [counting.expected(s, 100) for s in starts])

    def test_nothing_speculates(self):
        self.assertNotIn("spec_verify_ct", self.server.generate(12, 20)["meta_info"])
        self.assertEqual(self.server.notes.read_text(), "")

    def test_a_grammar_is_kept(self):
        self.check_grammar()

    def test_completions_give_the_expected_text(self):
        body = {"model": "counting", "prompt": "n12", "max_tokens": 20, "temperature": 0}
        choice = json.loads(self.server.ask("/v1/completions", body))["choices"][0]
        self.assertEqual(choice["text"], counting.expected_text(12, 20))


class Simulating(ServerCase):
    options = SPECULATION
    environment: ClassVar = {
        "SGLANG_ENABLE_SPEC_V2": "1",
        "SGLANG_SIMULATE_ACC_LEN": "3",
        "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
        "SGLANG_CPU_STANDIN_START_METHOD": "fork",
    }

    def test_every_round_accepts_the_simulated_length(self):
        answer = self.server.generate(12, 100)
        self.assertEqual(answer["meta_info"]["spec_verify_ct"], 33)
        self.assertEqual(len(answer["output_ids"]), 100)


if __name__ == "__main__":
    unittest.main()
