"""Run by Python at the start of every process of the server under test: notes which worker serves which event loop."""

import os
import traceback
from pathlib import Path

from sglang_cpu_standin import hooks

NOTES = Path(os.environ["STANDIN_PROBE"])
"""File that one line is appended to for each kind of batch and caller."""


def note_batches(module):
    seen = set()

    def forward(original, worker, batch):
        callers = {frame.name for frame in traceback.extract_stack()}
        loop = "event_loop_overlap" if "event_loop_overlap" in callers else "another caller"
        line = f"{type(worker).__name__} {batch.forward_mode.name} {loop}\n"
        if line not in seen:
            seen.add(line)
            with NOTES.open("a") as file:
                file.write(line)
        return original(worker, batch)

    original = module.EAGLEWorkerV2.forward_batch_generation
    module.EAGLEWorkerV2.forward_batch_generation = lambda worker, batch: forward(original, worker, batch)


hooks.arm({"sglang.srt.speculative.eagle_worker_v2": note_batches})
