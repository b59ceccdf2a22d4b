"""Torch symmetric memory: off where it cannot work, on all ranks alike, and exact where it is on."""

import contextlib
import itertools
import unittest
from collections.abc import Iterator
from types import SimpleNamespace
from unittest import mock

import sglang.srt.layers.dp_attention  # noqa: F401 - a group imports it, on each rank anew otherwise
import torch
import torch.distributed as dist
from gloo_ranks import card, of_each_rank, refuse
from sglang.srt.allreduce_caps import SymmMemCaps
from sglang.srt.distributed import agreement, parallel_state, peer_cards
from sglang.srt.distributed.device_communicators import torch_symm_mem, torch_symm_mem_capped
from sglang.srt.distributed.device_communicators.torch_symm_mem_capped import CappedSymmMemCommunicator
from sglang.srt.distributed.parallel_state import GroupCoordinator

CAPS = SymmMemCaps(max_bytes=256, one_shot_max_bytes=64)
TENSOR = torch.full([16], 3, dtype=torch.bfloat16)
GROUP = SimpleNamespace(group_name="group")


class Stock(unittest.TestCase):
    """What the release has itself, on cards that it does not know and for tensors that it does not take."""

    def made(self, capability: int) -> torch_symm_mem.TorchSymmMemCommunicator:
        with (
            mock.patch.object(torch_symm_mem, "torch_symm_mem_available", new=True),
            mock.patch("torch.cuda.set_device"),
            mock.patch("torch.cuda.get_device_capability", return_value=(capability, 0)),
            mock.patch.object(torch_symm_mem.dist, "get_world_size", return_value=8),
        ):
            return torch_symm_mem.TorchSymmMemCommunicator(GROUP, 0)

    def test_it_stays_off_on_a_card_that_its_table_does_not_have(self):
        with self.assertLogs(torch_symm_mem.logger) as said:
            self.assertTrue(self.made(12).disabled)
        self.assertIn("World size 8 not supported on capability 12", said.output[0])

    def reduced_in_place(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int]:
        """A tensor after an all-reduce in place, and how often NCCL was asked; the kernel doubles, NCCL triples."""
        made = object.__new__(torch_symm_mem.TorchSymmMemCommunicator)  # Its own set-up wants a card.
        vars(made).update(disabled=False, dtype=torch.bfloat16, max_size=64, world_size=2, device_capability=9)
        vars(made).update(group=GROUP, buffer=torch.zeros(32, dtype=torch.bfloat16))
        asked = SimpleNamespace(pynccl_comm=None, torch_symm_mem_comm=made, device_group=None)
        with (
            mock.patch.object(torch.ops.symm_mem, "two_shot_all_reduce_", lambda part, *_: part.mul_(2), create=True),
            mock.patch("torch.distributed.all_reduce", side_effect=lambda part, **_: part.mul_(3)) as nccl,
        ):
            GroupCoordinator._all_reduce_in_place(asked, tensor)  # noqa: SLF001 - the operator around it is CUDA's
        return tensor, nccl.call_count

    def test_a_sum_in_place_is_there_afterwards(self):
        summed, nccl = self.reduced_in_place(TENSOR.clone())
        self.assertEqual((summed.unique().item(), nccl), (6, 0))

    def test_what_it_cannot_take_is_summed_by_nccl(self):
        for tensor in (TENSOR.float(), TENSOR.repeat(4)):
            with self.subTest(dtype=tensor.dtype, size=tensor.numel()):
                summed, nccl = self.reduced_in_place(tensor.clone())
                self.assertEqual((summed.unique().item(), nccl), (9, 1))


def sum_of_ranks(tensor: torch.Tensor) -> torch.Tensor:
    summed = tensor.float()
    dist.all_reduce(summed)
    return summed.to(tensor.dtype)


class Kernels:
    """Stand for the kernels of torch on a group of CPU processes; they note what they were asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def one_shot(self, staged, given, _op, _group, out):
        assert staged.numel() == given.numel()
        self.calls.append(("one_shot", given.nbytes))
        return out.copy_(sum_of_ranks(given))

    def two_shot(self, staged, _op, _group):
        self.calls.append(("two_shot", staged.nbytes))
        return staged.copy_(sum_of_ranks(staged))


MEMORY = "torch.distributed._symmetric_memory"


@contextlib.contextmanager
def cards(kernels: Kernels, **special: object) -> Iterator[None]:
    """A card on this rank, with its memory and kernels."""
    functions = {
        f"{MEMORY}.empty": lambda size, dtype, **_: torch.zeros(size, dtype=dtype),
        f"{MEMORY}.rendezvous": lambda *_: None,
        f"{torch_symm_mem_capped.__name__}.wait_for_device": lambda *_: None,
        **special,
    }
    with (
        card(**functions),
        mock.patch.object(torch.ops.symm_mem, "one_shot_all_reduce_copy_out", kernels.one_shot, create=True),
        mock.patch.object(torch.ops.symm_mem, "two_shot_all_reduce_", kernels.two_shot, create=True),
    ):
        yield


def communicator(rank: int, caps: SymmMemCaps = CAPS) -> CappedSymmMemCommunicator:
    return CappedSymmMemCommunicator(dist.group.WORLD, torch.device("cpu", rank), caps)


class SetUp(unittest.TestCase):
    def states(self, rank_1: dict, caps: SymmMemCaps = CAPS) -> list[tuple[bool, bool]]:
        """Of each of two ranks, whether it is disabled and whether it holds memory; one of them is special."""

        def made(rank: int) -> tuple[bool, bool]:
            with cards(Kernels(), **(rank_1 if rank == 1 else {})):
                it = communicator(rank, caps)
                return it.disabled, it.buffer is not None

        return of_each_rank(2, made)

    def test_it_is_on_where_nothing_is_wrong(self):
        for capability in peer_cards.CAPABILITIES:
            with self.subTest(capability=capability):
                self.assertEqual(self.states({"capability": capability}), [(False, True)] * 2)

    def test_what_is_wrong_on_one_rank_disables_all(self):
        for wrong in (
            {"capability": 8},
            {"is_reachable": False},
            {f"{MEMORY}.empty": refuse},
            {f"{MEMORY}.rendezvous": refuse},
        ):
            with self.subTest(wrong=wrong):
                self.assertEqual(self.states(wrong), [(True, False)] * 2)

    def test_a_wrong_sum_on_one_rank_disables_all(self):
        for kernel in ("one_shot", "two_shot"):
            with self.subTest(kernel=kernel):

                def made(rank: int, kernel: str = kernel) -> bool:
                    kernels = Kernels()
                    if rank == 1:
                        right = getattr(kernels, kernel)
                        setattr(kernels, kernel, lambda *given: right(*given).add_(1))
                    with cards(kernels):
                        return communicator(rank).disabled

                self.assertEqual(of_each_rank(2, made), [True, True])

    def test_both_kernels_are_tried_up_to_the_cap(self):
        def tried(rank: int) -> list:
            kernels = Kernels()
            with cards(kernels):
                communicator(rank)
            return kernels.calls

        self.assertEqual(of_each_rank(2, tried)[0], [("one_shot", 16), ("one_shot", 64), ("two_shot", 256)])

    def test_a_group_of_the_server_has_it_where_caps_are_given(self):
        def made(rank: int) -> tuple[str, bool]:
            parallel_state.set_torch_symm_mem_all_reduce(True)
            parallel_state.set_torch_symm_mem_caps(CAPS)
            parallel_state.init_distributed_environment(2, rank, local_rank=rank, backend="gloo")
            with cards(Kernels()):
                group = parallel_state.init_model_parallel_group(
                    [[0, 1]], rank, "gloo", use_pynccl=False, use_custom_allreduce=False
                )
            return type(group.torch_symm_mem_comm).__name__, group.torch_symm_mem_comm.disabled

        self.assertEqual(of_each_rank(2, made), [("CappedSymmMemCommunicator", False)] * 2)

    def test_why_a_card_cannot_take_part(self):
        problem = peer_cards.problem
        self.assertIsNone(problem(12, is_one_host=True, unreachable=[]))
        self.assertIn("capability 8", problem(8, is_one_host=True, unreachable=[]))
        self.assertIn("not all of one host", problem(12, is_one_host=False, unreachable=[]))
        self.assertIn("memory of card 2, 3", problem(12, is_one_host=True, unreachable=[2, 3]))


class Sums(unittest.TestCase):
    def setUp(self):
        made = object.__new__(CappedSymmMemCommunicator)  # Its own set-up is collective.
        vars(made).update(disabled=False, caps=CAPS, group=GROUP, buffer=torch.zeros(128, dtype=torch.bfloat16))
        self.made = made

    def test_it_takes_what_the_cap_and_the_kernels_allow(self):
        whole = torch.zeros(256, dtype=torch.bfloat16)
        for tensor, is_taken in (
            (whole[:8], True),
            (whole[:128], True),
            (whole[:136], False),
            (whole[:12], False),
            (whole[4:20], False),
            (whole[8:24], True),
            (whole[:128].view(8, 16), True),
            (whole[:128].view(8, 16).t(), False),
            (whole[:8].float(), False),
            (whole[:8].half(), False),
        ):
            with self.subTest(shape=tensor.shape, dtype=tensor.dtype, offset=tensor.storage_offset()):
                self.assertIs(self.made.should_torch_symm_mem_allreduce(tensor), is_taken)

    def test_it_takes_nothing_where_it_is_disabled(self):
        self.made.disabled = True
        self.assertFalse(self.made.should_torch_symm_mem_allreduce(TENSOR))

    def test_each_size_has_its_kernel_and_the_right_sum(self):
        def summed(rank: int) -> list:
            kernels = Kernels()
            with cards(kernels):
                made = communicator(rank)
                kernels.calls.clear()
                found = []
                for numel, is_in_place in itertools.product((8, 32, 40, 128), (False, True)):
                    given = torch.arange(numel, dtype=torch.bfloat16).view(4, -1) * (rank + 1)
                    before = given.clone()
                    out = made.all_reduce(given, out=given if is_in_place else None)
                    is_kept = is_in_place or torch.equal(given, before)
                    right = torch.equal(out, torch.arange(numel, dtype=torch.bfloat16).view(4, -1) * 3)
                    found.append((kernels.calls.pop(), right, is_kept))
            return found

        expected = [
            ((kernel, 2 * numel), True, True)
            for numel, kernel in ((8, "one_shot"), (32, "one_shot"), (40, "two_shot"), (128, "two_shot"))
            for _ in range(2)
        ]
        self.assertEqual(of_each_rank(2, summed), [expected] * 2)


class Agreement(unittest.TestCase):
    def test_one_that_is_not_well_is_enough(self):
        votes = list(itertools.product((False, True), repeat=3))

        def said(rank: int) -> list[bool]:
            return [agreement.all_agree(vote[rank], dist.group.WORLD) for vote in votes]

        self.assertEqual(of_each_rank(3, said), [[all(vote) for vote in votes]] * 3)

    def test_a_kernel_that_does_not_end_is_named_and_ends_the_rank(self):
        event = SimpleNamespace(record=lambda: None, query=lambda: False)
        with (
            mock.patch("torch.cuda.Event", return_value=event),
            mock.patch.object(agreement.time, "monotonic", side_effect=itertools.count(step=25)),
            mock.patch.object(agreement.time, "sleep"),
            self.assertRaisesRegex(agreement.StuckDeviceError, "^it: .*did not end in 60 s.*IOMMU and ACS"),
        ):
            agreement.all_succeed("it", lambda: agreement.wait_for_device("it", 60), GROUP)

    def test_a_kernel_that_ends_is_waited_for(self):
        answers = iter([False, False, True])
        event = SimpleNamespace(record=lambda: None, query=lambda: next(answers))
        with mock.patch("torch.cuda.Event", return_value=event), mock.patch.object(agreement.time, "sleep") as slept:
            agreement.wait_for_device("it", 60)
        self.assertEqual(slept.call_count, 2)


if __name__ == "__main__":
    unittest.main()
