"""Points in a directory, each written once: a run that is killed, in whatever moment, goes on with what is missing.

A line of JSON a point: its parameters, the digest of the fingerprint that it was measured under, and what was measured.
What the digests stand for lies in ``fingerprints/``.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from blackwell import locks

from . import durable
from .errors import BenchError
from .fingerprint import Fingerprint, differences, parsed

LOCK, FINGERPRINTS = ".lock", "fingerprints"
FINGERPRINT = "fingerprint"
SHOWN_DIGITS = 12
"""Of a digest, so many tell two apart for a reader."""

Key = TypeVar("Key")
"""A frozen dataclass of a point's parameters; its text is the point in words."""


@dataclass(frozen=True)
class Found(Generic[Key]):
    """``points`` of one fingerprint, how many there are of ``others`` by digest, and the bytes of ``whole`` lines."""

    points: dict[Key, dict[str, Any]] = field(default_factory=dict)
    others: Counter = field(default_factory=Counter)
    whole: int = 0


def read(file: Path, kind: type[Key], digest: str) -> Found[Key]:
    """The points of a file, in the order in which they were written; none if there is no file.

    What follows the last line feed was being written when a run was killed, and is left out. Raises BenchError, naming
    file and line, for a line that is no point, or a point that is there twice under one fingerprint.
    """
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return Found()
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    found: Found[Key] = Found(whole=data.rfind(b"\n") + 1)
    seen: set[tuple[str, Key]] = set()
    for number, line in enumerate(data[: found.whole].splitlines(), start=1):
        at, of, content = _point(line, kind, f"{file}: line {number}")
        if (of, at) in seen:
            raise BenchError(f"{file}: line {number} has {at} a second time")
        seen.add((of, at))
        if of == digest:
            found.points[at] = content
        else:
            found.others[of] += 1
    return found


def _point(line: bytes, kind: type[Key], where: str) -> tuple[Key, str, dict[str, Any]]:
    names = [parameter.name for parameter in fields(kind)]
    try:
        content = json.loads(line)
        at, of = kind(**{name: content.pop(name) for name in names}), content.pop(FINGERPRINT)
        # A parameter that cannot be compared is none.
        hash(at)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BenchError(f"{where} holds no point with {', '.join([*names, FINGERPRINT])}") from error
    if not isinstance(of, str):
        raise BenchError(f"{where} holds no point with {', '.join([*names, FINGERPRINT])}")
    return at, of, content


@dataclass
class Store(Generic[Key]):
    """One file of points, open for writing: ``points`` are those of ``fingerprint``, by their parameters."""

    file: Path
    fingerprint: Fingerprint
    points: dict[Key, dict[str, Any]]
    others: Counter

    def add(self, at: Key, content: Mapping[str, Any]) -> None:
        """Write a point; it is on the disk when this returns.

        Raises BenchError if it is there already, or if the file cannot be written, and then nothing is added.
        """
        if at in self.points:
            raise BenchError(f"{self.file} has {at} already")
        if not self.points:
            _record(self.file.parent, self.fingerprint)
        line = {**asdict(at), FINGERPRINT: self.fingerprint.digest, **content}
        durable.append(self.file, json.dumps(line, separators=(",", ":")))
        self.points[at] = dict(content)

    def missing(self, plan: Iterable[Key]) -> list[Key]:
        """The points of a plan that are not there, in its order."""
        return [at for at in plan if at not in self.points]

    def left_out(self) -> list[str]:
        """The points of other fingerprints, which are kept, a sentence for each fingerprint without a full stop."""
        return [
            f"{self.file} keeps {count} point{'' if count == 1 else 's'} of fingerprint {digest[:SHOWN_DIGITS]}, "
            f"not counted here: {self._why(digest)}"
            for digest, count in self.others.items()
        ]

    def _why(self, digest: str) -> str:
        other = recorded(self.file.parent, digest)
        return "what it was is not recorded" if other is None else "; ".join(differences(other, self.fingerprint))


def _record(directory: Path, fingerprint: Fingerprint) -> None:
    if recorded(directory, fingerprint.digest) is None:
        folder = directory / FINGERPRINTS
        folder.mkdir(exist_ok=True)
        durable.sync_directory(directory)
        durable.replace(folder / f"{fingerprint.digest}.json", fingerprint.text.encode() + b"\n")


def recorded(directory: Path, digest: str) -> Fingerprint | None:
    """The fingerprint of a digest; None if the directory has none that is whole."""
    try:
        found = parsed((directory / FINGERPRINTS / f"{digest}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, BenchError):
        return None
    return found if found.digest == digest else None


@dataclass(frozen=True)
class Writer:
    """Who may write into a directory; ``writing`` makes it."""

    directory: Path

    def open(self, name: str, kind: type[Key], fingerprint: Fingerprint) -> Store[Key]:
        """The points of a file; what a killed run left unfinished at its end is cut off. Raises as ``read`` does."""
        file = self.directory / name
        found = read(file, kind, fingerprint.digest)
        if file.exists() and file.stat().st_size > found.whole:
            durable.cut(file, found.whole)
        return Store(file, fingerprint, found.points, found.others)


@contextmanager
def writing(directory: Path) -> Iterator[Writer]:
    """The right to write into a directory, which is made, for the length of a block or of the process.

    Raises BenchError if another process or block has it, which it names, and if there can be no such directory.
    """
    lock = directory / LOCK

    def refuse() -> None:
        raise BenchError(f"{directory} is being written by {_holder(lock)}: wait for it, or name another directory")

    with ExitStack() as stack:
        try:
            handle = stack.enter_context(locks.held(lock, refuse))
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        except OSError as error:
            raise BenchError(f"{directory} cannot be written: {error.strerror}") from error
        yield Writer(directory)


def _holder(lock: Path) -> str:
    try:
        found = json.loads(lock.read_text(encoding="utf-8"))
        pid, since = int(found["pid"]), time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(found["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        # It has the lock, and has not written yet who it is.
        return "another process"
    return f"process {pid} since {since}"
