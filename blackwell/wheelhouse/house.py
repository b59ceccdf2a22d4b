"""What a wheelhouse is: the wheels that a host without a package index installs one SGLang release from.

A release and variant are data: ``roles/sglang/files/locks/sglang-<release>-<variant>.txt`` pins the third-party
packages and ``patches/sglang-<release>/manifest.json`` names SGLang's own wheel.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from blackwell import paths
from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.pins import Pin, parse_lock
from blackwell.wheelhouse.standin import standin_sources
from blackwell.wheelhouse.variants import Variant, check_pins, variant

LAYOUT = 1
"""Number of the archive's layout; part of the key, so that another layout makes new archives."""


@dataclass(frozen=True)
class Wheelhouse:
    """The wheelhouse of one release and variant."""

    release: str
    variant: Variant
    root: Path
    """A checkout."""

    directory: Path
    """Where archives and downloaded wheels are kept."""

    @property
    def name(self) -> str:
        """Return the stem of every file that belongs to this wheelhouse."""
        return f"sglang-{self.release}-{self.variant.name}"

    @property
    def requirements(self) -> Path:
        """Return the file that the lock is made from."""
        return self.root / "roles/sglang/files/locks" / f"{self.name}.in"

    @property
    def lock(self) -> Path:
        """Return the lock: exact versions with hashes of all third-party packages."""
        return self.requirements.with_suffix(".txt")

    @property
    def manifest(self) -> Path:
        """Return the manifest of the release's patch series."""
        return self.root / f"patches/sglang-{self.release}/manifest.json"

    @property
    def tar(self) -> Path:
        """Return the archive."""
        return self.directory / f"{self.name}.tar"

    @property
    def stamp(self) -> Path:
        """Return the file that says what the archive was made from."""
        return self.directory / f"{self.name}.json"


def wheelhouse(release: str, variant_name: str) -> Wheelhouse:
    """Return the wheelhouse of this checkout and this user's cache; raise WheelhouseError for one that is not known."""
    house = Wheelhouse(release, variant(variant_name), paths.ROOT, paths.cache() / "wheelhouse")
    if not house.requirements.is_file():
        known = ", ".join(f"{other.release} {other.variant.name}" for other in all_wheelhouses()) or "none"
        raise WheelhouseError(f"no packages are listed for SGLang {release} {variant_name}; known: {known}")
    return house


def all_wheelhouses(root: Path = paths.ROOT) -> Iterator[Wheelhouse]:
    """Yield the wheelhouse of every release and variant that the checkout lists packages for, by name."""
    for path in sorted((root / "roles/sglang/files/locks").glob("sglang-*.in")):
        match = re.fullmatch(r"sglang-(?P<release>.+)-(?P<variant>[^-]+)", path.stem)
        if match:
            yield Wheelhouse(match["release"], variant(match["variant"]), root, paths.cache() / "wheelhouse")


def third_party_pins(house: Wheelhouse) -> list[Pin]:
    """Return the pins of the lock; raise WheelhouseError if it is missing, malformed or breaks the variant's rules."""
    pins = parse_lock(_read(house.lock).decode(), house.lock)
    check_pins(house.variant, pins, house.lock)
    return pins


def sglang_pin(house: Wheelhouse) -> Pin:
    """Return SGLang's own wheel as the manifest names it; raise WheelhouseError if the manifest does not."""
    try:
        base = json.loads(_read(house.manifest))["base"]
        return Pin(base["package"], base["version"], base["sha256"], base["wheel"])
    except (ValueError, KeyError, TypeError) as error:
        raise WheelhouseError(f"{house.manifest} does not name SGLang's wheel: {error!r}") from error


def key(house: Wheelhouse) -> str:
    """Return the SHA-256 of everything that the archive's content depends on."""
    digest = hashlib.sha256(f"layout {LAYOUT}\n{sglang_pin(house)}\n".encode())
    for path in (house.lock, *standin_sources(house.root)):
        content = _read(path)
        digest.update(f"{path.relative_to(house.root)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise WheelhouseError(f"{path} is missing") from None
