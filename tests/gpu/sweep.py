"""Runs the engine of ``fab bench`` on a machine with a card: a sweep of the 8B model with random weights.

SGLang, torch and aiohttp must be importable; PYTHONPATH finds the patched SGLang, --stock the unpatched one, which is
the baseline. OUT gets the files of a run as ``fab report`` reads them, and the servers' logs in logs/. Run again with
the same options, it goes on with what is missing. Exits with 0 if every point was measured, 1 if something failed, 2
if an option is wrong.
"""

import argparse
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import machine
import models
import speed_servers
from command_line import WRONG, Parser
from server import STEPS, Server, ServerError
from speed_plan import KV_TOKENS, LEVELS, MOST_REQUESTS
from speed_servers import BASE, PATCHED

from blackwell.bench import fingerprint, store
from blackwell.bench.errors import BenchError
from blackwell.bench.workload import Request, Workload
from blackwell.sweep import engine, estimate, events, plan, results, runs
from blackwell.sweep.estimate import Guess
from blackwell.sweep.plan import Plan, Settings
from blackwell.sweep.points import Key

FAILED = 1
GUESS = Guess(135.0, 0.005)
"""By the runs of docs/performance.md."""

NOTE = "random weights, and acceptance that is simulated: a check of the engine on a card, not a figure of a model"


@dataclass(frozen=True)
class Ready:
    """A server that is ready, as the engine asks for it."""

    url: str
    start_s: float


@dataclass
class Servers:
    """The servers of a sweep, one at a time: those of the comparison of speeds, with their logs in ``logs``."""

    stock: str
    weights: Path
    logs: Path
    port: int
    running: Server | None = field(default=None, init=False)

    def start(self, settings: Settings, *, speculates: bool) -> Ready:
        """Start one and wait until it is ready; raises BenchError if it does not get there."""
        # Those of this plan are the deployed ones alone, which a machine without a deployment has none of.
        del settings
        name = PATCHED if speculates else BASE
        asked = speed_servers.Settings(self.stock, port=self.port, by_steps=True)
        server = speed_servers.made(asked, [name], self.weights, self.logs)[name]
        try:
            self.running = server.__enter__()
        except ServerError as error:
            raise BenchError(str(error)) from error
        return Ready(self.running.url, self.running.start_seconds)

    def stop(self) -> None:
        """Stop it, if one runs."""
        if self.running:
            self.running.stop()
            self.running = None

    def ended(self) -> str | None:
        """Why it does not run any more; None if it does."""
        status = self.running.process.poll() if self.running and self.running.process else 0
        return None if status is None else f"its first process ended with {status}"


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    made = Parser(prog="sweep.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("out", type=Path, metavar="OUT", help="directory of the run; made if it is not there")
    made.add_argument("--stock", default="", metavar="PYTHONPATH", help="what finds the unpatched SGLang")
    made.add_argument("--arms", nargs="+", default=(), metavar="ARM", help="some of those of fab bench (all)")
    made.add_argument("--levels", nargs="+", type=int, default=LEVELS, metavar="C", help=f"clients at once {LEVELS}")
    made.add_argument("--repeats", type=int, default=3, help="points of an arm at a level (%(default)s)")
    made.add_argument("--window", type=float, default=3.0, metavar="S", help="shortest window in s (%(default)s)")
    made.add_argument("--prompt-tokens", type=int, default=256, help="of each request (%(default)s)")
    made.add_argument("--new-tokens", type=int, default=128, help="of each answer (%(default)s)")
    made.add_argument("--margin", type=float, default=plan.MARGIN, help="of the proof (%(default)s)")
    made.add_argument("--port", type=int, default=21000, help="of the servers (%(default)s)")
    made.add_argument("--commit", default="", help="commit of this project, for the fingerprint")
    made.add_argument("--dry-run", action="store_true", help="print how much it is and how long; start nothing")
    return made


def planned(options: argparse.Namespace) -> Plan:
    """The plan that the options ask for; raises BenchError if there cannot be one."""
    chosen = plan.expanded(options.arms, STEPS) if options.arms else plan.default_arms(STEPS)
    made = Plan(
        run=options.out.name,
        host=socket.gethostname(),
        steps=STEPS,
        arms=tuple(chosen),
        levels=tuple(sorted(options.levels)),
        contexts=(options.prompt_tokens,),
        repeats=options.repeats,
        window_s=options.window,
        new_tokens=options.new_tokens,
        prompts="random",
        margin=options.margin,
        cross_check=False,
        note=NOTE,
    )
    if found := plan.problems(made):
        raise BenchError("; ".join(found))
    most = max(made.levels) * (options.prompt_tokens + options.new_tokens)
    if max(made.levels) > MOST_REQUESTS or most > KV_TOKENS:
        raise BenchError(f"{max(made.levels)} clients do not fit: {MOST_REQUESTS} requests and {KV_TOKENS} tokens do")
    return made


def measured_on(options: argparse.Namespace, made: Plan) -> fingerprint.Fingerprint:
    """What the points are valid for; raises BenchError if a package is not what it should be, or there is no card."""
    cards = machine.cards()
    if wrong := machine.problem(1, len(cards)):
        raise BenchError(wrong)
    trees = {}
    for name, path in (("stock", options.stock), ("patched", os.environ.get("PYTHONPATH", ""))):
        folder = speed_servers.package(path)
        if folder is None or speed_servers.is_patched(folder) != (name == "patched"):
            raise BenchError(f"{'--stock' if name == 'stock' else 'PYTHONPATH'} is {path!r}, where no {name} sglang is")
        trees[name] = speed_servers.tree(folder)
    return fingerprint.made(
        {
            "gpus": cards[0],
            "patch_tree": trees["patched"],
            "commit": options.commit,
            "model": "8B Llama with random weights",
            "workload": {"prompts": made.prompts, "new_tokens": made.new_tokens},
        }
    )


def sweep(options: argparse.Namespace, made: Plan, found: fingerprint.Fingerprint) -> None:
    """Measure what is missing; raises BenchError if that cannot be done."""
    log = events.Events(options.out)
    runs.begin(options.out, made, runs.Begun(found, GUESS))
    (options.out / "logs").mkdir(exist_ok=True)
    workload = Workload(options.prompt_tokens, options.new_tokens)

    def asked(_context: int, clients: int, repeat: int, client: int) -> Iterator[Request]:
        return workload.stream(clients, repeat, client)

    with ExitStack() as stack:
        weights = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="models-")))
        models.write_random(weights)
        kept = stack.enter_context(store.writing(options.out)).open(runs.POINTS, Key, found)
        servers = Servers(options.stock, weights, options.out / "logs", options.port)
        done = engine.Sweep(made, kept, servers, asked, log, GUESS)
        status, reason = events.FAILED, "it was interrupted"
        try:
            log.begin()
            done.run()
            status, reason = events.DONE, ""
        except BenchError as error:
            reason = str(error)
            raise
        finally:
            results.write(options.out, made, done.policies, [one for at in done.policies for one in done.levels(*at)])
            log.end(status, reason)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    options = parser().parse_args(arguments)
    # As an exception, the signal also ends the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        made = planned(options)
        expected = estimate.expected(made)
        if options.dry_run:
            seconds = estimate.whole(made, expected, GUESS)
            sys.stdout.write(f"{len(expected)} points of {', '.join(made.arms)}: about {seconds / 60:.0f} minutes\n")
            return 0
        found = measured_on(options, made)
    except (BenchError, OSError) as error:
        sys.stderr.write(f"sweep.py: {error}\n")
        return WRONG
    try:
        sweep(options, made, found)
    except (BenchError, OSError) as error:
        sys.stderr.write(f"sweep.py: {error}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
