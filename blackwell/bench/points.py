"""A point of a comparison: one server, or one setting of it, under one load, once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import durable, window
from .errors import BenchError
from .records import Measurement

DYNAMIC = "dynamic"
ARMS = ("base", "full_stock", "full", "plain", "reduced1", "reduced2", DYNAMIC)
"""A server without speculation, one with, both unpatched; a patched one held at all, no, 1 and 2 steps, and let go."""

KEYS = (
    *("arm", "c", "repeat", "tok_s", "acceptance", "running_batch", "in_flight_min", "commit", "patch_tree", "gpu"),
    *("window_s", "requests", "retracted", "marked"),
)

HELD_SHARE = 0.8
"""Of its clients' requests a server counts nearly all: the rest is in prefill or on the way."""


@dataclass(frozen=True, order=True)
class Name:
    """Which point: an arm, its clients, and the repeat from 1."""

    arm: str
    c: int
    repeat: int

    def __str__(self) -> str:
        """The point in words."""
        return f"{self.arm} at {self.c}, repeat {self.repeat}"


@dataclass(frozen=True)
class Origin:
    """Of what and where a point was measured: commit of the project, hash of the patched source tree, card."""

    commit: str = ""
    patch_tree: str = ""
    gpu: str = ""


def row(name: Name, measurement: Measurement, origin: Origin) -> dict:
    """The row of a point, with ``KEYS``; times in seconds, ``marked`` says why it does not count or is None."""
    begin, end = measurement.window
    # Of a request that was decoded plainly in part, tokens per verification mean nothing.
    accepted = None if name.arm == DYNAMIC else window.acceptance(measurement.records)
    return {
        "arm": name.arm,
        "c": name.c,
        "repeat": name.repeat,
        "tok_s": round(window.tokens_per_second(measurement), 1),
        "acceptance": None if accepted is None else round(accepted, 3),
        "running_batch": window.running_batch(measurement.polls),
        "in_flight_min": window.fewest_in_flight(measurement),
        "commit": origin.commit,
        "patch_tree": origin.patch_tree,
        "gpu": origin.gpu,
        "window_s": round(end - begin, 3),
        "requests": sum(record.ended > begin and record.began < end for record in measurement.records),
        "retracted": sum(record.retracted for record in measurement.records),
        "marked": mark(name.c, measurement),
    }


def mark(clients: int, measurement: Measurement) -> str | None:
    """Why a point does not count, None if it does."""
    flying = window.fewest_in_flight(measurement)
    if flying != clients:
        return f"only {flying} of {clients} requests were in flight at one moment of the window"
    held = window.held(measurement.polls)
    if held < HELD_SHARE * clients:
        return f"the server counted {held:g} requests of {clients}: something held them back"
    return None


def name(found: Mapping) -> Name:
    """The point that a row is of."""
    return Name(found["arm"], found["c"], found["repeat"])


def recomputed(rows: Iterable[Mapping], measurements: Mapping[Name, Measurement]) -> list[dict]:
    """The rows anew from the raw records; what the records do not tell (commit, patch tree, card) is taken over.

    Raises BenchError if there is no record of a row, or no row of a record.
    """
    known = list(rows)
    names = [name(found) for found in known]
    for lacking in sorted(set(names) ^ set(measurements)):
        raise BenchError(f"{lacking}: there are {'no raw records' if lacking in names else 'raw records and no row'}")
    return [
        row(at, measurements[at], Origin(found["commit"], found["patch_tree"], found["gpu"]))
        for at, found in zip(names, known, strict=True)
    ]


def write(file: Path, rows: Sequence[Mapping]) -> None:
    """Write rows as JSON, a line each; the file is never half written."""
    durable.replace(file, ("[\n" + ",\n".join(json.dumps(found) for found in rows) + "\n]\n").encode())


def read(file: Path) -> list[dict]:
    """The rows of a file; raises BenchError, naming the file, if it is none of rows."""
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BenchError(f"{file} is not JSON: {error}") from error
    if not isinstance(rows, list):
        raise BenchError(f"{file} holds no list of rows")
    for number, found in enumerate(rows, start=1):
        problem = _problem(found)
        if problem:
            raise BenchError(f"{file}: row {number} {problem}")
    seen: set[Name] = set()
    for at in map(name, rows):
        if at in seen:
            raise BenchError(f"{file} has {at} twice")
        seen.add(at)
    return rows


def _problem(found: object) -> str | None:
    if not isinstance(found, dict):
        return "is not an object"
    if lacking := [key for key in KEYS if key not in found]:
        return f"lacks {', '.join(lacking)}"
    if found["arm"] not in ARMS:
        return f"has arm {found['arm']!r}, none of {', '.join(ARMS)}"
    wrong = [key for key in ("c", "repeat") if type(found[key]) is not int or found[key] < 1]
    wrong += [key for key in ("tok_s", "running_batch", "in_flight_min") if type(found[key]) not in (int, float)]
    return f"has {wrong[0]} {found[wrong[0]]!r}, which is no such number" if wrong else None
