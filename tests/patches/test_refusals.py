"""Servers and options that do not go together are refused before a model is loaded, with one sentence."""

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from sglang.srt.allreduce_caps import symm_mem_caps
from sglang.srt.server_args import prepare_server_args
from sglang.srt.speculative.load_policy import LoadPolicyError
from sglang.srt.speculative.load_policy_support import policy_of
from sglang_cpu_standin import models

THRESHOLD = "--speculative-disable-batch-threshold=4"
POLICY = json.dumps({"version": 1, "tiers": [{"max_batch": 4, "steps": "full"}, {"steps": 0}]})


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "models"
        models.write_models(folder)
        cls.options = (
            *(f"--model-path={folder}/target", f"--speculative-draft-model-path={folder}/eagle3", "--device=cpu"),
            *("--attention-backend=torch_native", "--sampling-backend=pytorch", "--disable-cuda-graph"),
            *("--max-running-requests=8", "--speculative-algorithm=EAGLE3", "--speculative-num-steps=3"),
            *("--speculative-eagle-topk=1", "--speculative-num-draft-tokens=4"),
        )

    def accept(self, *more: str, **environment: str):
        with mock.patch.dict(os.environ, {"SGLANG_ENABLE_SPEC_V2": "1", **environment}):
            return prepare_server_args([*self.options, *more])

    def refused(self, *more: str, **environment: str) -> str:
        with self.assertRaises(LoadPolicyError) as caught:
            self.accept(*more, **environment)
        return str(caught.exception)

    def test_a_threshold_and_a_policy_are_taken(self):
        self.assertEqual(self.accept(THRESHOLD).speculative_disable_batch_threshold, 4)
        self.assertEqual(self.accept(f"--speculative-load-policy={POLICY}").speculative_load_policy, POLICY)

    def test_a_file_is_read_once_for_all_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policy.json"
            path.write_text(f"\n{POLICY}\n")
            args = self.accept(f"--speculative-load-policy={path}")
        self.assertEqual(policy_of(args), policy_of(self.accept(f"--speculative-load-policy={POLICY}")))

    def test_the_default_is_none(self):
        args = self.accept()
        self.assertEqual((args.speculative_disable_batch_threshold, args.speculative_load_policy), (0, None))

    def test_what_does_not_go_together_is_refused(self):
        for more, reason in (
            ((f"--speculative-load-policy={POLICY}",), "only one of the two can be given"),
            (("--enable-dp-attention", "--tp=2", "--dp=2"), "DP attention"),
            (("--enable-multi-layer-eagle",), "multi-layer EAGLE"),
            (("--enable-two-batch-overlap",), "two-batch overlap"),
            (("--enable-return-hidden-states",), "returning hidden states"),
            (("--enable-custom-logit-processor",), "custom logit processors"),
            (("--speculative-accept-threshold-acc=0.9",), "an acceptance threshold"),
            (("--speculative-algorithm=STANDALONE",), "EAGLE or EAGLE3, not STANDALONE"),
            (("--max-running-requests=4",), "whose max_running_requests is 4"),
            (("--prefill-attention-backend=triton",), "plain rounds were never run"),
        ):
            with self.subTest(more=more):
                said = self.refused(THRESHOLD, *more)
                self.assertIn(reason, said)
                self.assertRegex(said, r"^--speculative-[a-z-]+: .*\.$")

    def test_it_needs_the_overlap_scheduler(self):
        self.assertIn("SGLANG_ENABLE_SPEC_V2=1", self.refused(THRESHOLD, SGLANG_ENABLE_SPEC_V2="0"))

    def test_it_plans_on_the_stream_that_it_runs_on(self):
        said = self.refused(THRESHOLD, SGLANG_ENABLE_OVERLAP_PLAN_STREAM="1")
        self.assertIn("unset SGLANG_ENABLE_OVERLAP_PLAN_STREAM", said)

    def test_a_policy_that_is_wrong_is_refused_with_what_is_wrong(self):
        self.assertIn("version must be 1", self.refused("--speculative-load-policy={}"))
        self.assertIn("/absent cannot be read", self.refused("--speculative-load-policy=/absent"))

    def test_without_a_policy_nothing_is_refused(self):
        self.accept("--enable-return-hidden-states", "--speculative-accept-threshold-acc=0.9")

    def test_fusion_cannot_be_on_and_off(self):
        self.assertTrue(self.accept("--disable-flashinfer-allreduce-fusion").disable_flashinfer_allreduce_fusion)
        with self.assertRaisesRegex(ValueError, "exclude each other"):
            self.accept("--disable-flashinfer-allreduce-fusion", "--enable-flashinfer-allreduce-fusion")

    def test_caps_of_all_reduces(self):
        on, fuse = "--enable-torch-symm-mem", "--enable-flashinfer-allreduce-fusion"
        self.accept(fuse, "--flashinfer-allreduce-fusion-max-bytes=65536")
        args = self.accept(on, "--torch-symm-mem-max-bytes=131072", "--torch-symm-mem-one-shot-max-bytes=0")
        self.assertEqual(symm_mem_caps(args), (131072, 0))
        self.assertIsNone(symm_mem_caps(self.accept(on)))
        for more, said in (
            ((on, "--torch-symm-mem-max-bytes=0"), "--torch-symm-mem-max-bytes: 0 is not a multiple of 16 from 16 on."),
            ((on, "--torch-symm-mem-max-bytes=40"), "--torch-symm-mem-max-bytes: 40 is not a multiple of 16"),
            (("--torch-symm-mem-one-shot-max-bytes=-16",), "--torch-symm-mem-one-shot-max-bytes: -16 is not a"),
            (("--torch-symm-mem-max-bytes=64",), "nothing has this cap without --enable-torch-symm-mem."),
            ((fuse, "--flashinfer-allreduce-fusion-max-bytes=8"), "fusion-max-bytes: 8 is not a multiple of 16"),
            (("--flashinfer-allreduce-fusion-max-bytes=64",), f"nothing has this cap without {fuse}."),
            (
                (fuse, "--flashinfer-allreduce-fusion-max-bytes=64", "--enable-piecewise-cuda-graph"),
                "it was not tried with --enable-piecewise-cuda-graph.",
            ),
        ):
            with self.subTest(more=more), self.assertRaises(ValueError) as caught:
                self.accept(*more)
            self.assertIn(said, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
