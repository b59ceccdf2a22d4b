"""Where the time of a load goes that comes and goes in waves: on a server held plain, and on one without a draft.

A wave is the prefill of all clients' prompts and then one decode round after another, until all answers end at once.
"""

import statistics
from collections.abc import Mapping

import profiles
import scenarios
from clients import prompts, together
from models import DENSE_LAYERS
from scenarios import Place, Sizes
from server import Server, side_by_side
from speed_plan import KV_TOKENS, LEVELS, MOST_REQUESTS

from blackwell.bench.workload import Workload

REPEATS = 2

ROUNDS = Workload().new_tokens - 8
"""Forward passes that are profiled: fewer than an answer has tokens, so that a wave always holds them."""


def waves(place: Place, trees: Mapping[str, str]) -> dict:
    """Profile waves of the 8B model of both servers, on the same cards and in turn, at every level.

    ``trees`` gives for ``stock`` and ``patched`` the PYTHONPATH that finds SGLang. Returns by level and server the
    ``seconds`` of a wave that is not profiled, and for each part of those that are, ``prefill`` and ``decode``, what
    `profiles.summary` tells.
    """
    threshold = ("--speculative-disable-batch-threshold", str(scenarios.THRESHOLD))
    sizes = Sizes(MOST_REQUESTS, KV_TOKENS)
    base, plain = scenarios.never_and_speculating(
        place, "waves", trees["stock"], sizes, policy=threshold, environment=scenarios.SIMULATED
    )
    with side_by_side(base, plain):
        plain.change(speculative_force_steps=0)
        return {"waves": {str(level): at_level(place, {"base": base, "plain": plain}, level) for level in LEVELS}}


def at_level(place: Place, servers: Mapping[str, Server], level: int) -> dict:
    """The same of one level, by server."""
    found = {name: {"seconds": [], "prefill": [], "decode": []} for name in servers}
    for server in servers.values():
        _wave(server, level)
    for repeat in range(REPEATS):
        for name, server in servers.items():
            found[name]["seconds"].append(round(_wave(server, level), 4))
            out = place.out / f"wave-{name}-{level}-{repeat}"
            server.profile(out, ROUNDS)
            _wave(server, level)
            for part, summary in profiles.of_wave(profiles.await_trace(out), DENSE_LAYERS).items():
                found[name][part].append(summary)
    return found


def _wave(server: Server, level: int) -> float:
    """Seconds, by the median request, of one wave."""
    workload = Workload()
    asked = [(prompt, workload.new_tokens) for prompt in prompts(level, level, tokens=workload.prompt_tokens)]
    return statistics.median(record["ended"] - record["began"] for record in together(server.port, level, asked))
