"""The archive: the same content gives the same bytes, and a reader never sees half of it."""

import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

from blackwell.wheelhouse.store import sha256_of

Content = Mapping[str, bytes | Path]
"""Name in the archive -> bytes, or the file that holds them."""

MODE = 0o644


def checksums(texts: Mapping[str, bytes], files: Mapping[str, str]) -> bytes:
    """Return what ``sha256sum --check`` reads: texts by their content, files by their known hexadecimal SHA-256."""
    digests = {name: _sha256(text) for name, text in texts.items()} | dict(files)
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items())).encode()


def write_tar(target: Path, content: Content, scratch: Path) -> str:
    """Write an uncompressed archive, entries sorted by name and without times or owners; return its SHA-256 in hex.

    It is made in ``scratch``, of the same file system, and replaces ``target`` only when it is whole and on the disk.
    Raises OSError that names the archive.
    """
    partial = scratch / target.name
    try:
        with partial.open("wb") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
                for name in sorted(content):
                    _add(archive, name, content[name])
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OSError(error.errno, error.strerror, error.filename or str(target)) from error
    digest = sha256_of(partial)
    partial.replace(target)
    return digest


def _add(archive: tarfile.TarFile, name: str, content: bytes | Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode = MODE
    if isinstance(content, bytes):
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
        return
    with content.open("rb") as file:
        entry.size = os.fstat(file.fileno()).st_size
        archive.addfile(entry, file)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
