"""One rank of ``collectives.py``: sums on its card each way, and what NCCL says of them.

Needs SGLang and torch; writes a line of JSON for each thing that it tried, as soon as it did.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import flashinfer.comm
import torch
from flashinfer.jit import env
from sglang.srt.allreduce_caps import SymmMemCaps
from sglang.srt.distributed import parallel_state as state
from sglang.srt.distributed.device_communicators.torch_symm_mem_capped import CappedSymmMemCommunicator
from sglang.srt.layers import capped_fusion
from sglang.srt.layers.dp_attention import initialize_dp_attention
from sglang.srt.layers.flashinfer_comm_fusion import flashinfer_allreduce_residual_rmsnorm
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler

ONE_SHOT_BYTES, SYMM_MEM_BYTES = 65536, 1 << 20
SIZES = (16, 4096, ONE_SHOT_BYTES, ONE_SHOT_BYTES + 16, SYMM_MEM_BYTES, SYMM_MEM_BYTES + 16)
"""Bytes of a sum: the least, on both sides of each cap, and some between."""

HIDDEN, FUSED_TOKENS = 4096, 64
TOKENS = (1, 8, FUSED_TOKENS, FUSED_TOKENS + 1)
"""Tokens of a sum before a norm: the last ones are beyond the cap."""

IN_A_GRAPH, REPLAYS = 20, 10
"""Sums in a CUDA graph, and its replays, that are timed."""

ARCHITECTURE = (12, 0)
"""What the card says of itself while things are set up, so that the gates are those of SM120."""


class Job(NamedTuple):
    """What a rank is told."""

    out: Path
    rank: int
    ranks: int
    port: int
    built: str


def main(job: Job) -> None:
    """Try everything; what cannot even be set up ends with an exception."""
    torch.cuda.set_device(job.rank)
    calls: Counter[str] = Counter()
    with (job.out / f"rank-{job.rank}.jsonl").open("w", buffering=1) as said, counted(calls):

        def note(row: Mapping[str, object]) -> None:
            said.write(json.dumps(row) + "\n")

        rank = Rank(job, calls, note)
        rank.join()
        rank.sum_without_multicast()
        rank.sum_in_place()
        rank.replay()
        rank.vote()
        rank.fuse()
        rank.leave()
        note({"what": "end"})


@contextmanager
def counted(calls: Counter[str]) -> Iterator[None]:
    """Count the calls of the kernels themselves, below everything that decides about them."""
    kernels = (
        (torch.ops.symm_mem, "one_shot_all_reduce_copy_out", lambda _: "one-shot"),
        (torch.ops.symm_mem, "two_shot_all_reduce_", lambda _: "two-shot"),
        (torch.distributed, "all_reduce", lambda _: "nccl"),
        (flashinfer.comm, "trtllm_allreduce_fusion", fused_name),
    )

    def counting(kernel: Callable, name: Callable[[Mapping], str]) -> Callable:
        def call(*args: object, **given: object) -> object:
            calls[name(given)] += 1
            return kernel(*args, **given)

        return call

    with ExitStack() as stack:
        for place, attribute, name in kernels:
            made = counting(getattr(place, attribute), name)
            stack.enter_context(mock.patch.object(place, attribute, made))
        yield


def fused_name(given: Mapping[str, object]) -> str:
    """The name of a fused sum in the counts; FlashInfer chooses its kernel where it is not told."""
    return "fused, two-shot" if given["use_oneshot"] is False else "fused"


@contextmanager
def claimed(capability: tuple[int, int] = ARCHITECTURE) -> Iterator[None]:
    """Have the card say another compute capability."""
    with mock.patch("torch.cuda.get_device_capability", return_value=capability):
        yield


class Rank:
    """The group, and the things that are tried in it."""

    def __init__(self, job: Job, calls: Counter[str], note: Callable[[Mapping[str, object]], None]) -> None:
        """Nothing is shared with the other ranks yet."""
        self.job, self.calls, self.note = job, calls, note

    def join(self) -> None:
        """Make the group as a server does, with symmetric memory and without SGLang's own all-reduce."""

        self.args = ServerArgs(model_path="dummy", device="cuda", tp_size=self.job.ranks)
        self.args.enable_flashinfer_allreduce_fusion = True
        self.args.flashinfer_allreduce_fusion_max_bytes = FUSED_TOKENS * HIDDEN * 2
        set_global_server_args_for_scheduler(self.args)
        state.set_custom_all_reduce(False)
        state.set_torch_symm_mem_all_reduce(True)
        state.set_torch_symm_mem_caps(SymmMemCaps(SYMM_MEM_BYTES, ONE_SHOT_BYTES))
        address = f"tcp://127.0.0.1:{self.job.port}"
        state.init_distributed_environment(self.job.ranks, self.job.rank, address, self.job.rank, "nccl")
        with claimed():
            state.initialize_model_parallel(self.job.ranks)
        initialize_dp_attention(self.args, mock.Mock(hidden_size=HIDDEN, dtype=torch.bfloat16))
        self.group = state.get_tp_group()
        made = self.group.torch_symm_mem_comm
        self.note({"what": "symmetric memory", "kind": type(made).__name__, "is_right": not made.disabled})

    def leave(self) -> None:
        """Wait for the others: the first rank holds the store of all."""
        torch.distributed.barrier(group=self.group.cpu_group)

    def given(self, rows: int, columns: int, seed: int = 0):
        """Small whole numbers, others on each rank, whose sums are exact."""
        generator = torch.Generator(self.group.device).manual_seed(1000 * seed + self.job.rank)
        drawn = torch.randint(-8, 9, (rows, columns), generator=generator, device=self.group.device)
        return drawn.to(torch.bfloat16)

    def by_nccl(self, tensor):
        """The sum that NCCL makes, not counted."""
        summed, before = tensor.clone(), self.calls["nccl"]
        self.nccl_in_place(summed)
        self.calls["nccl"] = before
        return summed

    def nccl_in_place(self, tensor) -> None:
        """Have NCCL sum into a tensor."""
        torch.distributed.all_reduce(tensor, group=self.group.device_group)

    def asked(self, row: Mapping[str, object], wanted: str, call: Callable[[], bool]) -> None:
        """Note whether a call gave what it should, and by which kernels; ``wanted`` is the one that it must be."""
        self.calls.clear()
        is_equal = call()
        ran = {name: count for name, count in self.calls.items() if count}
        self.note({**row, "wanted": wanted, "ran": ran, "is_right": is_equal and set(ran) == {wanted}})

    def sum_without_multicast(self) -> None:
        """Sums of each size, out of place as layers ask for them."""
        for size in SIZES:
            given = self.given(1, size // 2)
            expected = self.by_nccl(given)
            row = {"what": "sum", "bytes": size}
            self.asked(row, way(size), partial(self.is_summed, given, expected))
            times = {"us": self.microseconds(self.group.all_reduce, given)}
            times["nccl_us"] = self.microseconds(self.nccl_in_place, given)
            self.note({"what": "time", "bytes": size, "way": way(size), **times})

    def is_summed(self, given, expected) -> bool:
        """Whether the group's sum is the expected one."""
        return bool((self.group.all_reduce(given) == expected).all())

    def sum_in_place(self) -> None:
        """Sums into the tensor itself, which other code asks for."""
        for size in (4096, SYMM_MEM_BYTES, SYMM_MEM_BYTES + 16):
            given = self.given(1, size // 2)
            row = {"what": "sum in place", "bytes": size}
            self.asked(row, way(size), partial(self.is_summed_in_place, given, self.by_nccl(given)))

    def is_summed_in_place(self, given, expected) -> bool:
        """Whether a tensor holds the expected sum afterwards."""
        state.inplace_all_reduce(given, group_name=self.group.unique_name)
        return bool((given == expected).all())

    def replay(self) -> None:
        """Sums in a CUDA graph, with other numbers in each replay."""
        for size in (4096, SYMM_MEM_BYTES):
            given = self.given(1, size // 2)
            row = {"what": "sum in a graph", "bytes": size}
            self.asked(row, way(size), partial(self.is_replayed, given, self.group.all_reduce, torch.equal))

    def is_replayed(self, given, call: Callable, is_right: Callable) -> bool:
        """Capture a call, and compare what it gives when other numbers lie where it reads."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            made = call(given)
        found = []
        for seed in range(1, 4):
            given.copy_(self.given(*given.shape, seed=seed))
            expected = self.by_nccl(given)
            graph.replay()
            torch.cuda.synchronize()
            found.append(is_right(expected, made))
        return all(found)

    def vote(self) -> None:
        """One card that cannot take part leaves all ranks with NCCL."""

        with claimed((8, 0) if self.job.rank == 1 else ARCHITECTURE):
            caps = SymmMemCaps(SYMM_MEM_BYTES, ONE_SHOT_BYTES)
            made = CappedSymmMemCommunicator(self.group.cpu_group, self.group.device, caps)
        kept, self.group.torch_symm_mem_comm = self.group.torch_symm_mem_comm, made
        given = self.given(1, 2048)
        expected = self.by_nccl(given)
        row = {"what": "sum after a lost vote", "bytes": 4096}
        self.asked(row, "nccl", lambda: made.disabled and self.is_summed(given, expected))
        self.group.torch_symm_mem_comm = kept

    def fuse(self) -> None:
        """Sums that are fused with a residual and a norm, and one beyond the cap."""

        self.group.torch_symm_mem_comm = None
        if self.job.built:
            env.FLASHINFER_AOT_DIR = Path(self.job.built)
        with claimed():
            capped_fusion.set_up(self.args, self.group.device, HIDDEN, torch.bfloat16)
        self.note({"what": "fusion", "is_right": capped_fusion.can_fuse(self.given(FUSED_TOKENS, HIDDEN))})
        norm = RMSNorm(HIDDEN).to(self.group.device, torch.bfloat16)
        for tokens in TOKENS:
            wanted = "fused" if tokens <= FUSED_TOKENS else "nccl"
            row = {"what": "sum, residual, norm", "bytes": tokens * HIDDEN * 2}
            self.asked(row, wanted, partial(self.is_fused_rightly, norm.forward_with_allreduce_fusion, tokens))
        row = {"what": "sum, residual, norm", "bytes": FUSED_TOKENS * HIDDEN * 2}
        self.asked(row, "fused, two-shot", partial(self.is_fused_rightly, two_shot(norm), FUSED_TOKENS))
        residual = self.residual(FUSED_TOKENS)
        self.asked(
            {**row, "what": "sum, residual, norm in a graph"},
            "fused",
            partial(
                self.is_replayed,
                self.given(FUSED_TOKENS, HIDDEN),
                lambda given: norm.forward_with_allreduce_fusion(given, residual),
                lambda summed, made: self.is_normed(summed + residual, *made),
            ),
        )

    def is_fused_rightly(self, layer: Callable, tokens: int) -> bool:
        """Whether a layer gives the sum that NCCL gives, with the residual, and its norm."""
        given, residual = self.given(tokens, HIDDEN), self.residual(tokens)
        return self.is_normed(self.by_nccl(given) + residual, *layer(given.clone(), residual.clone()))

    def residual(self, tokens: int):
        """The same on all ranks."""
        return (torch.arange(tokens * HIDDEN, device=self.group.device) % 17 - 8).view(tokens, -1).to(torch.bfloat16)

    @staticmethod
    def is_normed(expected, normed, summed) -> bool:
        """Whether a sum is the expected one, exactly, and its norm within what the type allows."""
        scale = torch.rsqrt(expected.float().square().mean(-1, keepdim=True) + 1e-6)
        return torch.equal(summed, expected) and torch.allclose(normed.float(), expected.float() * scale, rtol=2e-2)

    def microseconds(self, call: Callable, given) -> float:
        """Time of one call in a CUDA graph of many."""
        call(given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(IN_A_GRAPH):
                call(given)
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        begun.record()
        for _ in range(REPLAYS):
            graph.replay()
        ended.record()
        torch.cuda.synchronize()
        return round(begun.elapsed_time(ended) * 1000 / IN_A_GRAPH / REPLAYS, 2)


def way(size: int) -> str:
    """The kernel that must sum so many bytes."""
    if size > SYMM_MEM_BYTES:
        return "nccl"
    return "one-shot" if size <= ONE_SHOT_BYTES else "two-shot"


def two_shot(norm) -> Callable:
    """The layer with the kernel that FlashInfer itself takes for large sums only."""

    return lambda given, residual: flashinfer_allreduce_residual_rmsnorm(
        input_tensor=given, residual=residual, weight=norm.weight, use_oneshot=False
    )


if __name__ == "__main__":
    folder, rank, ranks, port, built = sys.argv[1:]
    main(Job(Path(folder), int(rank), int(ranks), int(port), built))
