"""How the load policy that a server runs with, the one it was started with, and the one of its inventory differ."""

from collections.abc import Mapping

from blackwell import load_policy, load_state, playbooks, speculation_setting
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory
from blackwell.speculation_setting import Setting


def differences(host: Host, known: Inventory, reported: Mapping) -> list[tuple[str, str]]:
    """How the policy in force, the one at the start and the inventory's differ, and what would mend each of it.

    ``reported``: the body of /server_info. Empty where the release has no load policies or nothing is drafted.
    """
    if load_state.FIELD not in reported or not reported.get("speculative_algorithm"):
        return []
    steps = reported.get("speculative_num_steps") or 0
    state = load_state.parse(reported)
    begun, asked = _resolved(speculation_setting.started(reported), steps), _of_inventory(host, known, steps)
    live = state.policy if state else begun
    if begun is None:
        return []
    if asked is not None and asked != begun:
        what = f"the server was started with {_words(begun)}, the inventory asks for {_words(asked)}"
        return [(f"{what}{_meanwhile(live, begun, asked)}", f"{playbooks.deploy(host)} deploys that, with a restart")]
    if live != begun:
        what = f"the server was changed while it ran, to {_words(live)}, and was started with {_words(begun)}"
        return [(what, "on the host, systemctl restart sglang returns to that")]
    return []


def _meanwhile(live: Mapping, begun: Mapping, asked: Mapping) -> str:
    if live == asked:
        return ", which is live already"
    return "" if live == begun else f", and {_words(live)} is live"


def _of_inventory(host: Host, known: Inventory, steps: int) -> dict | None:
    try:
        return _resolved(speculation_setting.of(host.name, known.hosts[host.name]), steps)
    except (HostError, KeyError):
        return None


def _resolved(setting: Setting, steps: int) -> dict | None:
    """The policy of a setting as the server reports it; None if it cannot be one."""
    return None if speculation_setting.problems(setting, steps, None) else speculation_setting.resolved(setting, steps)


def _words(policy: Mapping) -> str:
    return load_policy.described(policy)
