"""Locks that end with the process that holds them."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Hold the lock file, made when absent; yields its open descriptor. ``waiting`` is called when another process
    holds it.

    The holder may remove the file: whoever waited for it then starts over on the new one.
    """
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue
        try:
            _lock(handle, waiting)
            if _same(handle, path):
                yield handle
                return
        finally:
            os.close(handle)


def _lock(handle: int, waiting: Callable[[], None]) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waiting()
        fcntl.flock(handle, fcntl.LOCK_EX)


def _same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
