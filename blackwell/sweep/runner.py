"""The sweep as a unit of systemd of its own, which no connection has to stay up for."""

from pathlib import Path

from blackwell.bench.errors import BenchError

from . import service, systemd
from .systemd import RUNNER

LOG = "log"
PROGRAM = "program.zip"
STOP_SECONDS = 120


def words(run: Path, python: str) -> list[str]:
    """The command that starts the sweep of a run directory; ``python``: the interpreter of the release."""
    log = run / LOG
    properties = {
        "Type": "exec",
        "Description": f"Sweep of fab bench, {run.name}",
        "WorkingDirectory": run,
        "Environment": f"PYTHONPATH={run / PROGRAM} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1",
        "StandardOutput": f"append:{log}",
        "StandardError": f"append:{log}",
        "TimeoutStopSec": STOP_SECONDS,
        "LimitNOFILE": 1048576,
        # After success, failure and kill -9 alike.
        "ExecStopPost": f"{python} -m blackwell.sweep.put_back {run}",
    }
    return [
        "systemd-run",
        f"--unit={RUNNER}",
        *(f"--property={name}={value}" for name, value in properties.items()),
        *(python, "-m", "blackwell.sweep.main", str(run)),
    ]


def start(run: Path, python: str) -> None:
    """Start the sweep; raises BenchError if one is under way, naming it."""
    if (other := service.sweeping()) is not None:
        raise BenchError(f"a sweep is under way on this host: {other}; follow it (bench.follow) or end it (bench.stop)")
    systemd.forget_failure(RUNNER)
    systemd.run(words(run, python))


def stop() -> None:
    """End the sweep that is under way, and wait until it has."""
    systemd.run(["systemctl", "stop", RUNNER], 2 * STOP_SECONDS)
