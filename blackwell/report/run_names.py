"""Which run is meant by what was typed: a directory, ``HOST/RUN``, or ``HOST`` for its newest run."""

import difflib
import json
from pathlib import Path

from blackwell.bench_control.results import RESULTS
from blackwell.host_errors import HostError
from blackwell.sweep.runs import directories

from .run_files import PLAN, POINTS

SHOWN = 6


def find(option: str, text: str, results: Path = RESULTS) -> Path:
    """The directory of a run.

    Raises HostError, naming the option and what there is, if there is no such run.
    """
    if not text.strip():
        raise HostError(f"{option} is empty: name a run, as HOST, HOST/RUN or a directory")
    if text.startswith("-"):
        # A task's own --help is taken for the run that it needs.
        raise HostError(f"{option} {text}: no run has such a name (fab --help report)")
    for directory in (Path(text), results / text):
        if (directory / PLAN).is_file():
            return directory
        if runs := directories(directory):
            return max(runs, key=_began)
    raise HostError(f"{option} {text}: {_unknown(text, results)}")


def _began(directory: Path) -> tuple[float, str]:
    """When a run measured its first point, in seconds since the epoch; a run without one, when its plan was written."""
    try:
        with (directory / POINTS).open(encoding="utf-8") as lines:
            return float(json.loads(next(lines))["began"]), directory.name
    except (OSError, StopIteration, ValueError, KeyError, TypeError):
        return (directory / PLAN).stat().st_mtime, directory.name


def _unknown(text: str, results: Path) -> str:
    for directory in (Path(text), results / text):
        if directory.is_dir():
            return f"{directory} holds no run of fab bench: it has no {PLAN}, nor has a directory in it"
    names = sorted(str(run.relative_to(results)) for host in results.glob("*/") for run in directories(host))
    if not names:
        return f"no such directory, and {results} holds no run (fab -H HOST bench)"
    close = difflib.get_close_matches(text, [*names, *(name.partition("/")[0] for name in names)], n=1, cutoff=0.5)
    if close:
        return f"no such directory, and no such run in {results}: did you mean {close[0]}?"
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"no such directory, and no such run in {results}, which has {', '.join(names[:SHOWN])}{more}"
