"""What a sweep has found, in files beside its points: the policies, and whether they hold."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from blackwell.bench import durable, words
from blackwell.bench.policy import Derived

from . import proof
from .plan import Plan
from .proof import Level

POLICY, PROOF = "policy.json", "proof.json"


def write(directory: Path, plan: Plan, policies: Mapping[tuple[str, int], Derived], levels: Sequence[Level]) -> None:
    """Write the policy of the first settings and context, those of the ``others``, and the proof of all of them."""
    if not policies:
        return
    found = [_policy(settings, context, derived) for (settings, context), derived in policies.items()]
    _write(directory / POLICY, {**found[0], "others": found[1:]})
    told = {
        "margin": plan.margin,
        "verdict": proof.verdict(plan, levels),
        "levels": [level.content() for level in levels],
    }
    _write(directory / PROOF, told)


def _policy(settings: str, context: int, derived: Derived) -> dict:
    return {
        "settings": settings,
        "context": context,
        "policy": derived.policy,
        "crossover": asdict(derived.crossover),
        "explained": words.explained(derived),
    }


def _write(file: Path, content: object) -> None:
    durable.replace(file, f"{json.dumps(content, indent=1)}\n".encode())
