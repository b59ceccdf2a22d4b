"""The zip that a sweep runs from on a host."""

import io
import zipfile
from pathlib import Path

import blackwell

PARTS = ("__init__.py", "locks.py", "bench", "sweep")
"""Of this package: what imports nothing of the rest."""

SUFFIXES = (".py", ".jsonl")
MADE = (1980, 1, 1, 0, 0, 0)
"""Of every file in the zip, so that the same files are the same bytes."""


def packed() -> bytes:
    """The zip, with this package as it is now."""
    root = Path(blackwell.__file__).parent
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(file for part in PARTS for file in _files(root / part)):
            name = zipfile.ZipInfo(f"blackwell/{file.relative_to(root)}", MADE)
            name.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(name, file.read_bytes())
    return found.getvalue()


def _files(part: Path) -> list[Path]:
    return [part] if part.is_file() else [file for file in part.rglob("*") if file.suffix in SUFFIXES]
