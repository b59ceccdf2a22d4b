"""The command line of a sweep's server, from that of the server that is deployed: pure functions."""

import json
from collections.abc import Mapping, Sequence

from blackwell.bench.errors import BenchError

from .plan import FULL, Settings

SPECULATIVE = "--speculative-"
POLICY, THRESHOLD = "--speculative-load-policy", "--speculative-disable-batch-threshold"
STEPS = "--speculative-num-steps"
HOST, PORT, MOST = "--host", "--port", "--max-running-requests"
LOOPBACK = "127.0.0.1"

SPEC_V2 = "SGLANG_ENABLE_SPEC_V2"
"""Switches the overlap path on, on which alone speculation follows the load; a server without a draft has none."""

OWN = (HOST, PORT, "--model-path", "--model", "--tokenizer-path", "--served-model-name", "--api-key", "--admin-api-key")
"""Options that a sweep sets itself, or by which another model would be measured."""

PROGRAM = 3
"""Words before the options: interpreter, -m, module."""


def options(argv: Sequence[str]) -> list[list[str]]:
    """The options of a command line, each with its values; ``--flag=value`` is one word."""
    found: list[list[str]] = []
    for word in argv[PROGRAM:]:
        if word.startswith("--") or not found:
            found.append([word])
        else:
            found[-1].append(word)
    return found


def name(option: Sequence[str]) -> str:
    """The name of an option."""
    return option[0].partition("=")[0]


def _without(found: Sequence[list[str]], names: Sequence[str]) -> list[list[str]]:
    return [option for option in found if name(option) not in names]


def baseline(argv: Sequence[str], settings: Settings, port: int) -> list[str]:
    """The server without speculation; raises BenchError as ``speculative`` does."""
    kept = [option for option in options(argv) if not name(option).startswith(SPECULATIVE)]
    return _joined(argv, kept, settings, port)


def speculative(argv: Sequence[str], settings: Settings, port: int, steps: int) -> list[str]:
    """The server that has a tier for every number of draft steps, so that each can be forced.

    Raises BenchError if the settings touch what a sweep sets itself.
    """
    kept = _without(options(argv), [POLICY, THRESHOLD])
    policy = json.dumps(every_tier(steps), separators=(",", ":"))
    return _joined(argv, [*kept, [POLICY, policy]], settings, port)


def every_tier(steps: int) -> dict:
    """A policy with every number of draft steps, which go down by one with every request; each arm is forced."""
    tiers: list[dict] = [{"max_batch": 1, "steps": FULL}]
    tiers += [{"max_batch": steps - held + 1, "steps": held} for held in range(steps - 1, 0, -1)]
    return {"version": 1, "tiers": [*tiers, {"steps": 0}], "margin": 0}


def _joined(argv: Sequence[str], kept: Sequence[list[str]], settings: Settings, port: int) -> list[str]:
    if touched := [flag for flag in settings.flags if flag in OWN or flag.startswith(SPECULATIVE)]:
        raise BenchError(f"settings {settings.name}: {touched[0]} is not a setting that a sweep may change")
    changed = _without(kept, [HOST, PORT, *settings.flags])
    changed += [
        [flag] if value is True else [flag, str(value)] for flag, value in settings.flags.items() if value is not False
    ]
    words = [word for option in [*changed, [HOST, LOOPBACK], [PORT, str(port)]] for word in option]
    return [*argv[:PROGRAM], *words]


def environment(settings: Settings, *, speculates: bool) -> Mapping[str, str | None]:
    """What differs in the environment; None removes a variable."""
    return dict(settings.environment) if speculates else {SPEC_V2: None, **settings.environment}
