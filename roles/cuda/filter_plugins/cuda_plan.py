"""Judges what apt says it would do for the toolkit, before it does it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

DRIVER = re.compile(
    r"""cuda-drivers|cuda(-runtime)?(-\d+-\d+)?$|cuda-compat-
    |nvidia-(?!cuda-)|libnvidia-|libcuda1$|xserver-xorg-video-nvidia
    |(linux|proxmox|pve)-(image|headers|modules|kernel)|(.*-)?dkms$""",
    re.VERBOSE,
)
"""Names of what belongs to a driver or to a kernel, and of the metapackages that bring a driver."""

STEP = re.compile(r"(?P<verb>Inst|Remv) (?P<name>[^\s:]+)[^(]*(?:\((?P<version>\S+))?")
"""The beginning of a step that ``apt-get --simulate`` prints (apt-get(8)); the new version follows a parenthesis."""


def cuda_plan_problems(lines: Iterable[str], package: str, version: str) -> list[str]:
    """What is wrong with apt's plan for a toolkit whose ``package`` is to have a version that begins with ``version``.

    Returns a sentence for each step that removes something, belongs to the driver or brings another version.
    """
    problems = []
    for step in filter(None, (STEP.match(line) for line in lines)):
        name, found = step["name"], step["version"] or ""
        if step["verb"] == "Remv":
            problems.append(f"apt would remove {name}: remove it by hand if nothing needs it, and run this again.")
        elif DRIVER.match(name):
            problems.append(
                f"apt would install {name}, which is the driver's or the kernel's, and this role touches neither: "
                "name another version."
            )
        elif name == package and not found.startswith(version):
            problems.append(f"apt would install {name} {found}, not {version}: the archive lacks that version.")
    return problems


class FilterModule:
    """Registers the filters with Ansible."""

    def filters(self) -> dict[str, Any]:
        """Filter name to function."""
        return {"cuda_plan_problems": cuda_plan_problems}
