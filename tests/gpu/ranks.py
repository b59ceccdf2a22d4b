"""Whether all tensor-parallel ranks of a server decide the same in every round."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp
import scenarios
from clients import prompts, together
from scenarios import THRESHOLD, Place
from server import RANDOM_WEIGHTS, STEPS, Server, ServerError

sys.path.append(str(scenarios.PROBE.parent))

import decisions

KV_TOKENS = 16384
"""Too few for ``CROWD`` clients, so that requests are taken back; enough for the loads that cross the thresholds."""

CROWD, LONG = 48, 512
"""Clients at once, and tokens of each answer, where the KV cache runs full."""

ABORTED = 96
"""Requests of ``LONG`` tokens that are aborted together: more than the server decodes at once."""

BUSY = 16
"""Last bound of the tiers: only a larger batch is aborted, whose rounds are plain."""

TIERS = [{"max_batch": THRESHOLD, "steps": "full"}, {"max_batch": BUSY, "steps": 1}, {"steps": 0}]
HYSTERESIS = {"speculative_load_policy": {"version": 1, "tiers": TIERS}}
NO_HYSTERESIS = {"speculative_load_policy": {"version": 1, "tiers": TIERS, "margin": 0, "dwell": 1}}

FORCED = tuple({"speculative_force_steps": steps} for steps in ("full", 0, 1, 0, None))


def ranks(place: Place) -> dict:
    """A small model with three tiers: cross its thresholds, force tiers, abort and crowd, then compare the ranks.

    Every rank's decisions are compared also where the load failed, since ranks that disagree wait for each other.
    """
    steer = place.out / "steer-ranks"
    steer.mkdir()
    (steer / "decisions").touch()
    result: dict = {}
    try:
        with _server(place, steer) as server:
            result |= {"start_s": round(server.start_seconds, 1), "tiers": server.tiers()}
            try:
                result |= loads(server, steer)
                result["retractions"] = _retractions(server.log, place.tp)
            finally:
                result |= decisions.summary(decisions.settled(steer, place.tp))
    except (ServerError, OSError, aiohttp.ClientError, TimeoutError) as error:
        return {**result, "error": f"{type(error).__name__}: {error}"[-1500:]}
    wrong = problems(result)
    return {**result, "error": "; ".join(wrong)} if wrong else result


def _server(place: Place, steer: Path) -> Server:
    target, draft = place.models / "small", place.models / "small-eagle3"
    options = (*RANDOM_WEIGHTS, "--max-total-tokens", str(KV_TOKENS))
    environment = scenarios.probed(place, steer, os.environ.get("PYTHONPATH", ""))
    return scenarios.small_server(place, "ranks", target, draft, "triton", *options, **environment)


def loads(server: Server, steer: Path) -> dict:
    """Everything that makes a server change its tier, and what came of each."""
    result = {}
    for name, policy in (("hysteresis", HYSTERESIS), ("no_hysteresis", NO_HYSTERESIS)):
        server.change(**policy)
        result[name] = scenarios.crossing(server)
        result[f"{name}_aborted"] = aborting(server, steer)
    result["changed"] = scenarios.changing(server, [HYSTERESIS, *FORCED, NO_HYSTERESIS, *FORCED], seconds=0.02)
    server.change(speculative_force_steps=None)
    asked = [(prompt, LONG) for prompt in prompts(CROWD, 7)]
    result["crowd"] = {"requests": CROWD, "failed": len(scenarios.failures(together(server.port, CROWD, asked)))}
    return result


def aborting(server: Server, steer: Path) -> dict:
    """Abort all requests while many run and others wait, and ask again."""
    asked = [(prompt, LONG) for prompt in prompts(ABORTED, 8)]
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(together, server.port, ABORTED, asked)
        while _requests(steer) <= BUSY and not sent.done():
            time.sleep(0.05)
        server.abort_all()
        records = sent.result()
    again = together(server.port, 4, asked[:4])
    return {
        "requests": ABORTED,
        "cut_short": len(scenarios.failures(records)),
        "failed_after": len(scenarios.failures(again)),
    }


def _requests(steer: Path) -> int:
    last = decisions.read(steer, 1)[0][-1]
    return last["requests"] if last.get("round") == "decode" else 0


def _retractions(log: Path, count: int) -> int:
    # Every rank says so.
    return log.read_text(errors="replace").count("KV cache pool is full. Retract requests.") // count


def problems(result: dict) -> list[str]:
    """Why a result proves nothing or proves the contrary, a sentence each; empty if it is as it should be."""
    found = [] if result["same"] else ["the ranks decided differently"]
    found += [
        f"no decode round had {steps} steps" for steps in (STEPS, 1, 0) if str(steps) not in result["decode_rounds"]
    ]
    if not result["retractions"]:
        found.append("no request was taken back")
    crossed = {name: result[name] for name in ("hysteresis", "no_hysteresis")}
    failed = {
        **{n: sum(phase["failed"] for phase in (*what["phases"], what["forced"])) for n, what in crossed.items()},
        **{name: result[name]["failed"] for name in ("changed", "crowd")},
    }
    found += [f"requests of {name} that failed: {count}" for name, count in failed.items() if count]
    aborted = {name: result[f"{name}_aborted"] for name in crossed}
    found += [f"no request of {name} was cut short" for name, what in aborted.items() if not what["cut_short"]]
    return found + [f"{name} answers nothing after the abort" for name, what in aborted.items() if what["failed_after"]]
