"""Checks and resolves how the server's speculation follows its load."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from blackwell import load_policy


def _plain(value: object) -> object:
    # Ansible's containers, tagged numbers and YAML's dates are not those of JSON.
    return json.loads(json.dumps(value, default=str))


def load_policy_problems(policy: object, num_steps: int, most_requests: int) -> list[str]:
    """What is wrong with a policy, a sentence each without a full stop; empty if nothing is."""
    return load_policy.problems(_plain(policy), num_steps, most_requests)


def load_policy_resolved(policy: object, threshold: int, num_steps: int) -> dict[str, Any] | None:
    """The tiers, margin and dwell that a policy or else a threshold asks of the server; None without either.

    Raises AnsibleFilterError if the policy is not one.
    """
    asked = _plain(policy) or (load_policy.of_threshold(threshold) if threshold > 0 else None)
    if asked is None:
        return None
    problems = load_policy.problems(asked, num_steps)
    if problems:
        raise AnsibleFilterError(f"sglang_server_speculative_load_policy: {'; '.join(problems)}.")
    return load_policy.resolved(asked, num_steps)


class FilterModule:
    """Registers the filters with Ansible."""

    def filters(self) -> dict[str, Any]:
        """Filter name to function."""
        return {"load_policy_problems": load_policy_problems, "load_policy_resolved": load_policy_resolved}
