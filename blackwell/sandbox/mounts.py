"""This machine's mounts."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mount:
    """One line of /proc/self/mounts."""

    source: str
    target: str
    kind: str
    options: tuple[str, ...]


def parse(text: str) -> tuple[Mount, ...]:
    """The mounts in a text in the format of /proc/self/mounts (fstab(5)), in order."""
    lines = (line.split(" ") for line in text.splitlines())
    return tuple(Mount(_plain(field[0]), _plain(field[1]), field[2], tuple(field[3].split(","))) for field in lines)


def current() -> tuple[Mount, ...]:
    """This machine's mounts now."""
    return parse(Path("/proc/self/mounts").read_text())


def at(path: Path) -> list[Mount]:
    """Mounts on the path itself and below it, the deepest first."""
    top = str(path)
    return [mount for mount in reversed(current()) if mount.target == top or mount.target.startswith(top + "/")]


def _plain(field: str) -> str:
    """Undo the octal escapes that the kernel writes for space, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
