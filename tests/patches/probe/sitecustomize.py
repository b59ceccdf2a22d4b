"""Run by Python at the start of every process of the server under test: steers its decode rounds, and notes them.

``/set_internal_state`` takes a list for ``speculative_force_steps``: the draft steps of the next decode rounds, after
which the policy decides; a list in the list is repeated for ever. Like any change of the live state it reaches all
tensor-parallel ranks before the same round.

``STEER`` names a directory of files. While ``cold`` is there, nothing keeps the draft's KV cache up in plain rounds;
``full-extend``, there when the server starts, has the full draft extend keep it up. With ``decisions``, there when the
server starts, each rank notes its rounds in ``decisions-<rank>``, which ``decisions.py`` reads.

Each of ``COSTS`` takes one saving of the rounds with few draft steps out while its file is there, so that its worth can
be measured.
"""

import dataclasses
import json
import os
import zlib
from pathlib import Path

from sglang_cpu_standin import hooks

STEER = Path(os.environ["STEER"])


def is_there(name):
    return (STEER / name).exists()


def steer_rounds(module):
    controller, key = module.TierController, module.FORCE_KEY
    plan, decide = controller.plan, controller.decide

    def plan_rounds(self, changes):
        steps = changes.get(key)
        if not isinstance(steps, list):
            return plan(self, changes)
        others = {name: value for name, value in changes.items() if name != key}
        return dataclasses.replace(plan(self, others), forced_steps=list(steps))

    def decide_planned(self, batch_size):
        left = self.forced_steps
        if not isinstance(left, list):
            return decide(self, batch_size)
        if left and isinstance(left[0], list):
            left[:0] = left[0]
        self.forced_steps = left.pop(0) if left else None
        try:
            return decide(self, batch_size)
        finally:
            self.forced_steps = left or None

    controller.plan, controller.decide = plan_rounds, decide_planned


def note_decisions(module):
    tiers, controller = module.SpecTiers, module.TierController
    start, choose, apply = tiers.__init__, tiers.choose, controller.apply

    def start_noting(self, worker):
        start(self, worker)
        # A line at a time, so that a rank that hangs has written all that it decided.
        file = (STEER / f"decisions-{worker.tp_rank}").open("w", buffering=1)
        self.controller.note = lambda **decision: file.write(json.dumps(decision) + "\n")

    def choose_and_note(self, batch):
        choose(self, batch)
        self.controller.note(
            round=batch.forward_mode.name.lower(),
            requests=len(batch.reqs),
            steps=batch.spec_steps,
            of=zlib.crc32(" ".join(req.rid for req in batch.reqs).encode()),
            tokens=batch.seq_lens_sum,
        )

    def apply_and_note(self, change):
        apply(self, change)
        self.note(forced=self.forced_steps, policy=zlib.crc32(json.dumps(self.policy.as_json()).encode()))

    tiers.__init__, tiers.choose, controller.apply = start_noting, choose_and_note, apply_and_note


def steer_draft_kv(module):
    write = module.DraftKVWriter.write
    module.DraftKVWriter.write = lambda *arguments: None if is_there("cold") else write(*arguments)
    if is_there("full-extend"):
        module.DraftKVWriter.of = classmethod(lambda _class, _runner: None)


COSTS = ("write-each-round", "draft-prefill", "host-waits", "eager-rounds", "eager-extend")
WRITE_EACH_ROUND, DRAFT_PREFILL, HOST_WAITS, EAGER_ROUNDS, EAGER_EXTEND = COSTS


def add_costs(module):
    tiers, backlog = module.SpecTiers, module.DraftKVBacklog
    can_fill, is_due, decode = tiers.can_fill, backlog.is_due.fget, tiers.decode_plainly
    tiers.can_fill = lambda self, batch: not is_there(DRAFT_PREFILL) and can_fill(self, batch)
    backlog.is_due = property(lambda self: is_there(WRITE_EACH_ROUND) or is_due(self))

    def decode_plainly(self, batch):
        result = decode(self, batch)
        result.next_draft_input.lens_on_host = not is_there(HOST_WAITS)
        return result

    tiers.decode_plainly = decode_plainly


def run_rounds_eagerly(module):
    runner = module.CudaGraphRunner
    can_run = runner.can_run
    runner.can_run = lambda self, batch: not (self.is_plain_decode and is_there(EAGER_ROUNDS)) and can_run(self, batch)


def run_extend_eagerly(module):
    runner = module.EAGLEDraftExtendCudaGraphRunner
    can_run = runner.can_run
    runner.can_run = lambda self, batch: not is_there(EAGER_EXTEND) and can_run(self, batch)


def change_tiers(module):
    add_costs(module)
    if is_there("decisions"):
        note_decisions(module)


hooks.arm(
    {
        "sglang.srt.model_executor.cuda_graph_runner": run_rounds_eagerly,
        "sglang.srt.speculative.eagle_draft_extend_cuda_graph_runner": run_extend_eagerly,
        "sglang.srt.speculative.spec_tiers": change_tiers,
        "sglang.srt.speculative.load_policy": steer_rounds,
        "sglang.srt.speculative.draft_kv": steer_draft_kv,
    }
)
