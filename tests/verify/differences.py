"""Says in sentences how what a host has differs from what is asked of it."""

import json
from collections.abc import Mapping

from blackwell import load_policy, load_state

DEPLOY = "deploy with site.yml"
REBUILD = "set sglang_release_revision and deploy, which builds the release again"


def source_differences(found: Mapping[str, list[str]], patched: Mapping[str, str]) -> list[str]:
    """Files that are not those of the release, by the output of compare_sources.py; ``patched``: the series' files."""
    kinds = {
        "edited": lambda name: f"differs from {'the patch series' if name in patched else 'the stock package'}",
        "stray": lambda _: "is neither in the stock package nor in the patch series",
        "missing": lambda _: "is missing",
    }
    return [f"{name} {say(name)}: {REBUILD}" for kind, say in kinds.items() for name in found[kind]]


def option_differences(added: Mapping[str, Mapping], found: Mapping) -> list[str]:
    """Options that the patch series adds and server_args.py lacks or has otherwise.

    ``added``: the manifest's ``options``, each with its default and argparse's type or action; ``found``: the output of
    read_server_args.py.
    """
    return [
        f"{option} {problem} in {found['path']}: {REBUILD}"
        for option, asked in added.items()
        for problem in _of_option(option, asked, found)
    ]


def _of_option(option: str, asked: Mapping, found: Mapping) -> list[str]:
    field = option.removeprefix("--").replace("-", "_")
    default, keywords = found["fields"].get(field), found["options"].get(option)
    problems = []
    if default is None:
        problems.append(f"has no field {field} of ServerArgs")
    elif default != repr(asked["default"]):
        problems.append(f"has the default {default} as the field {field}, not {asked['default']!r}")
    if keywords is None:
        return [*problems, "is no argument of add_cli_args"]
    # A switch may leave its default to argparse.
    wanted = {"type": asked["type"]} if "type" in asked else {"action": repr(asked["action"])}
    wanted |= {"default": f"ServerArgs.{field}"} if "type" in asked or "default" in keywords else {}
    return problems + [
        f"has {name}={keywords.get(name, 'nothing')}, not {value}"
        for name, value in wanted.items()
        if keywords.get(name) != value
    ]


def load_differences(asked: Mapping | None, information: Mapping, host: str) -> list[str]:
    """How a running server's speculation follows its load, against the policy asked for (None: not at all).

    ``information``: the body of /server_info.
    """
    restart = "it was changed while the server ran, and systemctl restart sglang returns to what is deployed"
    reported = any(load_state.KEY in rank for rank in information.get("internal_states", ()) if isinstance(rank, dict))
    state = load_state.parse(information)
    if reported and state is None:
        said = [rank.get(load_state.KEY) for rank in information["internal_states"]]
        return [f"{host} reports a {load_state.KEY} that cannot be read: {json.dumps(said)}"]
    if state is None:
        absent = f"{host} reports no {load_state.KEY}, asked for is: "
        return [] if asked is None else [absent + load_policy.described(asked)]
    problems = []
    if asked is None:
        problems.append(f"{host} speculates by {load_policy.described(state.policy)}, which nobody asks for: {restart}")
    elif state.policy != asked:
        problems.append(
            f"{host} speculates by {load_policy.described(state.policy)}, asked for is "
            f"{load_policy.described(asked)}: {restart}"
        )
    if state.forced is not None:
        problems.append(
            f"{host} has its draft steps forced to {load_policy.counted(state.forced)} whatever the load: "
            f"fab -H {host} speculation --release lets them follow it again"
        )
    return problems


def tree_difference(series: Mapping, information: Mapping, host: str) -> list[str]:
    """Whether a running server reports the source tree that the patch series makes; ``series`` is the intent's."""
    reported = information.get("patch_tree")
    if not series["patched"] or reported == series["tree"]:
        return []
    return [
        f"{host} runs from the source tree {reported or 'unknown'}, the patch series makes {series['tree']}: {DEPLOY}"
    ]
