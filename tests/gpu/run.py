"""Runs scenarios on a machine with a CUDA card, and writes what came out as JSON.

SGLang, torch and aiohttp must be importable (PYTHONPATH).
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import aiohttp
import models
import scenarios
from server import ServerError

Scenario = Callable[[scenarios.Place], dict]

SCENARIOS: Mapping[str, Scenario] = {
    "dense": scenarios.dense,
    "triton-mha": partial(scenarios.backend, model="small", attention="triton"),
    "triton-mla": partial(scenarios.backend, model="mla", attention="triton"),
    "flashinfer-mha": partial(scenarios.backend, model="small", attention="flashinfer"),
    "flashinfer-mla": partial(scenarios.backend, model="mla", attention="flashinfer"),
    "draft-cache-triton": partial(scenarios.draft_cache, attention="triton"),
    "draft-cache-flashinfer": partial(scenarios.draft_cache, attention="flashinfer"),
}

COMPARED: Mapping[str, Callable[..., dict]] = {"untouched": scenarios.untouched, "held-plain": scenarios.held_plain}
"""Scenarios that need the stock package too."""


def gpu() -> str:
    """Name of the first card."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()


def tree() -> str:
    """Hash of the source tree that the servers import, as a build leaves it; empty if none has."""
    (package,) = importlib.util.find_spec("sglang").submodule_search_locations
    file = Path(package) / "_patch_tree"
    return file.read_text().strip() if file.is_file() else ""


def main() -> int:
    """Command line: exits with 1 if a scenario failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="directory for logs and results")
    parser.add_argument(
        "scenarios", nargs="+", choices=[*SCENARIOS, *COMPARED], help="what to run, all at the same time"
    )
    parser.add_argument("--stock", default="", help=f"PYTHONPATH of the stock package, for {' and '.join(COMPARED)}")
    parser.add_argument("--port", type=int, default=31000, help="first of the ports (%(default)s)")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="models-"))
    models.write(folder)
    trees = {"stock": options.stock, "patched": os.environ.get("PYTHONPATH", "")}
    known = {**SCENARIOS, **{name: partial(compare, trees=trees) for name, compare in COMPARED.items()}}

    def run(job: tuple[int, str]) -> tuple[str, dict]:
        number, name = job
        try:
            result = known[name](scenarios.Place(folder, options.out, options.port + 200 * number))
        except (ServerError, OSError, aiohttp.ClientError, TimeoutError, LookupError):
            result = {"error": traceback.format_exc()[-3000:]}
        (options.out / f"{name}.json").write_text(
            json.dumps({"gpu": gpu(), "patch_tree": tree(), **result}, indent=1) + "\n"
        )
        return name, result

    with ThreadPoolExecutor(len(options.scenarios)) as pool:
        results = dict(pool.map(run, enumerate(options.scenarios)))
    for name, result in results.items():
        sys.stdout.write(f"{name}: {json.dumps(result)[:1500]}\n")
    return int(any("error" in result for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
