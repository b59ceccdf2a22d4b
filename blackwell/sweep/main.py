"""The sweep of one run directory: ``python -m blackwell.sweep.main RUN``, as ``runner_unit`` starts it.

Exits with 0 if every point was measured, 1 if something stood in the way, 3 if it was stopped.
"""

import signal
import sys
from pathlib import Path
from types import FrameType

from blackwell.bench import arms, store
from blackwell.bench.errors import BenchError

from . import deployed, plan, prompts, results, runs
from .cross_check import Checks
from .engine import Sweep
from .events import DONE, FAILED, STOPPED, Events
from .points import Key
from .service import Host

FAILURE, STOP = 1, 3


class StopError(Exception):
    """The sweep was told to stop."""


def _stop(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise StopError


def main() -> int:
    """Command line; returns the exit status."""
    run = Path(sys.argv[1])
    signal.signal(signal.SIGTERM, _stop)
    events = Events(run)
    status, reason, code = FAILED, "", FAILURE
    try:
        sweep(run, events)
        status, code = DONE, 0
    except BenchError as error:
        reason = str(error)
    except OSError as error:
        reason = f"{type(error).__name__}: {error}"
    except StopError:
        status, reason, code = STOPPED, "it was told to stop", STOP
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        events.end(status, reason)
    except BenchError as error:
        # A full disk: the log may still take it.
        print(f"the sweep ended ({status}: {reason}), and that cannot be written: {error}", flush=True)
    return code


def sweep(run: Path, events: Events) -> None:
    """Measure what a run lacks; raises BenchError if that cannot be done."""
    wanted, begun, found = plan.read(run), runs.begun(run), deployed.kept(run)
    if found is None:
        raise BenchError(f"{run} does not say what was deployed when it began")
    events.add("prompts", prompts=wanted.prompts)
    made = prompts.made(wanted, prompts.model(found.argv, found.user, found.group))
    prompts.keep(run, made.made_of)
    with store.writing(run) as writer:
        kept = writer.open(runs.POINTS, Key, begun.fingerprint)
        host = Host(found, [arms.steps(arm) for arm in wanted.speculative])
        done = Sweep(wanted, kept, host, made.asked, events, begun.guess, Checks(run, made.asked))
        try:
            done.run()
        finally:
            levels = [level for at in done.policies for level in done.levels(*at)]
            results.write(run, wanted, done.policies, levels)


if __name__ == "__main__":
    sys.exit(main())
