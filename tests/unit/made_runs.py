"""Made-up run directories with the speeds, batches and acceptance of an H200 (docs/data/h200-0.5.9-all-tiers.json).

What that measurement did not note (answer times, power, clocks, KV capacity) is made up from these.
"""

import json
import math
import statistics
from dataclasses import asdict
from functools import cache

from blackwell import paths
from blackwell.bench import bootstrap, pairs, policy, store, words
from blackwell.bench.fingerprint import Unknown, made
from blackwell.sweep.points import Key

DATA = paths.ROOT / "docs/data"
ROWS = json.loads((DATA / "h200-0.5.9-all-tiers.json").read_text(encoding="utf-8"))
OTHER_ROWS = json.loads((DATA / "h200-0.5.9-short-windows.json").read_text(encoding="utf-8"))
"""The same comparison on another machine of that kind."""
REPEATS, CONTEXT, NEW_TOKENS = 3, 256, 128
NAMES = {"base": "baseline"}
# The stock arms measured the same settings again: they stand for the second stage of a run.
AGAIN = {"full": "full_stock", "plain": "base"}
PLAN = {
    "format": 1,
    "run": "20261130-061500",
    "host": "box1",
    "arms": ["baseline", "full", "reduced2", "reduced1", "plain", "dynamic"],
    "levels": [1, 2, 5, 10, 30, 70, 100, 250],
    "contexts": [CONTEXT],
    "repeats": REPEATS,
    "window_s": 2.0,
    "window_lives": 1.0,
    "new_tokens": NEW_TOKENS,
    "prompts": "random",
    "settings": [{"name": "deployed", "flags": {}, "environment": {}}],
    "steps": 3,
    "margin": 0.98,
    "note": "",
}
FINGERPRINT = made(
    {
        "model": "/models/llama-8b",
        "model_files": "5d0f1c2a9b7e4410",
        "draft": "/models/eagle3",
        "draft_files": "91c0aa37be552f08",
        "gpus": "1 x NVIDIA H200 (143771 MiB, 700.00 W)",
        "topology": {},
        "driver": "580.95.05",
        "cuda": "13.0",
        "cuda_runtime": "libcudart.so.12 (8d1f22a04bb1c9e3)",
        "nccl": Unknown("/proc/4711/maps cannot be read: Permission denied"),
        "nccl_environment": {},
        "sglang": "0.5.9",
        "sglang_environment": {"SGLANG_SET_CPU_AFFINITY": "1"},
        "patch_tree": "5aa53cdddd4ca92576e416e545b5289d6d254ec7",
        "flags": {"tp_size": 1, "attention_backend": "triton", "max_running_requests": 256, "cuda_graph_max_bs": 256},
        "workload": {"prompts": "random", "new_tokens": NEW_TOKENS, "prompt_tokens": CONTEXT},
    }
)
BEGAN = 1796019300.0


def content(row, arm, number=0):
    """What a point holds, by a row of the H200."""
    user = 1.02 * row["tok_s"] / row["c"]
    busy = min(1.0, row["running_batch"] / 100)
    return {
        "tok_s": row["tok_s"],
        "user_tok_s": round(user, 3),
        "answer_s_p50": round(NEW_TOKENS / user, 4),
        "answer_s_p95": round(1.1 * NEW_TOKENS / user, 4),
        "acceptance": row["acceptance"],
        "running_batch": row["running_batch"],
        "queued": 0,
        "in_flight_min": row["in_flight_min"],
        "window_s": row["window_s"],
        "requests": row["requests"],
        "retracted": row["retracted"],
        "kv_tokens": 1_012_480 if arm == "baseline" else 968_704,
        "power_w": round(330 + 300 * busy, 1),
        "sm_mhz": round(1980 - 60 * busy),
        "temperature_c": round(41 + 22 * busy),
        "note": None,
        "marked": row["marked"],
        "began": BEGAN + 3 * number,
    }


def points(settings="deployed", context=CONTEXT, *, times=1.0, repeats=REPEATS, rows=ROWS):
    """The points of a run, by key, in order; speeds are so many times those of the H200."""
    found = {}
    for row in [dict(row, tok_s=round(times * row["tok_s"], 1)) for row in rows if row["repeat"] <= repeats]:
        arm = NAMES.get(row["arm"], row["arm"])
        if arm not in ("full_stock", "dynamic"):
            found[Key(settings, context, arm, row["c"], row["repeat"])] = content(row, arm, len(found))
    best = better(found)
    for row in [dict(row, tok_s=round(times * row["tok_s"], 1)) for row in rows if row["repeat"] <= repeats]:
        names = [arm for arm, again in AGAIN.items() if again == row["arm"] and best[row["c"]] == arm]
        names += ["dynamic"] if row["arm"] == "dynamic" else []
        for arm in names:
            key = Key(settings, context, arm, row["c"], repeats + row["repeat"])
            found[key] = content(row, arm, len(found)) | ({"acceptance": None} if arm == "dynamic" else {})
    return found


def better(found):
    """The better of full and plain by level."""
    speeds = {}
    for key, at in found.items():
        if key.arm in AGAIN and at["marked"] is None:
            speeds.setdefault(key.c, {}).setdefault(key.arm, []).append(at["tok_s"])
    return {c: max(arms, key=lambda arm: statistics.median(arms[arm])) for c, arms in speeds.items()}


def numbered(found, repeats):
    return [
        {**at, "arm": key.arm, "c": key.c, "repeat": key.repeat}
        for key, at in found.items()
        if repeats[0] <= key.repeat <= repeats[1]
    ]


def derived(found, repeats=REPEATS):
    result = policy.derive(numbered(found, (1, repeats)))
    return {
        "settings": "deployed",
        "context": CONTEXT,
        "policy": result.policy,
        "crossover": asdict(result.crossover),
        "explained": words.explained(result),
        "others": [],
    }


def proof(found, context=CONTEXT, repeats=REPEATS):
    levels = []
    second = numbered(found, (repeats + 1, 2 * repeats))
    for c, best in sorted(better(found).items()):
        gains = pairs.gains([row for row in second if row["c"] == c], "dynamic", best)[c]
        interval = bootstrap.intervals([gains])[0] if len(gains) > 1 else None
        speeds = {
            arm: statistics.median(row["tok_s"] for row in second if (row["arm"], row["c"]) == (arm, c))
            for arm in ("dynamic", best)
        }
        ratio = math.exp(statistics.median(gains))
        levels.append(
            {
                "settings": "deployed",
                "context": context,
                "c": c,
                "best": best,
                "dynamic": speeds["dynamic"],
                "static": speeds[best],
                "ratio": round(ratio, 4),
                "low": round(math.exp(interval.low), 4) if interval else None,
                "high": round(math.exp(interval.high), 4) if interval else None,
                "ok": ratio >= 0.98,
                "why": "",
            }
        )
    return {"margin": 0.98, "levels": levels}


def check(found):
    """bench_serving beside the bench at three levels of full."""
    return [
        {
            "settings": "deployed",
            "context": CONTEXT,
            "arm": "full",
            "c": c,
            "tok_s": speed,
            "bench_serving_tok_s": round(share * speed, 1),
            "ratio": round(1 / share, 3),
            "concurrency": c * 0.97,
        }
        for c, share in ((1, 0.985), (10, 0.962), (100, 0.941))
        for speed in [found[Key("deployed", CONTEXT, "full", c, 1)]["tok_s"]]
    ]


def write(directory, found=None, *, fingerprint=FINGERPRINT, plan=None, done=True, **files):
    """A run's directory. ``files``: contents of policy, proof, check, exit and deployed; None for none."""
    found = points() if found is None else found
    plan = PLAN | (plan or {})
    with store.writing(directory) as writer:
        lines = writer.open("points.jsonl", Key, fingerprint)
        for key, at in found.items():
            lines.add(key, at)
    ended = {"status": "done", "reason": "", "at": BEGAN + 1000} if done else None
    argv = ["/opt/sglang/current/venv/bin/python", "-m", "sglang.launch_server", "--api-key", "secret"]
    for name, value in {"plan": plan, "exit": ended, "deployed": {"argv": argv}, **files}.items():
        if value is not None:
            (directory / f"{name}.json").write_text(json.dumps(value))
    return directory


@cache
def _derived_files():
    found = points()
    return {"policy": derived(found), "proof": proof(found), "check": check(found)}


def whole(directory, **changes):
    """A run that is done, with everything."""
    return write(directory, points(), **(_derived_files() | changes))
