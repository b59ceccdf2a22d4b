"""FlashInfer's fused all-reduce with a cap: which sums it takes, and that no rank fuses where one cannot."""

import contextlib
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest import mock

import torch
import torch.distributed as dist
from gloo_ranks import card, of_each_rank, refuse
from sglang.srt.layers import capped_fusion, communicator
from sglang.srt.layers import flashinfer_comm_fusion as fusion
from sglang.srt.layers.layernorm import RMSNorm

HIDDEN, CAP = 64, 1024
TOKEN = HIDDEN * 2
"""Bytes of a token in bfloat16: the cap holds eight."""

TENSOR = torch.zeros(1, HIDDEN, dtype=torch.bfloat16)

COMMUNICATOR, CAPPED = communicator.__name__, capped_fusion.__name__


def server(cap: int | None, **more: object) -> SimpleNamespace:
    """What is read of the server's options."""
    return SimpleNamespace(flashinfer_allreduce_fusion_max_bytes=cap, enable_flashinfer_allreduce_fusion=True, **more)


@contextlib.contextmanager
def allowed(cap: int | None) -> Iterator[None]:
    """A set-up that went well, or none."""
    with mock.patch.object(capped_fusion, "_cap", cap):
        yield


class Gate(unittest.TestCase):
    norm = RMSNorm(HIDDEN).to(torch.bfloat16)

    def is_open(self, tokens: int, cap: int | None = CAP, *, made: int | None = CAP, **more: bool) -> bool:
        found = {"_is_flashinfer_available": True, "_is_sm90_supported": False, "_is_sm100_supported": False, **more}
        with contextlib.ExitStack() as stack:
            stack.enter_context(allowed(made))
            stack.enter_context(mock.patch(f"{COMMUNICATOR}.get_global_server_args", return_value=server(cap)))
            for name in ("_is_flashinfer_available", "_is_sm90_supported", "_is_sm100_supported"):
                stack.enter_context(mock.patch.object(communicator, name, found[name]))
            with_attention = more.get("dp_attention", False)
            stack.enter_context(mock.patch(f"{COMMUNICATOR}.is_dp_attention_enabled", return_value=with_attention))
            return communicator.apply_flashinfer_allreduce_fusion(tokens, self.norm)

    def test_it_is_open_up_to_the_cap_on_any_card_that_was_set_up(self):
        self.assertEqual([tokens for tokens in range(12) if self.is_open(tokens)], list(range(1, CAP // TOKEN + 1)))

    def test_it_is_shut_where_the_set_up_failed(self):
        self.assertFalse(self.is_open(1, made=None))

    def test_it_is_shut_with_dp_attention(self):
        self.assertFalse(self.is_open(1, dp_attention=True))

    def test_without_a_cap_cards_and_tokens_are_those_of_the_release(self):
        for tokens, card_of, is_open in ((2048, 9, True), (2048, 10, True), (2049, 9, False), (1, 12, False)):
            with self.subTest(tokens=tokens, card=card_of):
                found = {"_is_sm90_supported": card_of == 9, "_is_sm100_supported": card_of == 10}
                self.assertEqual(self.is_open(tokens, None, made=None, **found), is_open)

    def test_a_layer_asks_for_its_own_norm(self):
        layer = object.__new__(communicator.LayerCommunicator)  # Its own set-up wants a model.
        vars(layer).update(input_layernorm=self.norm, is_last_layer=False, _speculative_algo=None)
        vars(layer).update(_context=SimpleNamespace(tp_size=2))
        with (
            allowed(CAP),
            mock.patch(f"{COMMUNICATOR}.get_global_server_args", return_value=server(CAP)),
            mock.patch(f"{COMMUNICATOR}.is_dp_attention_enabled", return_value=False),
        ):
            asked = {
                tokens: layer.should_fuse_mlp_allreduce_with_next_layer(SimpleNamespace(input_ids=torch.zeros(tokens)))
                for tokens in (CAP // TOKEN, CAP // TOKEN + 1)
            }
        self.assertEqual(list(asked.values()), [True, False])

    def test_the_memory_is_never_overrun(self):
        whole = torch.zeros(16, HIDDEN, dtype=torch.bfloat16)
        for tensor, is_taken in (
            (whole[:8], True),
            (whole[:9], False),
            (whole[:0], False),
            (whole[:8].half(), True),
            (whole[:4].float(), False),
            (whole[:, :8], False),
            (torch.zeros(8, 12, dtype=torch.bfloat16), False),
        ):
            with self.subTest(shape=tensor.shape, dtype=tensor.dtype), allowed(CAP):
                self.assertIs(capped_fusion.can_fuse(tensor), is_taken)
        with allowed(None):
            self.assertFalse(capped_fusion.can_fuse(whole[:1]))


class Fallback(unittest.TestCase):
    def test_what_is_not_fused_is_summed_before_the_norm(self):
        norm = RMSNorm(HIDDEN)
        x, residual, added = (torch.full((2, HIDDEN), value) for value in (1.0, 2.0, 4.0))
        with (
            mock.patch("sglang.srt.distributed.get_tensor_model_parallel_world_size", return_value=2),
            mock.patch("sglang.srt.distributed.tensor_model_parallel_all_reduce", lambda part: part * 2),
            mock.patch.object(fusion, "flashinfer_allreduce_residual_rmsnorm", return_value=(None, None)),
            mock.patch.object(norm, "forward", norm.forward_native),
        ):
            normed, summed = norm.forward_with_allreduce_fusion(x, residual, added)
        self.assertEqual(summed.unique().tolist(), [8.0])
        self.assertTrue(torch.allclose(normed, torch.ones_like(normed)))


def fused(input_tensor, residual, weight, **_):
    """Stands for the kernel on a group of CPU processes."""
    summed = input_tensor.float()
    dist.all_reduce(summed)
    summed = summed + residual.float()
    scale = torch.rsqrt(summed.square().mean(-1, keepdim=True) + 1e-6)
    return (summed * scale * weight.float()).to(residual.dtype), summed.to(residual.dtype)


def misnormed(**given):
    normed, summed = fused(**given)
    return normed * 1.5, summed


def missummed(**given):
    normed, summed = fused(**given)
    return normed, summed + 1


class SetUp(unittest.TestCase):
    def fusing(self, rank_1: dict, hidden: int = HIDDEN) -> list[bool]:
        """Whether each of two ranks fuses after a set-up in which one of them is special."""

        def made(rank: int) -> bool:
            group = SimpleNamespace(world_size=2, rank_in_group=rank, cpu_group=dist.group.WORLD)
            functions = {
                f"{CAPPED}.get_tp_group": lambda: group,
                f"{CAPPED}.wait_for_device": lambda *_: None,
                f"{CAPPED}.Trial.build": lambda _: None,
                f"{fusion.__name__}._workspace_manager.initialize": lambda **_: None,
                f"{fusion.__name__}._flashinfer_comm": object(),
                f"{fusion.__name__}.flashinfer_allreduce_residual_rmsnorm": fused,
                **(rank_1 if rank == 1 else {}),
            }
            with card(**functions):
                capped_fusion.set_up(server(CAP), torch.device("cpu", rank), hidden, torch.bfloat16)
            return capped_fusion.can_fuse(TENSOR)

        return of_each_rank(2, made)

    def test_it_fuses_where_nothing_is_wrong(self):
        for capability in (9, 12):
            with self.subTest(capability=capability):
                self.assertEqual(self.fusing({"capability": capability}), [True, True])

    def test_what_is_wrong_on_one_rank_keeps_all_from_fusing(self):
        for wrong in (
            {"capability": 8},
            {"is_reachable": False},
            {f"{fusion.__name__}._flashinfer_comm": None},
            {f"{CAPPED}.Trial.build": refuse},
            {f"{fusion.__name__}._workspace_manager.initialize": refuse},
            {f"{fusion.__name__}.flashinfer_allreduce_residual_rmsnorm": misnormed},
            {f"{fusion.__name__}.flashinfer_allreduce_residual_rmsnorm": missummed},
        ):
            with self.subTest(wrong=wrong):
                self.assertEqual(self.fusing(wrong), [False, False])

    def test_a_cap_of_less_than_a_token_fuses_nothing(self):
        self.assertEqual(self.fusing({}, hidden=CAP), [False, False])

    def test_without_a_cap_nothing_is_made(self):
        for cap, ranks in ((None, 2), (CAP, 1)):
            with (
                self.subTest(cap=cap, ranks=ranks),
                mock.patch(f"{CAPPED}.get_tp_group", return_value=SimpleNamespace(world_size=ranks)),
                mock.patch(f"{CAPPED}.Trial", side_effect=AssertionError),
            ):
                capped_fusion.set_up(server(cap), torch.device("cpu"), HIDDEN, torch.bfloat16)
                self.assertFalse(capped_fusion.can_fuse(TENSOR))

    def test_why_nothing_is_fused(self):
        for given, said in (
            ((2, torch.bfloat16, HIDDEN, 8, True), None),
            ((2, torch.bfloat16, HIDDEN, 8, False), "not installed"),
            ((6, torch.bfloat16, HIDDEN, 8, True), "no kernels for 6 ranks"),
            ((2, torch.float32, HIDDEN, 8, True), "not tried with torch.float32"),
            ((2, torch.bfloat16, 12, 8, True), "hidden size of 12"),
            ((2, torch.bfloat16, HIDDEN, 0, True), "less than one token of 128 bytes"),
        ):
            with self.subTest(given=given):
                found = capped_fusion.problem(*given)
                self.assertIn(said, found) if said else self.assertIsNone(found)


class Build(unittest.TestCase):
    def built(self, capability: int) -> tuple[object, ...]:
        """Name, sources and majors of the module that is compiled on a card; FlashInfer's own is the word stock."""
        modules = {
            name: ModuleType(name)
            for name in (
                *("flashinfer", "flashinfer.comm", "flashinfer.comm.trtllm_ar", "flashinfer.compilation_context"),
                *("flashinfer.jit", "flashinfer.jit.env", "flashinfer.jit.core"),
            )
        }
        for name, module in modules.items():
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(modules[parent], child, module)
        kernels = modules["flashinfer.comm.trtllm_ar"]
        kernels.gen_trtllm_comm_module = lambda: "stock"
        kernels.get_trtllm_comm_module = lambda made=kernels: made.gen_trtllm_comm_module()
        modules["flashinfer.jit.env"].FLASHINFER_CSRC_DIR = Path("csrc")
        context = SimpleNamespace(get_nvcc_flags_list=lambda supported_major_versions: supported_major_versions)
        modules["flashinfer.compilation_context"].CompilationContext = lambda: context
        modules["flashinfer.jit.core"].gen_jit_spec = lambda name, sources, extra_cuda_cflags: (
            name,
            [source.name for source in sources],
            extra_cuda_cflags,
        )
        with (
            mock.patch.dict(sys.modules, modules),
            mock.patch(f"{CAPPED}.get_tp_group"),
            card(capability),
        ):
            capped_fusion.Trial(CAP, torch.device("cpu"), HIDDEN, torch.bfloat16).build()
            return kernels.get_trtllm_comm_module()

    def test_sm120_gets_a_build_of_its_own(self):
        name, sources, majors = self.built(12)
        self.assertNotEqual(name, "trtllm_comm")
        self.assertIn("trtllm_allreduce_fusion.cu", sources)
        self.assertIn(12, majors)

    def test_other_cards_get_that_of_flashinfer(self):
        self.assertEqual([self.built(capability) for capability in (9, 10)], ["stock"] * 2)


if __name__ == "__main__":
    unittest.main()
