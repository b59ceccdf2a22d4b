"""Runs scenarios on a machine with a CUDA card, and writes what came out as JSON.

SGLang, torch and aiohttp must be importable (PYTHONPATH).
"""

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import aiohttp
import machine
import models
import ranks
import savings
import scenarios
import waves
from command_line import WRONG, Parser
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
    "ranks": ranks.ranks,
}

COMPARED: Mapping[str, Callable[..., dict]] = {
    "untouched": scenarios.untouched,
    "savings": savings.savings,
    "waves": waves.waves,
}
"""Scenarios that need the stock package too."""


def tree() -> str:
    """Hash of the source tree that the servers import, as a build leaves it; empty if none has."""
    (package,) = importlib.util.find_spec("sglang").submodule_search_locations
    file = Path(package) / "_patch_tree"
    return file.read_text().strip() if file.is_file() else ""


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    made = Parser(prog="run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("out", type=Path, help="directory for logs and results")
    made.add_argument("scenarios", nargs="+", choices=[*SCENARIOS, *COMPARED], help="what to run, all at the same time")
    made.add_argument("--stock", default="", help=f"PYTHONPATH of the stock package, for {' and '.join(COMPARED)}")
    made.add_argument("--port", type=int, default=31000, help="first of the ports (%(default)s)")
    made.add_argument(
        "--tp", type=int, default=1, help="cards for each server, 1, 2, 4 or 8; all on the same ones (%(default)s)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: exits with 1 if a scenario failed, 2 if an option is wrong."""
    options = parser().parse_args(arguments)
    there = machine.cards()
    if wrong := machine.problem(options.tp, len(there)):
        sys.stderr.write(f"run.py: {wrong}\n")
        return WRONG
    options.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="models-"))
    models.write(folder)
    trees = {"stock": options.stock, "patched": os.environ.get("PYTHONPATH", "")}
    known = {**SCENARIOS, **{name: partial(compare, trees=trees) for name, compare in COMPARED.items()}}

    def run(job: tuple[int, str]) -> tuple[str, dict]:
        number, name = job
        try:
            result = known[name](scenarios.Place(folder, options.out, options.port + 200 * number, options.tp))
        except (ServerError, OSError, aiohttp.ClientError, TimeoutError, LookupError):
            result = {"error": traceback.format_exc()[-3000:]}
        (options.out / f"{name}.json").write_text(
            json.dumps({"gpu": there[0], "tp": options.tp, "patch_tree": tree(), **result}, indent=1) + "\n"
        )
        return name, result

    with ThreadPoolExecutor(len(options.scenarios)) as pool:
        results = dict(pool.map(run, enumerate(options.scenarios)))
    for name, result in results.items():
        sys.stdout.write(f"{name}: {json.dumps(result)[:1500]}\n")
    return int(any("error" in result for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
