"""What the comparison of speeds keeps, and goes on from when it is run again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blackwell.bench import points, raw, table
from blackwell.bench.errors import BenchError
from blackwell.bench.points import Name
from blackwell.bench.records import Measurement

SERVERS, STEPS, TABLE = "servers.json", "steps.json", "table.md"


@dataclass(frozen=True)
class Files:
    """Names of the files of some points: their rows, and their raw records, which are compressed when all are there."""

    rows: str
    raw: str

    @property
    def packed(self) -> str:
        """The raw records, compressed."""
        return f"{self.raw}{raw.COMPRESSED}"


COMPARED = Files("rows.json", "requests.jsonl")
CALIBRATION = Files("calibration.json", "calibration-requests.jsonl")


@dataclass
class Points:
    """Points in a directory; every one is written when it is added, so that a killed run keeps what it has."""

    out: Path
    files: Files
    rows: list[dict] = field(default_factory=list)
    raw: dict[Name, Measurement] = field(default_factory=dict)

    def add(self, name: Name, measurement: Measurement, origin: points.Origin) -> dict:
        """Keep a point, and return its row."""
        row = points.row(name, measurement, origin)
        raw.append(self.out / self.files.raw, name, measurement)
        self.raw[name] = measurement
        self.rows.append(row)
        points.write(self.out / self.files.rows, self.rows)
        return row

    def missing(self, names: list[Name]) -> list[Name]:
        """Those of some points that are not there."""
        return [name for name in names if name not in self.raw]

    def pack(self) -> None:
        """Compress the raw records; nothing if there are none."""
        if self.raw:
            raw.write(self.out / self.files.packed, self.raw)
            (self.out / self.files.raw).unlink(missing_ok=True)


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
        text = json.dumps({"what": self.what, "starts": self.starts}, indent=1)
        (self.out / SERVERS).write_text(text + "\n")

    def keep_steps(self, steps: Mapping) -> None:
        """Keep the result of the load that steps."""
        (self.out / STEPS).write_text(json.dumps(steps, indent=1) + "\n")

    def has_steps(self) -> bool:
        """Whether the load that steps was measured."""
        return (self.out / STEPS).is_file()

    def finish(self, *, whole: bool) -> str:
        """Write the table, return it, and compress the raw records if all points are there."""
        text = table.render(self.compared.rows)
        (self.out / TABLE).write_text(text)
        if whole:
            self.compared.pack()
            self.calibration.pack()
        return text


def begin(out: Path, what: Mapping, *, resume: bool) -> Kept:
    """What is kept in a directory, which is made; ``what`` says what is measured.

    Raises BenchError if there is something and it is not to be resumed, or if it was of something else.
    """
    out.mkdir(parents=True, exist_ok=True)
    names = [name for files in (COMPARED, CALIBRATION) for name in (files.rows, files.raw, files.packed)]
    there = [name for name in (*names, STEPS) if (out / name).exists()]
    if not there:
        return Kept(out, what, Points(out, COMPARED), Points(out, CALIBRATION))
    if not resume:
        raise BenchError(f"{out} holds {there[0]} already: name another directory, or go on with --resume")
    servers = _servers(out / SERVERS)
    for key, value in what.items():
        if (was := servers["what"].get(key)) != value:
            raise BenchError(f"{out} was measured with {key} {was!r}, not {value!r}: name another directory")
    return Kept(out, what, _continued(out, COMPARED), _continued(out, CALIBRATION), servers["starts"])


def _continued(out: Path, files: Files) -> Points:
    rows = points.read(out / files.rows) if (out / files.rows).exists() else []
    names = {points.name(row) for row in rows}
    file = out / files.raw
    if (out / files.packed).exists() and not file.exists():
        raw.write(file, raw.read(out / files.packed))
    found: dict[Name, Measurement] = {}
    if file.exists():
        raw.trim(file)
        # A run that was killed between the two has raw records without a row: they are measured again.
        found = {name: measurement for name, measurement in raw.read(file).items() if name in names}
        raw.write(file, found)
    points.recomputed(rows, found)
    return Points(out, files, rows, found)


def _servers(file: Path) -> dict:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"{file} cannot be read: {error}") from error
    kinds = {"what": dict, "starts": list}
    if not isinstance(found, dict) or any(not isinstance(found.get(key), kind) for key, kind in kinds.items()):
        raise BenchError(f"{file} does not say what was measured")
    return found
