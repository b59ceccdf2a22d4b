"""What is known of a server only after its memory was sized is checked then, before anything is captured."""

import unittest
from types import SimpleNamespace

from sglang.srt.speculative.load_policy import LoadPolicyError
from sglang.srt.speculative.spec_tiers import SpecTiers

THRESHOLD = 4


def worker(most: int = 8, **target: object) -> SimpleNamespace:
    """What the check reads of a worker whose server runs at most ``most`` requests at once."""
    kind = {"model_is_mrope": False, "is_hybrid_swa": False, "mambaish_config": None, **target}
    return SimpleNamespace(
        server_args=SimpleNamespace(
            speculative_disable_batch_threshold=THRESHOLD, speculative_load_policy=None, speculative_num_steps=3
        ),
        device="cpu",
        speculative_num_steps=3,
        draft_worker=SimpleNamespace(draft_runner=None),
        target_worker=SimpleNamespace(model_runner=SimpleNamespace(max_running_requests=most, **kind)),
        req_to_token_pool=SimpleNamespace(req_to_token=None),
    )


class Sizes(unittest.TestCase):
    def refusal(self, made: SimpleNamespace) -> str:
        with self.assertRaises(LoadPolicyError) as caught:
            SpecTiers.of(made)
        return str(caught.exception)

    def test_a_threshold_at_the_effective_number_of_requests_is_refused(self):
        for most in (THRESHOLD, THRESHOLD - 1):
            with self.subTest(most=most):
                self.assertIn(f"whose max_running_requests is {most}", self.refusal(worker(most)))

    def test_models_of_other_kinds_are_refused(self):
        for name, value, reason in (
            ("model_is_mrope", True, "multimodal rotary positions"),
            ("is_hybrid_swa", True, "sliding-window or recurrent layers"),
            ("mambaish_config", object(), "sliding-window or recurrent layers"),
        ):
            with self.subTest(name=name):
                self.assertIn(reason, self.refusal(worker(**{name: value})))

    def test_without_a_policy_there_are_no_tiers(self):
        made = worker()
        made.server_args.speculative_disable_batch_threshold = 0
        self.assertIsNone(SpecTiers.of(made))


if __name__ == "__main__":
    unittest.main()
