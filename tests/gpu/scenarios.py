"""What is run on a GPU, each as a function that returns its result as plain data."""

import importlib
import os
import random
import re
import statistics
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from clients import prompts, together
from models import STANDIN
from server import RANDOM_WEIGHTS, STEPS, Server, ServerError, speculation

PROBE = Path(__file__).resolve().parents[1] / "patches" / "probe"

THRESHOLD = 8
LOADS = (2, 24, 2, 24, 2)
"""Clients of one phase after the other: each change crosses the threshold."""


def failures(records: list[dict]) -> list[dict]:
    """Requests that were not answered with as many tokens as they asked for."""
    return [record for record in records if len(record.get("tokens", ())) != record["wanted"]]


def lengths(total: int, seed: int) -> list[int]:
    """Numbers of tokens to generate: mixed, so that a phase ends with fewer and fewer requests."""
    rng = random.Random(seed)
    return [rng.randint(32, 256) for _ in range(total)]


def crossing(server: Server) -> dict:
    """Cross the threshold in both directions under load, then change the forced tier while requests run."""
    phases = []
    for number, clients in enumerate(LOADS):
        total = max(8, 2 * clients)
        records = together(server.port, clients, list(zip(prompts(total, number), lengths(total, number), strict=True)))
        load = server.state()["speculative_load_state"]
        phases.append(
            {
                "clients": clients,
                "requests": total,
                "failed": len(failures(records)),
                "tok_s": round(tokens_per_second(records), 1),
                "steps": load["steps"],
                "switches": load["switches"],
                "rounds": load["rounds"],
            }
        )
    return {"phases": phases, "forced": forcing(server)}


def forcing(server: Server) -> dict:
    """Force one tier after the other while requests run."""
    captured = server.state()["speculative_load_state"]["captured_steps"]
    result = changing(server, [{"speculative_force_steps": steps} for steps in captured])
    server.change(speculative_force_steps=None)
    return result


def changing(
    server: Server, changes: Sequence[Mapping], clients: int = 16, total: int = 64, seconds: float = 0.15
) -> dict:
    """Make one change of the live state after the other, each ``seconds`` after the last, while requests run."""
    done, made = threading.Event(), []

    def change() -> None:
        while not done.wait(seconds):
            made.append(changes[len(made) % len(changes)])
            server.change(**made[-1])

    with ThreadPoolExecutor(1) as pool:
        changer = pool.submit(change)
        try:
            records = together(server.port, clients, list(zip(prompts(total, 99), lengths(total, 99), strict=True)))
        finally:
            done.set()
        changer.result()
    return {"requests": total, "failed": len(failures(records)), "changes": len(made)}


def agreement(server: Server, total: int = 24) -> dict:
    """Share of greedy tokens, up to the first difference, that each forced tier has in common with plain decoding."""
    asked = list(zip(prompts(total, 5), [96] * total, strict=True))
    texts, accepted = {}, {}
    for steps in sorted(server.state()["speculative_load_state"]["captured_steps"]):
        server.change(speculative_force_steps=steps)
        records = together(server.port, 4, asked)
        texts[steps] = [record["tokens"] for record in records]
        accepted[steps] = [len(r["tokens"]) / r["verified"] for r in records if r["verified"]]
    server.change(speculative_force_steps=None)
    return {
        str(steps): {
            "same_requests": sum(a == b for a, b in zip(texts[steps], texts[0], strict=True)),
            "requests": total,
            "same_tokens": round(
                statistics.mean(same_prefix(a, b) / len(b) for a, b in zip(texts[steps], texts[0], strict=True)), 3
            ),
            "acceptance": round(statistics.mean(accepted[steps]), 3) if accepted[steps] else None,
        }
        for steps in texts
    }


def same_prefix(one: list[int], other: list[int]) -> int:
    """Number of tokens before the first difference."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b), len(one))


@dataclass(frozen=True)
class Place:
    """Where a scenario finds its models, writes its logs and listens, and on how many cards it runs each server."""

    models: Path
    out: Path
    port: int
    tp: int = 1


def probed(place: Place, steer: Path, tree: str) -> dict[str, str]:
    """The environment of a server of the package that ``tree`` finds, steered by the files in ``steer``."""
    path = [str(PROBE), str(place.models / "hooks"), tree]
    return {"PYTHONPATH": os.pathsep.join(path), "STEER": str(steer)}


def small_server(place: Place, log: str, target: Path, draft: Path, attention: str, *more: str, **env: str) -> Server:
    """A server of a small model with an attention backend and a policy of three tiers."""
    options = (
        *("--model-path", str(target), "--attention-backend", attention, "--max-total-tokens", "65536"),
        *("--mem-fraction-static", "0.3", *speculation(draft)),
        *("--speculative-load-policy", policy(THRESHOLD, 16), *more),
    )
    environment = {"SGLANG_IS_FLASHINFER_AVAILABLE": "true", **env} if attention == "flashinfer" else env
    return Server(place.out / f"{log}.log", place.port, options, environment, tp=place.tp)


def backend(place: Place, model: str, attention: str) -> dict:
    """Start a small model with an attention backend and a policy of three tiers; cross, force, compare."""
    target, draft = place.models / model, place.models / f"{model}-eagle3"
    # DeepSeek's architecture would turn it on, and its memory may be NVLink multicast's.
    options = RANDOM_WEIGHTS if place.tp == 1 else (*RANDOM_WEIGHTS, "--disable-flashinfer-allreduce-fusion")
    try:
        with small_server(place, f"{attention}-{model}", target, draft, attention, *options) as server:
            return {
                "attention": attention,
                "model": model,
                "start_s": round(server.start_seconds, 1),
                "tiers": server.tiers(),
                **crossing(server),
                "agreement": agreement(server),
            }
    except ServerError as error:
        return {"attention": attention, "model": model, "error": str(error)[-1500:]}


def policy(full_up_to: int, one_up_to: int) -> str:
    """A policy of full, one-step and plain decoding."""
    return (
        f'{{"version": 1, "tiers": [{{"max_batch": {full_up_to}, "steps": "full"}}, '
        f'{{"max_batch": {one_up_to}, "steps": 1}}, {{"steps": 0}}]}}'
    )


SIMULATED: Mapping[str, str] = {"SGLANG_SIMULATE_ACC_LEN": "2.88", "SGLANG_SIMULATE_ACC_METHOD": "match-expected"}
"""Random weights accept nothing: the drafts are counted as 2.88 tokens a round, bonus token included."""


INTERVALS = (0, 1, 2, 32, 512)
"""Tokens that are decoded plainly before speculation goes on."""

PROMPT, AFTER = 160, 200
"""Words of a prompt that counts, and tokens that are decoded after the plain ones."""


def draft_cache(place: Place, attention: str) -> dict:
    """Counting models with a draft that attends: speculative rounds after plain ones, with CUDA graphs.

    Each row has the rounds after an interval of plain decoding, and those of a request whose prompt has the plainly
    decoded tokens in it, so that prefill has made the draft's KV cache: they are equal if plain rounds keep it exact.
    """
    sys.path.append(str(STANDIN / "sglang_cpu_standin"))
    counting = importlib.import_module("counting")
    folder, steer = place.models / "counting", place.out / f"steer-{attention}"
    steer.mkdir()
    draft = folder / "eagle3-attending"
    environment = probed(place, steer, os.environ.get("PYTHONPATH", ""))

    def rounds(prompt: list[int], plain: int) -> int:
        server.change(speculative_force_steps=[*[0] * plain, [STEPS]])
        (record,) = together(server.port, 1, [(prompt, plain + AFTER)])
        if record["tokens"] != counting.expected(prompt[-1], plain + AFTER):
            raise ServerError(f"wrong tokens after {plain} plain ones: {record}")
        return record["verified"]

    rows = []
    try:
        with small_server(
            place, f"draft-cache-{attention}", folder / "target", draft, attention, **environment
        ) as server:
            for number, plain in enumerate(INTERVALS):
                prompt = counting.counting_prompt(12 + 100 * number, PROMPT)
                longer = [*prompt, *counting.expected(prompt[-1], plain)]
                computed = len(counting.attending_accepted_lengths(longer, AFTER, STEPS))
                row = {"plain": plain, "after_plain": rounds(prompt, plain), "after_prefill": rounds(longer, 0)}
                rows.append({**row, "computed": computed})
            (steer / "cold").touch()
            stale = {str(plain): rounds(counting.counting_prompt(900, PROMPT), plain) for plain in (32, 512)}
    except ServerError as error:
        return {"attention": attention, "rows": rows, "error": str(error)[-1500:]}
    return {"attention": attention, "tokens": AFTER, "rows": rows, "without_upkeep": stale}


def dense_speculation(models: Path) -> tuple[str, ...]:
    """Options of EAGLE-3 with the head of the 8B model."""
    return speculation(models / "dense-eagle3")


def dense_options(models: Path, memory: str = "0.5", *, draft: bool = True) -> tuple[str, ...]:
    """Options of the 8B model, with its head if there is to be a ``draft``; ``memory`` is the share of the card."""
    return (
        *RANDOM_WEIGHTS,
        *("--model-path", str(models / "dense"), "--attention-backend", "triton", "--mem-fraction-static", memory),
        *(dense_speculation(models) if draft else ()),
    )


class Sizes(NamedTuple):
    """How many requests a server decodes at once, and the tokens of its KV cache.

    Servers that start at once share a card, so that the KV cache is given in tokens.
    """

    requests: int
    kv_tokens: int


def never_and_speculating(
    place: Place, name: str, stock: str, sizes: Sizes, *, policy: Sequence[str], environment: Mapping[str, str]
) -> tuple[Server, Server]:
    """Two servers of the 8B model: of the package that ``stock`` finds, without a draft, and the patched one.

    ``policy``: options of the patched one; ``environment`` is its too.
    """
    never = (
        *dense_options(place.models, memory="0.8", draft=False),
        *("--max-total-tokens", str(sizes.kv_tokens), "--sleep-on-idle"),
    )
    speculating = (*never, *dense_speculation(place.models), *policy)
    shared = {"most_requests": sizes.requests, "tp": place.tp}
    return (
        Server(place.out / f"{name}-base.log", place.port, never, {"PYTHONPATH": stock}, **shared),
        Server(place.out / f"{name}-patched.log", place.port + 100, speculating, environment, **shared),
    )


def dense(place: Place) -> dict:
    """The 8B model with a threshold, simulated acceptance: cross the threshold in both directions."""
    options = (*dense_options(place.models), "--speculative-disable-batch-threshold", str(THRESHOLD))
    with Server(place.out / "dense.log", place.port, options, SIMULATED, tp=place.tp) as server:
        return {"start_s": round(server.start_seconds, 1), "tiers": server.tiers(), **crossing(server)}


def untouched(place: Place, trees: Mapping[str, str]) -> dict:
    """The 8B model without a threshold, on the stock package and on the patched one: memory, tokens and speed.

    ``trees`` gives for ``stock`` and ``patched`` the PYTHONPATH that finds SGLang.
    """
    results = {}
    for name, tree in trees.items():
        log = place.out / f"untouched-{name}.log"
        environment = {"PYTHONPATH": tree}
        with Server(log, place.port, dense_options(place.models), environment, tp=place.tp) as server:
            state = server.state()
            asked = list(zip(prompts(32, 3), [64] * 32, strict=True))
            one = together(server.port, 1, asked[:4])
            speeds = []
            for _ in range(3):
                begun = time.monotonic()
                records = together(server.port, 16, asked)
                speeds.append(sum(len(record["tokens"]) for record in records) / (time.monotonic() - begun))
            results[name] = {
                "memory": state["memory_usage"],
                "max_running_requests": state["effective_max_running_requests_per_dp"],
                "fields": sorted(state),
                "tokens": [record["tokens"] for record in one],
                "failed": len(failures(records)),
                "tok_s": round(statistics.median(speeds), 1),
                "memory_lines": memory_lines(log),
            }
    stock, patched = (results[name] for name in ("stock", "patched"))
    return {
        "memory": {name: result["memory"] for name, result in results.items()},
        "memory_lines": {name: result["memory_lines"] for name, result in results.items()},
        "tok_s": {name: result["tok_s"] for name, result in results.items()},
        "same_tokens": stock["tokens"] == patched["tokens"],
        "added_fields": sorted(set(patched["fields"]) - set(stock["fields"])),
        "failed": {name: result["failed"] for name, result in results.items()},
    }


def tokens_per_second(records: list[dict]) -> float:
    """Output tokens of all requests, between the first that was sent and the last that was answered."""
    seconds = max(record["ended"] for record in records) - min(record["began"] for record in records)
    return sum(len(record["tokens"]) for record in records) / seconds


def memory_lines(log: Path) -> list[str]:
    """What the server logged about memory, without times."""
    lines = log.read_text(errors="replace").splitlines()
    return [re.sub(r"^\[[^]]*\] |elapsed[=:]? ?[\d.]+ s[.,] ", "", line) for line in lines if "mem usage=" in line]
