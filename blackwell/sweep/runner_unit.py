"""A sweep as a unit of systemd, for which no connection has to stay up and after which the service comes back."""

import re
from pathlib import Path

from blackwell.bench.errors import BenchError

from . import systemd
from .events import Events
from .systemd import RUNNER

MAIN, PUT_BACK = "blackwell.sweep.main", "blackwell.sweep.put_back"
LOG, PROGRAM = "log", "program.zip"
STOP_SECONDS = 180
"""Time for the sweep to end when it is told to, and once more for its server to be gone."""

OPEN_FILES = 1 << 20
PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")
"""Paths that mean the same everywhere in a unit and in systemd-run's arguments."""


def words(run: Path, python: str, program: Path, module: str = MAIN) -> list[str]:
    """The command that starts the sweep of a run's directory.

    ``python``: the interpreter. ``program``: the zip that it imports ``module`` from. Raises BenchError for a path that
    systemd would read in another way.
    """
    for path in (run, python, program):
        if not PLAIN.fullmatch(str(path)) or not Path(path).is_absolute():
            raise BenchError(f"{path} is no absolute path of letters, digits and _ . / + -, as a sweep's have to be")
    # Nothing is imported from the directory in which it runs.
    program_of = f"{python} -P -m"
    properties = {
        "Type": "exec",
        "Description": f"Sweep of a bench, {run.name}",
        "WorkingDirectory": run,
        "StandardOutput": f"append:{run / LOG}",
        "StandardError": f"append:{run / LOG}",
        "LimitNOFILE": OPEN_FILES,
        # The first process is told to stop, and what it has started is for it to end; what is left is killed.
        "KillMode": "mixed",
        "TimeoutStopSec": STOP_SECONDS,
        # After success and failure, after kill -9, and when it is stopped.
        "ExecStopPost": f"{program_of} {PUT_BACK} {run}",
    }
    environment = {"PYTHONPATH": program, "PYTHONUNBUFFERED": 1}
    return [
        *("systemd-run", "--quiet", "--collect", f"--unit={RUNNER}"),
        *(f"--property={name}={value}" for name, value in properties.items()),
        *(f"--setenv={name}={value}" for name, value in environment.items()),
        *(*program_of.split(), module, str(run)),
    ]


def start(run: Path, python: str, program: Path | None = None, module: str = MAIN) -> None:
    """Start the sweep of a run's directory; ``program``: by default the zip in there.

    Raises BenchError if one is under way, with its directory, and if systemd does not start it.
    """
    command = words(run, python, program or run / PROGRAM, module)
    refuse_a_second()
    Events(run).begin()
    try:
        systemd.run(command)
    except BenchError:
        # Two may have been started in the same moment.
        refuse_a_second()
        raise


def refuse_a_second() -> None:
    """Raises BenchError, with its directory, if a sweep is under way."""
    if (other := sweeping()) is not None:
        raise BenchError(
            f"a sweep is under way on this host, {other}: wait until it has ended, or end it (systemctl stop {RUNNER})"
        )


def sweeping() -> Path | None:
    """The directory of the run that is measured now, or whose service is being put back; None if there is none."""
    told = systemd.show(RUNNER, "ActiveState", "WorkingDirectory")
    return Path(told["WorkingDirectory"]) if told["ActiveState"] not in ("inactive", "failed") else None


def stop() -> bool:
    """End the sweep that is under way and wait until it has ended; the service is then being started.

    Returns whether there was one. Raises BenchError if it cannot be stopped.
    """
    under_way = sweeping() is not None
    systemd.stop(RUNNER)
    return under_way
