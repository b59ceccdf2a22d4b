"""Makes the archive of a wheelhouse, from the store and from what is missing in it."""

import fcntl
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.house import Wheelhouse, key, own_pins, third_party_pins
from blackwell.wheelhouse.pack import checksums, write_tar
from blackwell.wheelhouse.pins import Pin
from blackwell.wheelhouse.pip import download
from blackwell.wheelhouse.standin import build_standin
from blackwell.wheelhouse.store import put, sha256_of, stored
from blackwell.wheelhouse.variants import Variant

Say = Callable[[str], None]
"""Shows one line of progress."""

BATCH = 12
"""Wheels that one call of pip downloads: starting pip takes longer than most downloads, and a kill loses one batch."""

SCRATCH = "scratch-"
"""Beginning of the names of directories that hold what is not finished."""


def is_fresh(house: Wheelhouse) -> bool:
    """Return whether the archive is there, whole, and made from what the checkout holds now."""
    try:
        stamp = json.loads(house.stamp.read_text())
        return stamp["key"] == key(house) and stamp["sha256"] == sha256_of(house.tar)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def fetch(house: Wheelhouse, say: Say) -> bool:
    """Make the archive and return whether there was anything to do.

    Safe to kill at any point and to run twice at once. Raises WheelhouseError, or OSError with the file that could
    not be written.
    """
    pins = [*third_party_pins(house), *own_pins(house)]
    house.directory.mkdir(parents=True, exist_ok=True)
    with locked(house.directory / ".lock", say):
        if is_fresh(house):
            return False
        for leftover in house.directory.glob(f"{SCRATCH}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=house.directory) as scratch:
            wheels = collect(pins, house.directory / "wheels", Path(scratch), house.variant, say)
            _pack(house, wheels, Path(scratch), say)
    return True


def collect(pins: Sequence[Pin], store: Path, scratch: Path, kind: Variant, say: Say) -> dict[Pin, Path]:
    """Return the checked wheel of each pin, in the order of the pins; download what the store has not."""
    wheels = {pin: stored(store, pin) for pin in pins}
    missing = [pin for pin in pins if wheels[pin] is None]
    say(f"{len(pins) - len(missing)} of {len(pins)} wheels are here, {len(missing)} to download")
    done = 0
    for batch in batches(missing, kind):
        say(f"downloading {batch[0]}" + (f" to {batch[-1]}" if len(batch) > 1 else ""))
        for pin, wheel in _download(batch, scratch, kind).items():
            wheels[pin] = put(store, pin, wheel)
            done += 1
            say(f"{done}/{len(missing)} {wheels[pin].name} {megabytes(wheels[pin])}")
    return wheels


def batches(pins: Sequence[Pin], kind: Variant) -> list[list[Pin]]:
    """Return the groups that pip is called with: a pin with a place of its own alone and first, the others together."""
    apart = kind.fallback.keys() | kind.direct.keys()
    alone = [[pin] for pin in pins if pin.name in apart]
    others = [pin for pin in pins if pin.name not in apart]
    return alone + [others[start : start + BATCH] for start in range(0, len(others), BATCH)]


def megabytes(path: Path) -> str:
    """Return the size of a file in MB (10^6 bytes)."""
    return f"{path.stat().st_size / 1e6:.1f} MB"


@contextmanager
def locked(path: Path, say: Say) -> Iterator[None]:
    """Hold a lock that ends with this process; wait, and say so, while another process holds it."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is at work here; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(batch: Sequence[Pin], scratch: Path, kind: Variant) -> dict[Pin, Path]:
    """Return the downloaded wheel of each pin; one by one if the batch fails, so that the error names the package."""
    try:
        return _download_together(batch, scratch, kind)
    except WheelhouseError:
        if len(batch) == 1:
            raise
    return {pin: wheel for single in batch for pin, wheel in _download_together([single], scratch, kind).items()}


def _download_together(batch: Sequence[Pin], scratch: Path, kind: Variant) -> dict[Pin, Path]:
    directory = Path(tempfile.mkdtemp(dir=scratch))
    download(batch, directory, kind)
    by_digest = {sha256_of(wheel): wheel for wheel in directory.glob("*.whl")}
    return {pin: _called_as_pinned(by_digest[pin.sha256], pin) for pin in batch}


def _called_as_pinned(wheel: Path, pin: Pin) -> Path:
    """Return a wheel whose name has the version that its metadata have, without which pip does not install it."""
    name, _, *tags = wheel.name.split("-")
    return wheel.rename(wheel.with_name("-".join([name, pin.version, *tags])))


def _pack(house: Wheelhouse, wheels: dict[Pin, Path], scratch: Path, say: Say) -> None:
    before = key(house)
    built = dict([build_standin(house.root, scratch)]) if house.variant.standin else {}
    wheels = {**wheels, **built}
    local = {"local.txt": "".join(f"{pin.requirement}\n" for pin in built).encode()} if built else {}
    texts = {"lock.txt": house.lock.read_bytes(), **local}
    files = {f"wheels/{wheel.name}": pin.sha256 for pin, wheel in wheels.items()}
    content = {f"wheels/{wheel.name}": wheel for wheel in wheels.values()} | texts
    house.stamp.unlink(missing_ok=True)
    digest = write_tar(house.tar, {**content, "SHA256SUMS": checksums(texts, files)}, scratch)
    stamp = {"key": before, "sha256": digest}
    partial = scratch / house.stamp.name
    partial.write_text(json.dumps(stamp))
    partial.replace(house.stamp)
    say(f"{house.tar}: {len(wheels)} wheels, {megabytes(house.tar)}")
