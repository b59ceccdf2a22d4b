"""The servers that are compared: without speculation, with, and patched; all of them on the same cards at once."""

import importlib.machinery
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scenarios import SIMULATED, dense_options, dense_speculation
from server import STEPS, Server, ServerError
from speed_plan import KV_TOKENS, MOST_REQUESTS

from blackwell.bench import crossover
from blackwell.bench.points import DYNAMIC

BASE, STOCK, PATCHED = "base", "stock", "patched"
SERVER_OF: Mapping[str, str] = {"base": BASE, "full_stock": STOCK}
"""The server of an arm; every other one is a setting of the patched server."""

FORCED: Mapping[str, int] = {"full": STEPS, "plain": 0, "reduced1": 1, "reduced2": 2}

POLICY = (
    f'{{"version": 1, "tiers": [{{"max_batch": 8, "steps": {STEPS}}}, {{"max_batch": 16, "steps": 2}}, '
    '{"max_batch": 24, "steps": 1}, {"steps": 0}]}'
)
"""Has every tier captured; the bounds do not matter, since each arm sets its own."""

PORTS_APART = 2000
"""A server takes further ports above its own."""

BY_STEPS = Path(__file__).parent / "acceptance_by_steps"


@dataclass(frozen=True)
class Settings:
    """``stock``: PYTHONPATH of the unpatched package. ``tp``: cards. ``memory``: share of what is free on a card.

    ``by_steps``: fewer draft steps accept less. Otherwise each round of the simulation gives 2.88 tokens, or one more
    than there are steps if that is less. ``freeze_gc``: as the deployed service does.
    """

    stock: str
    tp: int = 1
    memory: float = 0.8
    port: int = 21000
    by_steps: bool = False
    freeze_gc: bool = True


def server_of(arm: str) -> str:
    """The server that an arm is measured on."""
    return SERVER_OF.get(arm, PATCHED)


def made(settings: Settings, wanted: Sequence[str], models: Path, logs: Path) -> dict[str, Server]:
    """The wanted ones of the three servers, not started yet; their logs go into ``logs``."""
    options = {name: _options(name, settings, models) for name in (BASE, STOCK, PATCHED)}
    return {
        name: Server(
            logs / f"{name}.log",
            settings.port + PORTS_APART * number,
            options[name],
            _environment(name, settings, models),
            most_requests=MOST_REQUESTS,
            tp=settings.tp,
            freeze_gc=settings.freeze_gc,
        )
        for number, name in enumerate(options)
        if name in wanted
    }


def _options(name: str, settings: Settings, models: Path) -> tuple[str, ...]:
    # A share of what is free when a server starts: all of them start at once, and the KV cache has its own bound.
    dense = dense_options(models, memory=str(settings.memory), draft=False)
    # A server that has nothing to do would otherwise keep a processor busy that another one's launches need.
    options = (*dense, "--max-total-tokens", str(KV_TOKENS), "--sleep-on-idle")
    policy = ("--speculative-load-policy", POLICY) if name == PATCHED else ()
    return options if name == BASE else (*options, *dense_speculation(models), *policy)


def _environment(name: str, settings: Settings, models: Path) -> dict[str, str]:
    path = [os.environ.get("PYTHONPATH", "") if name == PATCHED else settings.stock]
    if name == BASE:
        return {"PYTHONPATH": path[0]}
    hooks = [str(BY_STEPS), str(models / "hooks")] if settings.by_steps else []
    return {**SIMULATED, "PYTHONPATH": os.pathsep.join([*hooks, *path])}


def checked(name: str, server: Server, patch_tree: str) -> dict:
    """What is kept of a server that has started.

    Raises ServerError if it does not decode as many requests at once as it was told to.
    """
    state = server.state()
    most = state["effective_max_running_requests_per_dp"]
    if most != MOST_REQUESTS:
        raise ServerError(f"{name} decodes {most} requests at once, not {MOST_REQUESTS}: it would hold the load back")
    return {
        "start_s": round(server.start_seconds, 1),
        "tiers": server.tiers(),
        "memory_usage": state["memory_usage"],
        "max_running_requests": most,
        "patch_tree": patch_tree,
    }


def change(arm: str, threshold: int | None) -> dict:
    """The live settings of an arm of the patched server; ``threshold`` is what the dynamic one goes by."""
    return _by_load(threshold) if arm == DYNAMIC else {"speculative_force_steps": FORCED[arm]}


def _by_load(threshold: int | None) -> dict:
    released = {"speculative_force_steps": None}
    if threshold == crossover.NEVER:
        # To the server, a threshold of 0 speculates always.
        return released | {"speculative_load_policy": {"version": 1, "tiers": [{"steps": 0}]}}
    return released | {"speculative_disable_batch_threshold": threshold or 0}


def without_hysteresis(threshold: int) -> dict:
    """The live settings with which draft steps come back in the first round in which the batch is small enough."""
    tiers = [{"max_batch": threshold, "steps": "full"}, {"steps": 0}]
    policy = {"version": 1, "tiers": tiers, "margin": 0, "dwell": 1}
    return {"speculative_force_steps": None, "speculative_load_policy": policy}


def package(path: str) -> Path | None:
    """The directory of the SGLang package that a PYTHONPATH finds; None if it finds none."""
    places = [place for place in path.split(os.pathsep) if place]
    spec = importlib.machinery.PathFinder.find_spec("sglang", places)
    found = list(spec.submodule_search_locations or ()) if spec else []
    return Path(found[0]) if found else None


def is_patched(folder: Path) -> bool:
    """Whether a package knows load policies."""
    return (folder / "srt" / "speculative" / "load_policy.py").is_file()


def tree(folder: Path) -> str:
    """Hash of the source tree of a package, as a build leaves it; empty if none has."""
    file = folder / "_patch_tree"
    return file.read_text().strip() if file.is_file() else ""
