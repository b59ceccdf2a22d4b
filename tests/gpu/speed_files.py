"""What the comparison of speeds keeps, and goes on from when it is run again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from blackwell.bench import durable, fingerprint, points, raw, store, table
from blackwell.bench.errors import BenchError
from blackwell.bench.points import Name
from blackwell.bench.records import Measurement

SERVERS, STEPS, TABLE = "servers.json", "steps.json", "table.md"

ORIGIN = "origin"


@dataclass(frozen=True)
class Files:
    """Names of the files of some points: their rows, and their raw records, which are compressed when all are there."""

    rows: str
    raw: str


COMPARED = Files("rows.json", "requests.jsonl")
CALIBRATION = Files("calibration.json", "calibration-requests.jsonl")


@dataclass
class Points:
    """Points in a directory; every one is on the disk when it was added. The rows are made from what is stored."""

    out: Path
    files: Files
    store: store.Store[Name]
    rows: list[dict] = field(default_factory=list)

    def add(self, name: Name, measurement: Measurement, origin: points.Origin) -> dict:
        """Keep a point, and return its row."""
        self.store.add(name, {ORIGIN: asdict(origin), **raw.content(measurement)})
        row = points.row(name, measurement, origin)
        self.rows.append(row)
        self.write_rows()
        return row

    def write_rows(self) -> None:
        """Write the file of rows."""
        points.write(self.out / self.files.rows, self.rows)

    def missing(self, names: list[Name]) -> list[Name]:
        """Those of some points that are not there."""
        return self.store.missing(names)

    def pack(self) -> None:
        """Compress the raw records; nothing if there are none."""
        raw.pack(self.store.file)


@dataclass
class Kept:
    """What is in a directory: the points that are compared, those that gave the threshold, and what they are of."""

    out: Path
    what: Mapping
    compared: Points
    calibration: Points
    starts: list[dict] = field(default_factory=list)

    def started(self, servers: Mapping[str, Mapping]) -> None:
        """Keep what is measured, and the servers that have started for it."""
        self.starts.append(dict(servers))
        self._write_servers()

    def _write_servers(self) -> None:
        text = json.dumps({"what": self.what, "starts": self.starts}, indent=1)
        durable.replace(self.out / SERVERS, f"{text}\n".encode())

    def ended(self, pauses: Mapping[str, Sequence[float]]) -> None:
        """Keep the seconds of each server's long garbage collections beside what is kept of its start."""
        for name, seconds in pauses.items():
            self.starts[-1][name] = {**self.starts[-1][name], "gc_pauses_s": list(seconds)}
        self._write_servers()

    def keep_steps(self, steps: Mapping) -> None:
        """Keep the result of the load that steps."""
        durable.replace(self.out / STEPS, f"{json.dumps(steps, indent=1)}\n".encode())

    def has_steps(self) -> bool:
        """Whether the load that steps was measured."""
        return (self.out / STEPS).is_file()

    def finish(self, *, whole: bool) -> str:
        """Write the table, return it, and compress the raw records if all points are there."""
        text = table.render(self.compared.rows)
        durable.replace(self.out / TABLE, text.encode())
        if whole:
            self.compared.pack()
            self.calibration.pack()
        return text


@contextmanager
def begun(out: Path, what: Mapping, *, resume: bool) -> Iterator[Kept]:
    """What is kept in a directory, which is made, for this process alone; ``what`` says what is measured.

    Raises BenchError if there is something and it is not to be resumed, if it was of something else, or if another
    process is measuring into it.
    """
    with store.writing(out) as writer:
        files = [(out / of.rows, out / of.raw, raw.packed(out / of.raw)) for of in (COMPARED, CALIBRATION)]
        there = [file.name for file in (*files[0], *files[1], out / STEPS) if file.exists()]
        if there and not resume:
            raise BenchError(f"{out} holds {there[0]} already: name another directory, or go on with --resume")
        measured = fingerprint.made(what)
        compared, calibration = (_points(writer, of, measured) for of in (COMPARED, CALIBRATION))
        starts = _starts(out / SERVERS) if there else []
        yield Kept(out, what, compared, calibration, starts)


def _points(writer: store.Writer, files: Files, measured: fingerprint.Fingerprint) -> Points:
    file = writer.directory / files.raw
    raw.unpack(file)
    found = writer.open(files.raw, Name, measured)
    if found.others:
        raise BenchError(f"{'; '.join(found.left_out())}: name another directory")
    known = raw.read(file) if found.points else {}
    kept = Points(writer.directory, files, found, [_row(name, known[name], found.points[name]) for name in known])
    if kept.rows:
        # A run that was killed between the two has raw records without a row.
        kept.write_rows()
    return kept


def _row(name: Name, measurement: Measurement, content: Mapping) -> dict:
    try:
        origin = points.Origin(**content[ORIGIN])
    except (KeyError, TypeError) as error:
        raise BenchError(f"{name} does not say what it was measured on") from error
    return points.row(name, measurement, origin)


def _starts(file: Path) -> list[dict]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"{file} cannot be read: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("starts"), list):
        raise BenchError(f"{file} does not say which servers started")
    return found["starts"]
