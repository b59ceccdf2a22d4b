"""Exact versions of packages, and the lock file that holds them.

The lock is a requirements file for ``pip --require-hashes``: one line and one hash a package, since it is for one
platform only.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from blackwell.wheelhouse.errors import WheelhouseError

LINE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})")


@dataclass(frozen=True)
class Pin:
    """One wheel."""

    name: str
    """Normalized name of the package (PEP 503)."""

    version: str

    sha256: str
    """Hexadecimal digest of the wheel."""

    wheel: str | None = None
    """File name that the wheel must have; None if any will do."""

    @property
    def requirement(self) -> str:
        """Return the line of a requirements file that admits this wheel alone."""
        return f"{self.name}=={self.version} --hash=sha256:{self.sha256}"

    def __str__(self) -> str:
        """Return name and version as pip writes them."""
        return f"{self.name}=={self.version}"


def normalized(name: str) -> str:
    """Return a package's name as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_lock(text: str, source: Path) -> list[Pin]:
    """Return the pins of a lock in its order; raise WheelhouseError, naming ``source``, for any line that is none."""
    pins = []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        match = LINE.fullmatch(line)
        if match is None:
            raise WheelhouseError(f"{source}, line {number}, is not NAME==VERSION --hash=sha256:DIGEST: {line}")
        pins.append(Pin(normalized(match["name"]), match["version"], match["sha256"]))
    doubled = {pin.name for pin in pins if sum(other.name == pin.name for other in pins) > 1}
    if doubled:
        raise WheelhouseError(f"{source} pins {', '.join(sorted(doubled))} more than once")
    return pins


def render_lock(pins: Iterable[Pin], header: Iterable[str]) -> str:
    """Return the text of a lock, sorted by name; ``header`` lines become comments."""
    lines = [f"# {line}" for line in header]
    lines += [pin.requirement for pin in sorted(pins, key=lambda pin: pin.name)]
    return "\n".join(lines) + "\n"
