"""One rank of an all-reduce. Runs on the host, where it is sent as text: the standard library and torch only.

Prints how far it has come on its standard output, one JSON object a line.
"""

import json
import math
import sys
import time

import torch
from torch import distributed

BACKENDS = {"cuda": "nccl", "cpu": "gloo"}
BATCHES, BATCH_SECONDS, MOST_CALLS = 5, 0.2, 2000
WARM_UP = 3

PERIOD = 251
"""A prime: what a rank holds repeats with a period that no chunk of a collective has."""


def tell(stage: str, **found: object) -> None:
    """Say what was just reached."""
    sys.stdout.write(f"{json.dumps({'stage': stage, **found})}\n")
    sys.stdout.flush()


def held(rank: int, count: int) -> torch.Tensor:
    """What a rank holds: ``count`` whole numbers, whose sums over a few hundred ranks float32 has exactly."""
    return (torch.arange(count) % PERIOD * (rank + 1)).to(torch.float32)


def summed(total: int, count: int) -> torch.Tensor:
    """What all ranks are to have afterwards."""
    return (torch.arange(count) % PERIOD * (total * (total + 1) // 2)).to(torch.float32)


def settle(device: torch.device) -> None:
    """Wait until the device has done what it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def call_seconds(tensor: torch.Tensor, count: int) -> float:
    """Seconds of one all-reduce, by the time that ``count`` take."""
    settle(tensor.device)
    begun = time.monotonic()
    for _ in range(count):
        distributed.all_reduce(tensor)
    settle(tensor.device)
    return (time.monotonic() - begun) / count


def median_seconds(tensor: torch.Tensor) -> float:
    """Seconds of one all-reduce, the median of some batches; every rank makes as many calls."""
    # What is summed again and again would overflow, and numbers that are none may take another time.
    tensor.zero_()
    call_seconds(tensor, WARM_UP)
    guess = torch.tensor([call_seconds(tensor, WARM_UP)], device=tensor.device)
    distributed.all_reduce(guess, op=distributed.ReduceOp.MAX)
    count = max(1, min(MOST_CALLS, int(BATCH_SECONDS / guess.item())))
    return sorted(call_seconds(tensor, count) for _ in range(BATCHES))[BATCHES // 2]


def opened(kind: str, rank: int, total: int) -> torch.device:
    """The device of a rank; tells what it is."""
    if kind == "cpu":
        return torch.device(kind)
    device = torch.device(kind, rank)
    torch.cuda.set_device(device)
    tell(
        "opened its GPU",
        gpu=torch.cuda.get_device_name(device),
        nccl=".".join(map(str, torch.cuda.nccl.version())),
        peers=[other for other in range(total) if other != rank and torch.cuda.can_device_access_peer(rank, other)],
    )
    return device


def main(rank: int, total: int, kind: str, store: str, sizes: list[int]) -> None:
    """Join the others through the file ``store``, and sum tensors of so many bytes with them."""
    tell("imported torch", torch=torch.__version__)
    device = opened(kind, rank, total)
    distributed.init_process_group(BACKENDS[kind], init_method=f"file://{store}", rank=rank, world_size=total)
    distributed.all_reduce(torch.ones(1, device=device))
    settle(device)
    tell("summed one number")
    for size in sizes:
        count = math.ceil(size / 4)
        tensor = held(rank, count).to(device)
        distributed.all_reduce(tensor)
        wrong = int((tensor.cpu() != summed(total, count)).sum())
        tell(f"summed {size} bytes", size=size, wrong=wrong, seconds=median_seconds(tensor))
    distributed.barrier()
    tell("done")
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], json.loads(sys.argv[5]))
