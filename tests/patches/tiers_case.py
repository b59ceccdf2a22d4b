"""A server with a load policy of three tiers, steered round by round, for all tests of a class."""

import itertools
import json
import random
import tempfile
import threading
import unittest
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from serving import RefusedError, Server
from sglang_cpu_standin import counting, models

PROBE = Path(__file__).resolve().parent / "probe"
FULL = 3
TIERS = (FULL, 1, 0)
POLICY = {
    "version": 1,
    "tiers": [{"max_batch": 2, "steps": "full"}, {"max_batch": 4, "steps": 1}, {"steps": 0}],
    "margin": 1,
    "dwell": 4,
}
SPECULATION = (
    *("--speculative-algorithm=EAGLE3", f"--speculative-num-steps={FULL}"),
    *("--speculative-eagle-topk=1", f"--speculative-num-draft-tokens={FULL + 1}"),
)
LEAKS = ("leak", 'Traceback (most recent call last):\n  File "/opt', "Scheduler hit an exception")
"""Words of a log that tell of lost memory or of a scheduler that died."""


class TiersCase(unittest.TestCase):
    """Starts the server; a test class says what is special about it."""

    policy: ClassVar[str] = json.dumps(POLICY)
    draft: ClassVar[str] = "eagle3"
    options: ClassVar[tuple[str, ...]] = ()
    environment: ClassVar[dict[str, str]] = {}
    steering: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def setUpClass(cls):
        out = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        models.write_models(out / "models")
        cls.steer = out / "steer"
        cls.steer.mkdir()
        for name in cls.steering:
            (cls.steer / name).touch()
        environment = {
            "SGLANG_ENABLE_SPEC_V2": "1",
            "SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_BUSY": "1",
            "SGLANG_CPU_STANDIN_START_METHOD": "fork",
            "STEER": str(cls.steer),
            **cls.environment,
        }
        options = (
            *SPECULATION,
            f"--speculative-draft-model-path={out}/models/{cls.draft}",
            "--enable-metrics",
            *([f"--speculative-load-policy={cls.policy}"] if cls.policy else []),
            *cls.options,
        )
        cls.server = cls.enterClassContext(Server(out, *options, probe=PROBE, **environment))

    def tearDown(self):
        self.release()
        self.server.ask("/health")
        said = [line for line in self.server.log if any(word in line for word in LEAKS)]
        self.assertEqual(said, [])

    def schedule(self, *steps: object):
        """Give the next decode rounds these steps; a list among them is repeated for ever."""
        self.force(steps)

    def release(self):
        """Let the policy decide again."""
        if self.policy:
            self.force(None)

    @contextmanager
    def forced_to_and_fro(self) -> Iterator[None]:
        """Force one tier after the other, and let the policy decide between, for the length of a block."""
        done = threading.Event()

        def change():
            for steps in itertools.cycle([0, 1, "full", None]):
                if done.is_set():
                    return
                self.force(steps)

        thread = threading.Thread(target=change)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def force(self, steps: object):
        self.change(speculative_force_steps=steps)

    def change(self, **changes: object) -> object:
        """Change the live state; return the server's answer."""
        return json.loads(self.server.ask("/set_internal_state", {"server_args": changes}))

    def load_state(self) -> dict:
        return json.loads(self.server.ask("/server_info"))["internal_states"][0].get("speculative_load_state")

    def generate(self, prompt: list[int], n: int, **sampling: object) -> dict:
        body = {"input_ids": prompt, "sampling_params": {"max_new_tokens": n, "temperature": 0, **sampling}}
        return json.loads(self.server.ask("/generate", body))

    def wrong_answers(self, clients: int, total: int, longest: int, seed: int = 1) -> list[tuple[int, int]]:
        """First word and length of each greedy answer that is not what the target says."""
        rng = random.Random(seed)
        asked = [(rng.randrange(2, 1000), rng.randrange(1, longest)) for _ in range(total)]
        with ThreadPoolExecutor(clients) as pool:
            answers = pool.map(lambda pair: self.generate([pair[0]], pair[1])["output_ids"], asked)
            return [pair for pair, said in zip(asked, answers, strict=True) if said != counting.expected(*pair)]

    def refusal(self, path: str, body: dict) -> str:
        """What the server says as it refuses a request."""
        with self.assertRaises(RefusedError) as caught:
            self.server.ask(path, body)
        self.assertEqual(caught.exception.status, 400)
        return caught.exception.content


def each_way(test):
    """Run a test with every tier held, and with a change of tier after each round and after every three."""

    def run(self):
        for steps in TIERS:
            with self.subTest(steps=steps):
                self.schedule([steps])
                test(self)
        for rounds in (1, 3):
            with self.subTest(alternating=rounds):
                self.schedule([steps for steps in TIERS for _ in range(rounds)])
                test(self)

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run
