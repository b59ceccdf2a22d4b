"""What an inventory says of speculation that follows the load: a threshold, or a policy, or neither."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from blackwell import load_policy, load_state, role_defaults
from blackwell.host_errors import HostError

THRESHOLD = "sglang_server_speculative_disable_batch_threshold"
POLICY = "sglang_server_speculative_load_policy"
ROLE = "sglang_server"

LIVE_THRESHOLD, LIVE_POLICY = load_state.FIELD, "speculative_load_policy"
"""What the server calls them, in /set_internal_state and /server_info."""


@dataclass(frozen=True)
class Setting:
    """``threshold``: largest batch that still speculates; 0 and no policy speculate always. One of the two at most."""

    threshold: int = 0
    policy: Mapping = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, object]:
        """The inventory's variables, both: the one that is not used is said too, whatever a group says of it."""
        return {THRESHOLD: self.threshold, POLICY: dict(self.policy)}

    @property
    def change(self) -> dict[str, object]:
        """What /set_internal_state takes for it."""
        return {LIVE_POLICY: dict(self.policy)} if self.policy else {LIVE_THRESHOLD: self.threshold}

    @property
    def asked(self) -> dict | None:
        """The policy, or the one that the threshold is short for; None without either."""
        return dict(self.policy) or (load_policy.of_threshold(self.threshold) if self.threshold else None)


def of(where: str, variables: Mapping[str, object]) -> Setting:
    """The setting by a host's variables; ``where`` names host or file in errors.

    Raises HostError if one is not what it should be, as a template is that only a play resolves, or both are used.
    """
    threshold, policy = variables.get(THRESHOLD, 0), variables.get(POLICY, {})
    if isinstance(threshold, str) and threshold.isdecimal():
        threshold = int(threshold)
    if type(threshold) is not int or threshold < 0:
        raise HostError(f"{where}: {THRESHOLD} is {threshold!r}, not a number of requests from 0")
    if not isinstance(policy, dict):
        raise HostError(f"{where}: {POLICY} is {policy!r}, not a policy")
    if threshold and policy:
        raise HostError(f"{where}: {THRESHOLD} and {POLICY} both say at which load the server speculates")
    return Setting(threshold, policy)


def draft_steps(variables: Mapping[str, object]) -> int | None:
    """The draft steps of a host's server by its variables; None if only a play can resolve them."""
    return role_defaults.number(variables, ROLE, "sglang_server_speculative_num_steps")


def most_requests(variables: Mapping[str, object]) -> int | None:
    """How many requests a host's server decodes at once, by its variables; None if only a play can resolve it."""
    return role_defaults.number(variables, ROLE, "sglang_server_max_running_requests")


def problems(setting: Setting, steps: int | None, most: int | None) -> list[str]:
    """What is wrong with a setting, a sentence each without a full stop; empty if nothing is.

    ``steps``: draft steps of the server; ``most``: requests that it decodes at once; None if unknown.
    """
    if setting.policy:
        policy = dict(setting.policy)
        return load_policy.malformed(policy) if steps is None else load_policy.problems(policy, steps, most)
    if setting.threshold and most is not None and setting.threshold >= most:
        beyond = f"the threshold {setting.threshold} is not below the {most} requests that run at once"
        return [f"{beyond}, so speculation would never be switched off: lower it, or set 0 to speculate always"]
    return []


def started(information: Mapping) -> Setting:
    """What a server was started with, by the body of /server_info, whatever was changed since."""
    threshold, policy = information.get(LIVE_THRESHOLD) or 0, information.get(LIVE_POLICY)
    try:
        found = json.loads(policy) if isinstance(policy, str) else policy
    except ValueError:
        found = None
    return Setting(threshold, found) if isinstance(found, dict) else Setting(threshold)


def resolved(setting: Setting, steps: int) -> dict:
    """The tiers, margin and dwell of a setting, as the server reports them; one tier where it speculates always."""
    return load_policy.resolved(setting.asked or {"version": 1, "tiers": [{"steps": load_policy.FULL}]}, steps)


def described(setting: Setting, steps: int) -> str:
    """A setting in words, for a server with so many draft steps; it must be right."""
    if setting.asked is None:
        return f"{load_policy.counted(steps)} at any load, no threshold and no policy"
    return load_policy.described(resolved(setting, steps))
