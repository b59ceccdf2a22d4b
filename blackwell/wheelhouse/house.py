"""What a wheelhouse is: the wheels that a host without a package index installs one release of a product from.

A release and variant are data: ``<product>-<release>-<variant>.txt`` in the product's directory of locks pins the
third-party packages, and SGLang's own wheel is named by ``patches/sglang-<release>/manifest.json``.
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
from blackwell.wheelhouse.products import PRODUCTS, SGLANG, Product
from blackwell.wheelhouse.standin import standin_sources
from blackwell.wheelhouse.variants import Variant, check_pins, variant

LAYOUT = 1
"""Number of the archive's layout; part of the key, so that another layout makes new archives."""


@dataclass(frozen=True)
class Wheelhouse:
    """The wheelhouse of one product, release and variant."""

    release: str
    variant: Variant
    root: Path
    """A checkout."""

    directory: Path
    """Where archives and downloaded wheels are kept."""

    product: Product = SGLANG

    @property
    def name(self) -> str:
        """Return the stem of every file that belongs to this wheelhouse."""
        return f"{self.product.name}-{self.release}-{self.variant.name}"

    @property
    def requirements(self) -> Path:
        """Return the file that the lock is made from."""
        return self.root / self.product.locks / f"{self.name}.in"

    @property
    def lock(self) -> Path:
        """Return the lock: exact versions with hashes of all third-party packages."""
        return self.requirements.with_suffix(".txt")

    @property
    def lock_command(self) -> str:
        """Return the command that makes the lock."""
        product = "" if self.product == SGLANG else f"--product {self.product.name} "
        return f"scripts/wheelhouse lock {product}--release {self.release} --variant {self.variant.name}"

    @property
    def manifest(self) -> Path:
        """Return the file that names the product's own wheel; the checkout itself if the lock has all of it."""
        return self.root / self.product.manifest.format(release=self.release)

    @property
    def tar(self) -> Path:
        """Return the archive."""
        return self.directory / f"{self.name}.tar"

    @property
    def stamp(self) -> Path:
        """Return the file that says what the archive was made from."""
        return self.directory / f"{self.name}.json"


def wheelhouse(release: str, variant_name: str, product: Product = SGLANG) -> Wheelhouse:
    """Return the wheelhouse of this checkout and this user's cache; raise WheelhouseError for one that is not known."""
    house = Wheelhouse(release, variant(variant_name), paths.ROOT, paths.cache() / "wheelhouse", product)
    if not house.requirements.is_file():
        others = [other for other in all_wheelhouses() if other.product == product]
        known = ", ".join(f"{other.release} {other.variant.name}" for other in others) or "none"
        raise WheelhouseError(f"no packages are listed for {product.title} {release} {variant_name}; known: {known}")
    return house


def all_wheelhouses(root: Path = paths.ROOT) -> Iterator[Wheelhouse]:
    """Yield the wheelhouse of every product, release and variant that the checkout lists packages for, by name."""
    directory = paths.cache() / "wheelhouse"
    for product in PRODUCTS:
        for path in sorted((root / product.locks).glob(f"{product.name}-*.in")):
            match = re.fullmatch(rf"{product.name}-(?P<release>.+)-(?P<variant>[^-]+)", path.stem)
            if match:
                yield Wheelhouse(match["release"], variant(match["variant"]), root, directory, product)


def third_party_pins(house: Wheelhouse) -> list[Pin]:
    """Return the pins of the lock; raise WheelhouseError if it is missing, malformed or breaks the variant's rules."""
    if not house.lock.is_file():
        raise WheelhouseError(f"{house.lock} is missing: make it with {house.lock_command}")
    pins = parse_lock(_read(house.lock).decode(), house.lock)
    check_pins(house.variant, pins, house.lock)
    return pins


def own_pins(house: Wheelhouse) -> list[Pin]:
    """Return the wheels that are not in the lock and come from an index too."""
    return [sglang_pin(house)] if house.product.manifest else []


def sglang_pin(house: Wheelhouse) -> Pin:
    """Return SGLang's own wheel as the manifest names it; raise WheelhouseError if the manifest does not."""
    try:
        base = json.loads(_read(house.manifest))["base"]
        return Pin(base["package"], base["version"], base["sha256"], base["wheel"])
    except (ValueError, KeyError, TypeError) as error:
        raise WheelhouseError(f"{house.manifest} does not name SGLang's wheel: {error!r}") from error


def key(house: Wheelhouse) -> str:
    """Return the SHA-256 of everything that the archive's content depends on."""
    pins = "".join(f"{pin}\n" for pin in own_pins(house))
    digest = hashlib.sha256(f"layout {LAYOUT}\n{pins}".encode())
    for path in (house.lock, *(standin_sources(house.root) if house.variant.standin else ())):
        content = _read(path)
        digest.update(f"{path.relative_to(house.root)} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise WheelhouseError(f"{path} is missing") from None
