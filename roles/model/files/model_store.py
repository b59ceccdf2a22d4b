"""Models on a host's disk: where a fetched one stands, what is still missing of one, and whether its files are right.

A model is complete or absent: its directory gets its name when every file in it has been checked.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hub_listing import GIT_BLOB, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hub_listing import HubFile, Source

RECORD = ".fetched.json"
"""In a complete model: where it came from, and size and hash of each file."""

SCRATCH = ".cache"
"""In a partial one: where huggingface_hub keeps what it knows of the files, and those that are not whole yet."""

BLOCK = 1 << 20


def partial(model: Path) -> Path:
    """Where the files of a model gather until they are complete; on the same file system."""
    return model.with_name(f".partial-{model.name}")


def size(path: Path) -> int:
    """Bytes in a file; 0 if it is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def begun(file: HubFile, directory: Path) -> list[Path]:
    """What came of a file so far, as huggingface_hub 0.36 names it (_local_folder.py: incomplete_path)."""
    kept = directory / SCRATCH / "huggingface" / "download" / file.path
    return list(kept.parent.glob(f"*.{file.digest}.incomplete"))


def bytes_missing(files: Iterable[HubFile], directory: Path) -> int:
    """Bytes of the files that are not below a directory yet; a file that has come in part lacks the rest."""

    def there(file: HubFile) -> int:
        return size(directory / file.path) or sum(map(size, begun(file, directory)))

    return sum(max(0, file.size - there(file)) for file in files)


def bytes_free(path: Path) -> int:
    """Bytes that may be written where a path is or would be."""
    while not path.exists():
        path = path.parent
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


def amount(count: int) -> str:
    """A number of bytes for people, with three digits or more."""
    for unit, bytes_in_it in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= bytes_in_it:
            return f"{count / bytes_in_it:.1f} {unit}"
    return f"{count} bytes"


def space_problem(what: str, directory: Path, needed: int, free: int) -> str:
    """Why something does not fit; empty if it does."""
    if needed <= free:
        return ""
    return (
        f"{what}: {amount(needed)} are still to be fetched, and {directory} has {amount(free)} free: "
        "make room, or name a larger file system in model_directory"
    )


def digest_of(path: Path, algorithm: str) -> str:
    """The hash of a file as the hub gives it; the file is on the disk afterwards."""
    with path.open("rb") as file:
        if algorithm == GIT_BLOB:
            found = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
        else:
            found = hashlib.sha256()
        while block := file.read(BLOCK):
            found.update(block)
        os.fsync(file.fileno())
    return found.hexdigest()


def fault(file: HubFile, directory: Path) -> str:
    """What is wrong with a file below a directory, a clause; empty if it is what the hub has."""
    path = directory / file.path
    if not path.is_file():
        return f"{file.path} is missing"
    if (found := size(path)) != file.size:
        return f"{file.path} has {found} bytes, the hub has {file.size}"
    if (digest := digest_of(path, file.algorithm)) != file.digest:
        return f"{file.path} is damaged: its {file.algorithm} is {digest}, the hub has {file.digest}"
    return ""


def damage(model: Path) -> str:
    """What of a model is not as it was fetched, by the names and sizes of its files; empty if all is."""
    try:
        record = json.loads((model / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"{model} is there and was not fetched: move it away, or name it as a path and not as a repository"
    changed = [file["path"] for file in record["files"] if size(model / file["path"]) != file["size"]]
    return (
        f"{model} is not as it was fetched ({changed[0]} is another): remove it, and it is fetched anew"
        if changed
        else ""
    )


def _sync_directory(directory: Path) -> None:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def finish(model: Path, source: Source, files: Sequence[HubFile]) -> None:
    """Gives a partial model whose files are right its name."""
    gathered = partial(model)
    record = {
        "repository": source.repository,
        "revision": source.revision,
        "hub": source.hub,
        "files": [vars(file) for file in files],
    }
    path = gathered / RECORD
    with path.open("w", encoding="utf-8") as written:
        written.write(json.dumps(record, indent=1) + "\n")
        written.flush()
        os.fsync(written.fileno())
    for top, _, _ in os.walk(gathered):
        _sync_directory(Path(top))
    try:
        gathered.rename(model)
    except OSError as error:
        raise ModelError(f"{gathered} cannot be renamed to {model}: {error.strerror}") from error
    _sync_directory(model.parent)
