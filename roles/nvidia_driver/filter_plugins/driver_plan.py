"""Judges what apt says it would do, before it does it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STEP = re.compile(r"(Inst|Remv) (\S+?)(?::\S+)?(?: \[[^\]]*\])?(?: \((\S+).*)?(?: .*)?$")
"""A line of ``apt-get --simulate`` (apt-get(8)): Inst NAME [installed version] (new version archive [architecture])."""

KERNEL = re.compile(r"(linux|proxmox|pve)-(image|headers|modules|kernel|generic|virtual|signatures|objects)")
KERNEL_MODULE = re.compile(r"dkms$|.*-dkms(-|$)|nvidia-kernel-(open|source|dkms)")
DRIVER = re.compile(
    r"nvidia-(open|driver(?!-pinning|-local)|utils|persistenced)|libnvidia-compute|libcuda1$|nvidia.*-dkms"
)


def nvidia_driver_plan_problems(lines: Iterable[str], asked: Mapping[str, Any]) -> list[str]:
    """What is wrong with apt's plan: steps that touch the kernel, in a container its modules, or bring another version.

    ``asked`` has ``container``, and the ``version`` or else the ``branch`` that is wanted.
    """
    steps = [(found[1], found[2], found[3] or "") for line in lines if (found := STEP.match(line.strip()))]
    prefix = str(asked["version"] or asked["branch"])
    problems = []
    for step, name, version in steps:
        verb = "install" if step == "Inst" else "remove"
        if KERNEL.match(name):
            problems.append(
                f"apt would {verb} {name}, which is the kernel's: do that by hand, or name another version."
            )
        elif step == "Inst" and asked["container"] and KERNEL_MODULE.match(name):
            problems.append(f"apt would install {name}, which is for a kernel, and a container has none of its own.")
        elif step == "Inst" and DRIVER.match(name) and not re.match(rf"(\d+:)?{re.escape(prefix)}(\.|-|$)", version):
            problems.append(f"apt would install {name} {version}, not {prefix}: the repository lacks that version.")
    return problems


class FilterModule:
    """Registers the filters with Ansible."""

    def filters(self) -> dict[str, Any]:
        """Filter name to function."""
        return {"nvidia_driver_plan_problems": nvidia_driver_plan_problems}
