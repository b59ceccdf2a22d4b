"""Raw records of points as JSON lines, compressed or not: a line a point, the same bytes for the same records."""

import gzip
import io
import json
import zlib
from pathlib import Path

from . import durable
from .errors import BenchError
from .points import ARMS, Name
from .records import Measurement, Poll, Record

COMPRESSED = ".gz"


def content(measurement: Measurement) -> dict:
    """What a line of a point has beside its parameters, as JSON can hold it."""
    records = sorted(measurement.records, key=lambda record: (record.began, record.client))
    return {
        "window": list(measurement.window),
        "polls": [[poll.at, poll.running, poll.queued] for poll in measurement.polls],
        "records": [_array(record) for record in records],
    }


def _array(record: Record) -> list:
    values = [record.client, record.began, record.ended, record.tokens, record.verified, int(record.aborted)]
    return [*values, record.retracted] if record.retracted else values


def pack(file: Path) -> None:
    """Compress a file, whose name gets another ending; one that is not there stays as it is."""
    if file.exists():
        durable.replace(packed(file), _compressed(file.read_bytes()))
        file.unlink()


def unpack(file: Path) -> None:
    """Undo ``pack``, unless there is an uncompressed file already."""
    if packed(file).exists() and not file.exists():
        durable.replace(file, _data(packed(file)))


def packed(file: Path) -> Path:
    """The name of a file when it is compressed."""
    return file.with_name(f"{file.name}{COMPRESSED}")


def _compressed(data: bytes) -> bytes:
    # gzip.compress writes another header from one Python to the next.
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed:
        packed.write(data)
    return out.getvalue()


def read(file: Path) -> dict[Name, Measurement]:
    """The points of a file; raises BenchError, naming file and line, if one is cut off or of another shape."""
    try:
        text = _data(file).decode()
    except UnicodeDecodeError as error:
        raise BenchError(f"{file} is cut off or not compressed text: {error}") from error
    points: dict[Name, Measurement] = {}
    for number, found in enumerate(text.splitlines(), start=1):
        try:
            name, measurement = _point(json.loads(found))
        except (ValueError, KeyError, TypeError) as error:
            raise BenchError(f"{file}: line {number} is cut off or holds no point of raw records: {error}") from error
        if name in points:
            raise BenchError(f"{file}: line {number} has {name} a second time")
        points[name] = measurement
    return points


def _data(file: Path) -> bytes:
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if file.suffix == COMPRESSED else data
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BenchError(f"{file} is cut off or not compressed text: {error}") from error
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error


def _point(found: dict) -> tuple[Name, Measurement]:
    if found["arm"] not in ARMS:
        raise ValueError(f"arm is {found['arm']!r}")
    begin, end = map(_number, found["window"])
    if not begin < end:
        raise ValueError("the window is empty")
    polls = [Poll(_number(at), _whole(running), _whole(queued)) for at, running, queued in found["polls"]]
    name = Name(found["arm"], _whole(found["c"]), _whole(found["repeat"]))
    return name, Measurement((begin, end), polls, [_record(*values) for values in found["records"]])


def _record(client: object, began: object, ended: object, *counts: object) -> Record:
    tokens, verified, aborted, *more = map(_whole, counts)
    (retracted,) = more or (0,)
    return Record(
        _whole(client), _number(began), _number(ended), tokens, verified, aborted=bool(aborted), retracted=retracted
    )


def _number(value: object) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no count")
    return value
