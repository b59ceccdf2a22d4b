"""This project's package as a zip that Python imports from, wherever it was imported from itself."""

import io
import zipfile
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.resources.abc import Traversable

import blackwell

SUFFIXES = (".py", ".jsonl")
MADE = (1980, 1, 1, 0, 0, 0)
"""Of every file in the zip, so that the same files are the same bytes."""


def zipped(parts: Sequence[str]) -> bytes:
    """The zip of some files and directories of the package."""
    root, made = resources.files(blackwell), io.BytesIO()
    files = dict(found for part in parts for found in _files(root / part, part))
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, file in sorted(files.items()):
            name = zipfile.ZipInfo(f"blackwell/{path}", MADE)
            name.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(name, file.read_bytes())
    return made.getvalue()


def _files(at: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    if at.is_dir():
        for child in at.iterdir():
            yield from _files(child, f"{path}/{child.name}")
    elif path.endswith(SUFFIXES):
        yield path, at
