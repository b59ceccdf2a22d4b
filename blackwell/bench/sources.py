"""Source files as a repository would show them: the standard library of this host's Python, which every host has."""

import hashlib
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import BenchError

CHARACTERS = 4_000_000
"""About a million tokens, each of which is a place where a prompt may begin in them."""

LEFT_OUT = frozenset(
    {
        *("test", "tests", "idlelib", "lib2to3", "turtledemo", "ensurepip", "encodings", "pydoc_data"),
        *("site-packages", "dist-packages", "__pycache__"),
    }
)
"""Directories of what is no part of the library, or what is tables and not code."""

MADE_ON_THE_HOST = ("_sysconfigdata", "config-")
"""How files and directories begin that differ from one host to the next."""

SHOWN_DIGITS = 16


@dataclass(frozen=True)
class Sources:
    """Files, each with a heading, and a digest of all of them as hexadecimal digits."""

    texts: tuple[str, ...]
    digest: str


def standard_library(characters: int = CHARACTERS) -> Sources:
    """About so many characters of the standard library."""
    return read(Path(sysconfig.get_path("stdlib")), characters)


def read(folder: Path, characters: int) -> Sources:
    """The Python files under a folder, in the order of their paths, until there are so many characters.

    Raises BenchError, naming it, if a file cannot be read or there is none.
    """
    texts, left, told = [], characters, hashlib.sha256()
    for file in _files(folder):
        if left <= 0:
            break
        name = file.relative_to(folder).as_posix()
        try:
            data = file.read_bytes()
        except OSError as error:
            raise BenchError(f"{file} cannot be read: {error.strerror}") from error
        told.update(f"{name}\0{len(data)}\0".encode() + data)
        texts.append(f"### {name}\n\n```python\n{data.decode(errors='replace').strip()}\n```\n\n")
        left -= len(texts[-1])
    if not texts:
        raise BenchError(f"{folder} holds no sources of Python's standard library, which prompts are lengthened with")
    return Sources(tuple(texts), told.hexdigest()[:SHOWN_DIGITS])


def _files(folder: Path) -> Iterator[Path]:
    found = ((path.relative_to(folder).parts, path) for path in folder.rglob("*.py"))
    for parts, path in sorted(found):
        if not LEFT_OUT.intersection(parts) and not any(part.startswith(MADE_ON_THE_HOST) for part in parts):
            yield path
