"""What is known of a server only after its memory was sized is checked then, before anything is captured."""

import unittest
from types import SimpleNamespace

from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.load_policy import LoadPolicyError
from sglang.srt.speculative.load_policy_support import plain_graph_sizes
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


NEVER, SPECULATING = [1, 2, 4, 8, 12], [1, 2, 3, 4, 5, 6, 7, 8, 10, 12]
"""Sizes of CUDA graphs up to 12 requests of a server that does not speculate and of one that does."""


def options(sizes: list[int]) -> ServerArgs:
    """The options of a server that speculates, as far as they give the sizes of its CUDA graphs."""
    made = object.__new__(ServerArgs)  # Its own checks want a model.
    made.speculative_algorithm, made.disable_cuda_graph_padding, made.cuda_graph_max_bs = "EAGLE3", False, 12
    made.cuda_graph_bs = sizes
    return made


class GraphSizes(unittest.TestCase):
    def test_plain_rounds_have_those_of_a_server_that_does_not_speculate(self):
        speculating = options(SPECULATING)
        self.assertEqual(plain_graph_sizes(speculating), NEVER)
        self.assertEqual(speculating.speculative_algorithm, "EAGLE3")

    def test_the_size_of_the_request_pool_makes_no_difference(self):
        self.assertEqual(plain_graph_sizes(options([*SPECULATING, 11])), NEVER)

    def test_those_that_were_given_stay(self):
        self.assertEqual(plain_graph_sizes(options([1, 2, 3])), [1, 2, 3])


if __name__ == "__main__":
    unittest.main()
