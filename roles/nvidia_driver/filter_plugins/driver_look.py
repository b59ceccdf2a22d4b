"""Reads what the probe of the role printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

PART = re.compile(
    r"(lib)?nvidia-|lib(cuda1|cudadebugger1|nvcuvid1|nvoptix1)$|firmware-nvidia-|xserver-xorg-video-nvidia|cuda-drivers"
)
"""Names of the packages that a driver consists of."""

NO_PART = re.compile(r"(lib)?nvidia-(container|cuda|docker|fs|gds|fabricmanager|imex|driver-local-repo|driver-pinning)")
"""Names that begin like these and are no part of it, or have versions of their own."""

DRIVER_VERSION = re.compile(r"(?:\d+:)?(\d{3}\.\d+(?:\.\d+)?)(?:-|$)")
"""A package's version, whose first part is the driver's: 580.95.05-1 (Debian), 580.95.05-0ubuntu1."""

KERNEL = re.compile(r"(linux-image|proxmox-kernel|pve-kernel)-\d")
HEADERS = re.compile(r"(?:linux|proxmox|pve)-headers-(\d.*)")


def upstream(version: str) -> str:
    """The driver's version of a package's; empty if it is none."""
    found = DRIVER_VERSION.match(version)
    return found[1] if found else ""


def is_part(name: str, version: str) -> bool:
    """Whether a package is part of a driver and carries the driver's version."""
    return bool(PART.match(name) and not NO_PART.match(name) and upstream(version))


def archives(policy: Iterable[str]) -> dict[str, list[str]]:
    """Package to the archives of its installed version, from what ``apt-cache policy`` prints (apt-cache(8)).

    The version that is installed is marked with ``***``; the lines below it, up to the next version, name its archives:
    priority, URL, distribution or directory, architecture and ``Packages``. The file of dpkg's own is none.
    """
    found: dict[str, list[str]] = {}
    name, installed = "", False
    for line in policy:
        if line and not line.startswith(" "):
            name, installed = line.rstrip(":").split(":")[0], False
        elif re.match(r" (\*\*\*|   ) \S", line):
            installed = line.startswith(" ***")
        elif installed and (archive := re.match(r"\s+-?\d+ (\S+?)/? ", line)):
            found.setdefault(name, []).append(archive[1])
    return found


def nvidia_driver_seen(lines: Iterable[str]) -> dict[str, Any]:
    """What the probe printed, by what it means."""
    said: dict[str, list[str]] = {}
    for line in lines:
        # Without a strip on the left: apt's indentation has a meaning.
        key, _, value = line.rstrip().partition("=")
        said.setdefault(key, []).append(value)

    def word(key: str) -> str:
        return said.get(key, [""])[0].strip()

    packages = [[part.strip() for part in line.split("|")] for line in said.get("package", [])]
    # The second letter is the state (dpkg-query(1)): of hi, the package is installed and held.
    installed = {name: version for state, name, version in packages if state[1:2] == "i"}
    nvrm = word("nvrm")
    number = re.search(r" (\d{3}\.\d+(?:\.\d+)?) ", nvrm)
    return {
        "os": word("os"),
        "machine": word("machine"),
        "kernel": word("kernel"),
        "container": word("container").replace("none", ""),
        "loaded": number[1] if number else "",
        "open": "Open Kernel Module" in nvrm,
        "headers": word("headers") == "true",
        "header_releases": sorted(found[1] for name in installed if (found := HEADERS.fullmatch(name))),
        "kernels": sorted(f"{name} {version}" for name, version in installed.items() if KERNEL.match(name)),
        "unpackaged": said.get("unpackaged", []),
        "installed": {
            name: version for name, version in installed.items() if name.startswith(("cuda-keyring", "nvidia-driver-"))
        },
        "driver": {name: upstream(version) for name, version in installed.items() if is_part(name, version)},
        "held": sorted(name for state, name, _ in packages if state.startswith("hi")),
        "archives": archives(said.get("policy", [])),
        "sources": [dict(zip(("file", "line"), line.split(":", 1), strict=False)) for line in said.get("source", [])],
    }


class FilterModule:
    """Registers the filters with Ansible."""

    def filters(self) -> dict[str, Any]:
        """Filter name to function."""
        return {"nvidia_driver_seen": nvidia_driver_seen}
