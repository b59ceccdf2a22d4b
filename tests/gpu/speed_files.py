"""What the comparison of speeds keeps, and goes on from when it is run again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blackwell.bench import points, raw, table
from blackwell.bench.errors import BenchError
from blackwell.bench.points import Name
from blackwell.bench.records import Measurement

ROWS, RAW, SERVERS, STEPS, TABLE = "rows.json", "requests.jsonl", "servers.json", "steps.json", "table.md"
PACKED = f"{RAW}{raw.COMPRESSED}"


@dataclass
class Kept:
    """What is in a directory; every point is written when it is added, so that a killed run keeps what it has."""

    out: Path
    what: Mapping
    rows: list[dict] = field(default_factory=list)
    raw: dict[Name, Measurement] = field(default_factory=dict)
    starts: list[dict] = field(default_factory=list)

    def add(self, name: Name, measurement: Measurement, origin: points.Origin) -> dict:
        """Keep a point, and return its row."""
        row = points.row(name, measurement, origin)
        raw.append(self.out / RAW, name, measurement)
        self.raw[name] = measurement
        self.rows.append(row)
        points.write(self.out / ROWS, self.rows)
        return row

    def missing(self, names: list[Name]) -> list[Name]:
        """Those of some points that are not there."""
        return [name for name in names if name not in self.raw]

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
        text = table.render(self.rows)
        (self.out / TABLE).write_text(text)
        if whole:
            raw.write(self.out / PACKED, self.raw)
            (self.out / RAW).unlink(missing_ok=True)
        return text


def begin(out: Path, what: Mapping, *, resume: bool) -> Kept:
    """What is kept in a directory, which is made; ``what`` says what is measured.

    Raises BenchError if there is something and it is not to be resumed, or if it was of something else.
    """
    out.mkdir(parents=True, exist_ok=True)
    there = [name for name in (ROWS, RAW, PACKED, STEPS) if (out / name).exists()]
    if not there:
        return Kept(out, what)
    if not resume:
        raise BenchError(f"{out} holds {there[0]} already: name another directory, or go on with --resume")
    servers = _servers(out / SERVERS)
    for key, value in what.items():
        if (was := servers["what"].get(key)) != value:
            raise BenchError(f"{out} was measured with {key} {was!r}, not {value!r}: name another directory")
    if (out / PACKED).exists() and not (out / RAW).exists():
        raw.write(out / RAW, raw.read(out / PACKED))
    return _continued(out, what, servers["starts"])


def _continued(out: Path, what: Mapping, starts: list[dict]) -> Kept:
    rows = points.read(out / ROWS) if (out / ROWS).exists() else []
    names = {points.name(row) for row in rows}
    found: dict[Name, Measurement] = {}
    if (out / RAW).exists():
        raw.trim(out / RAW)
        # A run that was killed between the two has raw records without a row: they are measured again.
        found = {name: measurement for name, measurement in raw.read(out / RAW).items() if name in names}
    points.recomputed(rows, found)
    raw.write(out / RAW, found)
    return Kept(out, what, rows, found, starts)


def _servers(file: Path) -> dict:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"{file} cannot be read: {error}") from error
    kinds = {"what": dict, "starts": list}
    if not isinstance(found, dict) or any(not isinstance(found.get(key), kind) for key, kind in kinds.items()):
        raise BenchError(f"{file} does not say what was measured")
    return found
