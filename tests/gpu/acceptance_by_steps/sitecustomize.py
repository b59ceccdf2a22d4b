"""Run by Python at the start of every process of a server: simulates an acceptance that falls with the draft steps.

Each draft token is accepted with the same probability as the one before it, and so that 3 steps give 2.88 tokens a
round, the model's own included. SGLang's own simulation gives the same number to any steps, up to one more than these.
"""

from sglang_cpu_standin import hooks

PROBABILITY = 0.7841


def length(steps: int) -> float:
    """Tokens of a round with so many draft steps: 1.78, 2.40 and 2.88 for 1, 2 and 3."""
    return sum(PROBABILITY**step for step in range(steps + 1))


def by_steps(original, *, spec_steps, simulate_acc_len, **arguments):
    """Simulate the length of these steps, not the one of the environment."""
    del simulate_acc_len
    return original(spec_steps=spec_steps, simulate_acc_len=length(spec_steps), **arguments)


def patch(module):
    """Have the rounds of speculation simulate by their steps."""
    hooks.wrap(module, "generate_simulated_accept_index", by_steps)


hooks.arm({"sglang.srt.speculative.eagle_info_v2": patch})
