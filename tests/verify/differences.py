"""Says in sentences how what a host has differs from what is asked of it."""

import json
from collections.abc import Mapping

from blackwell import load_policy, load_state

DEPLOY = "deploy with site.yml"
REBUILD = "set sglang_release_revision and deploy, which builds the release again"
# How the variables begin that programs below the server read as settings.
SETTINGS = ("CUDA_", "FLASHINFER_", "GLOO_", "HF_", "NCCL_", "OMP_", "PYTORCH_", "SGLANG_", "SGL_", "TORCH_", "TRITON_")
STRANGE = "which nobody asks for: systemctl cat sglang and systemctl show-environment may tell who sets it"


def environment_differences(asked: Mapping[str, object], running: Mapping[str, str]) -> list[str]:
    """How the environment of a process is not what is asked for; by names alone, as a value may be a secret.

    A setting that nobody asks for, such as one of systemd's manager or of a drop-in, is a difference too.
    """
    different = sorted(name for name, value in asked.items() if running.get(name) != str(value))
    strange = sorted(name for name in running if name.startswith(SETTINGS) and name not in asked)
    return [
        *(
            f"the process has {'another' if name in running else 'no'} {name} in its environment: {DEPLOY}"
            for name in different
        ),
        *(f"the process has {name} in its environment, {STRANGE}" for name in strange),
    ]


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
