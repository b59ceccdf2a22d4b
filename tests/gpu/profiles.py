"""Where the time of forward passes goes: what the torch profiler of a running server saw on the GPU."""

import gzip
import json
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from server import ServerError

PROFILED_SECONDS = 60
LONGEST = 15
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def await_trace(out: Path) -> list[dict]:
    """Events of the one trace that the server writes into ``out``; raise ServerError if it writes none."""
    deadline = time.monotonic() + PROFILED_SECONDS
    while time.monotonic() < deadline:
        for trace in out.glob("*.trace.json.gz"):
            # Only half of it may be there.
            with suppress(EOFError, ValueError):
                return read(trace)
        time.sleep(0.2)
    raise ServerError(f"no profile in {out}")


def read(trace: Path) -> list[dict]:
    """Events of a trace; raises EOFError or ValueError while it is still being written."""
    with gzip.open(trace, "rt") as file:
        return json.load(file)["traceEvents"]


PREFILL_ATTENTION, DECODE_ATTENTION = "_fwd_kernel", "_fwd_grouped_kernel_stage1"
"""Names of triton's kernels, one of them in each layer of a model with grouped heads."""


def of_wave(events: Iterable[Mapping], layers: int) -> dict[str, dict]:
    """`summary` of the ``prefill`` of a wave as a whole, and of each round of its ``decode``.

    Decoding begins with the attention of the first round after the last prefill.
    """
    done = sorted((event for event in events if event.get("cat") in ON_GPU), key=lambda event: float(event["ts"]))
    last = max((place for place, event in enumerate(done) if event["name"] == PREFILL_ATTENTION), default=0)
    decoding = [place for place in range(last, len(done)) if done[place]["name"] == DECODE_ATTENTION]
    begin = decoding[0] if decoding else len(done)
    rounds = max(1, round(len(decoding) / layers))
    return {"prefill": summary(done[:begin], 1), "decode": {"rounds": rounds, **summary(done[begin:], rounds)}}


def summary(events: Iterable[Mapping], rounds: int) -> dict:
    """What the GPU did in each of ``rounds`` rounds, on average.

    ``busy_us`` is the time in which anything ran, ``span_us`` that from the first start to the last end, ``launches``
    the number of kernels and copies; ``kernels`` has ``[name, launches, microseconds]`` of the ``LONGEST`` ones.
    """
    done = sorted(
        (float(event["ts"]), float(event["ts"]) + float(event["dur"]), str(event["name"]))
        for event in events
        if event.get("cat") in ON_GPU
    )
    if not done:
        return {"busy_us": 0.0, "span_us": 0.0, "launches": 0.0, "kernels": []}
    busy, until = 0.0, done[0][0]
    for begin, end, _ in done:
        busy += max(0.0, end - max(begin, until))
        until = max(until, end)
    named = groupby(sorted(done, key=lambda item: item[2]), key=lambda item: item[2])
    kernels = [(name, [end - begin for begin, end, _ in group]) for name, group in named]
    return {
        "busy_us": round(busy / rounds, 1),
        "span_us": round((until - done[0][0]) / rounds, 1),
        "launches": round(len(done) / rounds, 1),
        "kernels": sorted(
            ([name[:120], round(len(took) / rounds, 2), round(sum(took) / rounds, 1)] for name, took in kernels),
            key=lambda row: -row[2],
        )[:LONGEST],
    }
