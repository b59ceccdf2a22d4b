"""Wheels that were downloaded, each in a directory named after its SHA-256."""

import hashlib
import shutil
from pathlib import Path

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.pins import Pin


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stored(store: Path, pin: Pin) -> Path | None:
    """Return the wheel of a pin, its content checked, or None if the store has none.

    Raises WheelhouseError, naming the file and both hashes, if the content is not what the pin says.
    """
    wheels = sorted((store / pin.sha256).glob("*.whl"))
    if not wheels:
        return None
    check_sha256(wheels[0], pin)
    return wheels[0]


def put(store: Path, pin: Pin, wheel: Path) -> Path:
    """Move a checked wheel of the same file system into the store and return its path there."""
    check_sha256(wheel, pin)
    if pin.wheel not in {None, wheel.name}:
        raise WheelhouseError(f"the wheel of {pin} is called {wheel.name}, not {pin.wheel}")
    slot = store / pin.sha256
    shutil.rmtree(slot, ignore_errors=True)
    slot.mkdir(parents=True)
    return wheel.replace(slot / wheel.name)


def check_sha256(wheel: Path, pin: Pin) -> None:
    """Raise WheelhouseError if a file's SHA-256 is not the pin's."""
    found = sha256_of(wheel)
    if found != pin.sha256:
        raise WheelhouseError(f"{wheel} has SHA-256 {found}, but {pin} must have {pin.sha256}; delete it and run again")
