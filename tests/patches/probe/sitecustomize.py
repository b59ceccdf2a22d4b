"""Run by Python at the start of every process of the server under test: steers its decode rounds from files.

``STEER`` names a directory. ``schedule`` in it is a JSON list with the draft steps of the next decode rounds, taken up
once; a list in the list is repeated for ever. While ``cold`` is there, nothing keeps the draft's KV cache up in plain
rounds; ``full-extend``, there when the server starts, has the full draft extend keep it up.
"""

import json
import os
from pathlib import Path

from sglang_cpu_standin import hooks

STEER = Path(os.environ["STEER"])


def steer_rounds(module):
    original, left = module.TierController.decide, []

    def decide(controller, batch_size):
        schedule = STEER / "schedule"
        if schedule.exists():
            left[:] = json.loads(schedule.read_text())
            schedule.unlink()
        if not left:
            return original(controller, batch_size)
        if isinstance(left[0], list):
            left[:0] = left[0]
        before, controller.forced_steps = controller.forced_steps, left.pop(0)
        try:
            return original(controller, batch_size)
        finally:
            controller.forced_steps = before

    module.TierController.decide = decide


def steer_draft_kv(module):
    write = module.DraftKVWriter.write
    module.DraftKVWriter.write = lambda *arguments: None if (STEER / "cold").exists() else write(*arguments)
    if (STEER / "full-extend").exists():
        module.DraftKVWriter.of = classmethod(lambda _class, _runner: None)


hooks.arm(
    {
        "sglang.srt.speculative.load_policy": steer_rounds,
        "sglang.srt.speculative.draft_kv": steer_draft_kv,
    }
)
