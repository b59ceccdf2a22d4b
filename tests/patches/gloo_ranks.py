"""The ranks of a group on the CPU, each a process of its own, for the length of a function."""

import contextlib
import multiprocessing
import tempfile
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from unittest import mock

import torch.distributed as dist

SECONDS = 60
"""After which ranks wait for each other for ever, as far as a test is concerned."""


def of_each_rank(count: int, function: Callable[[int], object]) -> list[object]:
    """What a function returns on each rank, given its number; on all of them the default group is there.

    Raises AssertionError with what a rank said if one fails or does not end.
    """
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ends, ranks = [], []
        for rank in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_run, args=(rank, count, Path(folder) / "store", function, theirs))
            process.start()
            ends.append(ours)
            ranks.append(process)
        try:
            return [_answer(rank, end) for rank, end in enumerate(ends)]
        finally:
            for process in ranks:
                process.kill()
                process.join()


@contextlib.contextmanager
def card(capability: int = 12, *, is_reachable: bool = True, **functions: object) -> Iterator[None]:
    """A card on this rank, as far as a set-up looks; ``functions`` are put in the place of those of their names."""
    faked = {
        "torch.cuda.set_device": lambda _: None,
        "torch.cuda.get_device_capability": lambda _: (capability, 0),
        "torch.cuda.can_device_access_peer": lambda *_: is_reachable,
        **functions,
    }
    with contextlib.ExitStack() as stack:
        for name, function in faked.items():
            stack.enter_context(mock.patch(name, function))
        yield


def refuse(*_: object, **__: object) -> None:
    """Stands for what fails on a rank."""
    raise RuntimeError("no memory")


def _run(rank: int, count: int, store: Path, function: Callable[[int], object], answer) -> None:
    try:
        dist.init_process_group(
            "gloo", f"file://{store}", rank=rank, world_size=count, timeout=timedelta(seconds=SECONDS)
        )
        answer.send((True, function(rank)))
    except BaseException:  # noqa: BLE001 - the test is told of everything that ends a rank
        answer.send((False, traceback.format_exc()))
    # A rank that leaves takes its group down, under the others' feet too.
    answer.recv()


def _answer(rank: int, end) -> object:
    if not end.poll(SECONDS):
        raise AssertionError(f"rank {rank} still waits for the others")
    is_well, answer = end.recv()
    if not is_well:
        raise AssertionError(f"rank {rank}: {answer}")
    return answer
