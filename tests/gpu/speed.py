"""Compares the speed of an unpatched server, with and without EAGLE-3, with that of a patched one in every setting.

Starts the three servers at once on one card (or --tp cards), an 8B model with random weights and simulated
acceptance, and measures them in turn under the same loads. SGLang, torch and aiohttp must be importable; PYTHONPATH
finds the patched SGLang, --stock the unpatched one.

OUT gets rows.json and requests.jsonl.gz, the same of the calibration, servers.json, steps.json, table.md, and the
servers' logs in logs/. Every point is written at once. Exits with 0 if every point was measured, 1 if something
failed, 2 if an option is wrong, 3 if the time was up.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import machine
import models
import speed_files
import speed_servers
from command_line import WRONG
from server import PAUSE_SECONDS, ServerError, side_by_side
from speed_options import parser, plan_of
from speed_plan import START_SECONDS, Plan, all_seconds, minutes, steps_seconds
from speed_run import STEPPED, OutOfTimeError, Run
from speed_servers import BASE, PATCHED, STOCK, Settings

from blackwell.bench.errors import BenchError
from blackwell.bench.points import Origin

FAILED, OUT_OF_TIME = 1, 3


def trees(stock: str, wanted: Sequence[str]) -> dict[str, str]:
    """Hash of the source tree of each server; raises BenchError if a package is missing or not what it should be."""
    found = {}
    patched = os.environ.get("PYTHONPATH", "")
    for name, path, option in ((BASE, stock, "--stock"), (STOCK, stock, "--stock"), (PATCHED, patched, "PYTHONPATH")):
        if name not in wanted:
            continue
        folder = speed_servers.package(path)
        if folder is None:
            raise BenchError(f"{option} is {path!r}, where there is no sglang package")
        if speed_servers.is_patched(folder) != (name == PATCHED):
            raise BenchError(f"{option} is {path!r}, whose sglang is {'not ' if name == PATCHED else ''}patched")
        found[name] = speed_servers.tree(folder)
    return found


def say(line: str) -> None:
    """Show a line of progress with the time of day."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def estimate(plan: Plan, wanted: Sequence[str], *, steps: bool) -> str:
    """What is going to be done, and how long it may take by guesses, in words."""
    names, calibrating = plan.points(), plan.calibration()
    stepped = len([arm for arm in STEPPED if arm in plan.arms]) + 1 if steps else 0
    total = START_SECONDS + all_seconds(plan) + steps_seconds(stepped)
    return (
        f"{len(wanted)} servers ({', '.join(wanted)}), "
        f"{f'{len(calibrating)} points for the threshold, then ' if calibrating else ''}"
        f"{len(names)} points of {len(plan.arms)} arms at levels {', '.join(map(str, plan.levels))}"
        f"{', then the load that steps' if steps else ''}: "
        f"about {minutes(total)}, by guesses"
    )


def begun(
    options: argparse.Namespace, plan: Plan, hashes: Mapping[str, str], cards: list[str]
) -> AbstractContextManager[speed_files.Kept]:
    """What OUT has of this comparison, for the length of a block.

    Raises BenchError if it has another one, or if there are too few cards.
    """
    if wrong := machine.problem(options.tp, len(cards)):
        raise BenchError(wrong)
    what = {
        "workload": asdict(plan.workload),
        "tp": options.tp,
        "acceptance_by_steps": options.acceptance_by_steps,
        "freeze_gc": not options.collect_garbage,
        "gpu": machine.used(cards, options.tp),
        "commit": options.commit,
        "patch_tree": hashes.get(PATCHED, ""),
    }
    return speed_files.begun(options.out, what, resume=options.resume)


def compare(options: argparse.Namespace, plan: Plan, kept: speed_files.Kept, hashes: Mapping[str, str]) -> int:
    """Start the servers and measure what is missing; returns the exit status."""
    until = time.monotonic() + (options.seconds_budget or float("inf"))
    steps = not options.no_steps and not kept.has_steps()
    if not kept.compared.missing(plan.points()) and not steps:
        say("nothing is missing")
        sys.stdout.write(kept.finish(whole=True))
        return 0
    say(estimate(plan, list(hashes), steps=steps))
    settings = Settings(
        options.stock,
        options.tp,
        options.memory,
        options.port,
        by_steps=options.acceptance_by_steps,
        freeze_gc=not options.collect_garbage,
    )
    (options.out / "logs").mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="models-")))
        models.write_random(folder)
        servers = speed_servers.made(settings, list(hashes), folder, options.out / "logs")
        stack.enter_context(side_by_side(*servers.values()))
        kept.started({name: speed_servers.checked(name, servers[name], hashes[name]) for name in servers})
        say(f"started in {max(server.start_seconds for server in servers.values()):.0f} s")
        origins = {name: Origin(options.commit, hashes[name], kept.what["gpu"]) for name in servers}
        status = measure(Run(plan, kept, servers, origins, say, until), steps=steps)
        pauses = {name: server.pauses() for name, server in servers.items()}
        kept.ended(pauses)
        for name, seconds in pauses.items():
            total = sum(seconds)
            say(f"{name}: {len(seconds)} garbage collections of more than {PAUSE_SECONDS} s, {total:.1f} s in all")
        return status


def measure(run: Run, *, steps: bool) -> int:
    """Measure what is missing, and write the table whatever happens; returns the exit status."""
    status = 0
    try:
        run.points()
        if steps:
            run.step_load()
    except OutOfTimeError:
        say("the time is up; go on with --resume")
        status = OUT_OF_TIME
    finally:
        text = run.kept.finish(whole=not run.kept.compared.missing(run.plan.points()))
    sys.stdout.write(text)
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    options = parser(__doc__).parse_args(arguments)
    # As an exception, the signal also ends the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with ExitStack() as stack:
        try:
            plan = plan_of(options)
            wanted = list(dict.fromkeys(speed_servers.server_of(arm) for arm in plan.arms))
            if options.dry_run:
                sys.stdout.write(estimate(plan, wanted, steps=not options.no_steps) + "\n")
                sys.stdout.write("".join(f"{name}\n" for name in [*plan.calibration(), *plan.points()]))
                return 0
            hashes = trees(options.stock, wanted)
            kept = stack.enter_context(begun(options, plan, hashes, machine.cards()))
        except (BenchError, OSError) as error:
            sys.stderr.write(f"speed.py: {error}\n")
            return WRONG
        try:
            return compare(options, plan, kept, hashes)
        except (BenchError, ServerError, OSError) as error:
            sys.stderr.write(f"speed.py: {error}\n")
            return FAILED
        except KeyboardInterrupt:
            return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
