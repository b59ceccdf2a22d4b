"""Runs that have come home: ``results/HOST/RUN``."""

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fabric import Connection

from blackwell import paths, remote
from blackwell.host_errors import HostError
from blackwell.inventory import Host
from blackwell.sweep import deployed, results, runner_unit
from blackwell.sweep.runs import ROOT, directories

RESULTS = paths.ROOT / "results"

STAYS_THERE = (runner_unit.PROGRAM, deployed.FILE)
"""Of a run, what only its host needs."""


def fetch(connection: Connection, host: Host, run: str, to: Path = RESULTS) -> Path:
    """Bring a run home and return its directory; what was there under its name is replaced once all has come.

    Raises HostError if it cannot be read there or written here.
    """
    target = to / host.name / run
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{run}.", dir=target.parent) as scratch:
            archive = Path(scratch) / "run.tar.gz"
            words = ["tar", "-C", str(ROOT), *(f"--exclude={name}" for name in STAYS_THERE), "-cz", run]
            with archive.open("wb") as file:
                remote.stream(connection, host, words, file.write)
            # GNU tar leaves no member outside the directory, which Python's own learned after 3.11.2 only.
            subprocess.run(
                ["tar", "-C", scratch, "-xzf", archive, "--no-same-owner"], capture_output=True, text=True, check=True
            )
            if target.exists():
                target.rename(Path(scratch) / "before")
            (Path(scratch) / run).rename(target)
    except OSError as error:
        raise HostError(f"{host.name}: run {run} cannot be brought to {target}: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr.strip().splitlines() or ["tar failed"])[-1]
        raise HostError(f"{host.name}: run {run} cannot be brought to {target}: {said}") from error
    return target


def here(host: str, run: str, of: Path = RESULTS) -> Path:
    """A run that has come home, the newest one without a name; raises HostError if there is none."""
    known = directories(of / host)
    if run and of / host / run not in known:
        raise HostError(f"{host}: run {run} is not in {of / host}: fetch it (fab -H {host} bench.fetch)")
    if not known:
        raise HostError(f"{host}: no run is in {of / host}: fab -H {host} bench makes one")
    return of / host / run if run else known[-1]


def outcome(run: Path) -> Mapping:
    """Policy and proof of a run that has come home, empty where there is none; raises HostError if one is broken."""
    return {"policy": _read(run / results.POLICY), "proof": _read(run / results.PROOF)}


def _read(file: Path) -> dict:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise HostError(f"{file} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise HostError(f"{file} is no object")
    return found
