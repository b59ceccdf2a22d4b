"""Run by Python at the start of every process of the server under test: steers its decode rounds from files.

``STEER`` names a directory. ``schedule`` in it is a JSON list with the draft steps of the next decode rounds, taken up
once; a list in the list is repeated for ever. While ``cold`` is there, nothing keeps the draft's KV cache up in plain
rounds; ``full-extend``, there when the server starts, has the full draft extend keep it up.

Each of ``COSTS`` takes one saving of plain rounds out while its file is there, so that its worth can be measured.
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


COSTS = ("write-each-round", "draft-prefill", "host-waits")


def is_there(name):
    return (STEER / name).exists()


def add_costs(module):
    tiers, backlog = module.SpecTiers, module.DraftKVBacklog
    can_fill, is_due, decode = tiers.can_fill, backlog.is_due.fget, tiers.decode_plainly
    write_each_round, draft_prefill, host_waits = COSTS
    tiers.can_fill = lambda self, batch: not is_there(draft_prefill) and can_fill(self, batch)
    backlog.is_due = property(lambda self: is_there(write_each_round) or is_due(self))

    def decode_plainly(self, batch):
        result = decode(self, batch)
        result.next_draft_input.lens_on_host = not is_there(host_waits)
        return result

    tiers.decode_plainly = decode_plainly


hooks.arm(
    {
        "sglang.srt.speculative.spec_tiers": add_costs,
        "sglang.srt.speculative.load_policy": steer_rounds,
        "sglang.srt.speculative.draft_kv": steer_draft_kv,
    }
)
