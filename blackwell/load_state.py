"""What a server says of how its speculation follows the load."""

from collections.abc import Mapping
from dataclasses import dataclass

from blackwell import load_policy

KEY = "speculative_load_state"
FIELD = "speculative_disable_batch_threshold"


@dataclass(frozen=True)
class LoadState:
    """The policy in force, and where the server is in it.

    ``policy``: tiers, margin in requests and dwell in decode rounds, as load_policy.resolved returns them. ``steps``:
    draft steps of the round now. ``prepared``: the numbers of them that the server was started for, none other can be.
    ``forced``: draft steps that somebody has set whatever the load, None if nobody has. ``rounds``: decode rounds by
    draft steps, and ``switches`` between tiers, since the server was started.
    """

    policy: dict
    steps: int
    prepared: tuple[int, ...]
    forced: int | None
    switches: int
    rounds: dict


def parse(information: Mapping) -> LoadState | None:
    """The state by the body of /server_info; None where the server reports none, or none that can be read."""
    ranks = [rank for rank in information.get("internal_states") or () if isinstance(rank, dict)]
    found = next((rank[KEY] for rank in ranks if KEY in rank), {})
    try:
        return LoadState(
            policy={name: found[name] for name in ("tiers", "margin", "dwell")},
            steps=found["steps"],
            prepared=tuple(found["captured_steps"]),
            forced=found["forced_steps"],
            switches=found["switches"],
            rounds=found["rounds"],
        )
    except (KeyError, TypeError):
        return None


def line(state: LoadState) -> str:
    """The policy, and the draft steps now, in words."""
    policy = load_policy.described(state.policy)
    if state.forced is None:
        return f"{policy}; now {load_policy.counted(state.steps)}"
    forced = load_policy.counted(state.forced)
    return f"FORCED to {forced} whatever the load, in place of {policy}; now {load_policy.counted(state.steps)}"


def without(information: Mapping) -> str:
    """What a server does that reports no state, by the body of /server_info."""
    if not information.get("speculative_algorithm"):
        return "none"
    return (
        f"{load_policy.counted(information.get('speculative_num_steps') or 0)} at any load, no threshold and no policy"
    )


def summary(information: Mapping) -> str:
    """How the server's speculation follows the load, by the body of /server_info."""
    state = parse(information)
    return without(information) if state is None else line(state)
