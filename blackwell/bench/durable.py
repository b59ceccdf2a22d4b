"""Writes what must be there after a kill, a crash or a power cut: it is on the disk when a function returns."""

import os
from pathlib import Path

from .errors import BenchError

MODE = 0o644


def append(file: Path, line: str) -> None:
    """Add a line, given without its line feed, to a file that is made when absent.

    Raises BenchError, naming the file, if it cannot be written; the file is then as it was before.
    """
    handle = _opened(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        before = os.fstat(handle).st_size
        try:
            _write(handle, line.encode() + b"\n")
        except OSError as error:
            # Half a line would join the next one.
            os.ftruncate(handle, before)
            raise _unwritten(file, error) from error
    finally:
        os.close(handle)
    sync_directory(file.parent)


def replace(file: Path, data: bytes) -> None:
    """Give a file, made when absent, new content; it is never half written.

    Raises BenchError, naming the file, if it cannot be written; the file is then as it was before.
    """
    beside = file.with_name(f".{file.name}.new")
    handle = _opened(beside, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, file)
    try:
        _write(handle, data)
    except OSError as error:
        beside.unlink()
        raise _unwritten(file, error) from error
    finally:
        os.close(handle)
    beside.replace(file)
    sync_directory(file.parent)


def cut(file: Path, size: int) -> None:
    """Cut a file off after ``size`` bytes; raises BenchError, naming the file, if it cannot be written."""
    handle = _opened(file, os.O_WRONLY)
    try:
        os.ftruncate(handle, size)
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Put the names of a directory's files on the disk."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _opened(file: Path, flags: int, named: Path | None = None) -> int:
    try:
        return os.open(file, flags | os.O_CLOEXEC, MODE)
    except OSError as error:
        raise _unwritten(named or file, error) from error


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
    os.fsync(handle)


def _unwritten(file: Path, error: OSError) -> BenchError:
    return BenchError(f"{file} cannot be written: {error.strerror}")
