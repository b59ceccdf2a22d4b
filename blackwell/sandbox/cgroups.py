"""A cgroup per host in every hierarchy, so that its systemd can enforce limits and that all of it can be found and
removed.

Inside a host's group: ``loop`` holds the supervisor, ``host`` holds systemd-nspawn and the host. cgroup v2 wants
processes in leaves only (https://docs.kernel.org/admin-guide/cgroup-v2.html, "no internal process constraint"), and
systemd-nspawn --keep-unit makes its own leaves below the group that it starts in, so that one must be fresh for every
boot.
"""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from blackwell.sandbox import mounts
from blackwell.sandbox.commands import wait_until

# A cpuset group takes no process before its CPUs and memory nodes are written, and no unit here sets them.
SKIPPED = frozenset({"cpuset"})

JOIN = 'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 125; shift; done; shift; exec "$@"'
"""Shell text: enter the groups named before ``--``, then become the command after it."""


def groups(cgroup: str, mounted: tuple[mounts.Mount, ...], leaf: str) -> tuple[Path, ...]:
    """The host's group in each mounted hierarchy, for a process whose /proc/self/cgroup reads ``cgroup``.

    Where that process already is in the scope that systemd made for the host, that is the group; elsewhere it is
    ``leaf`` under the process's group.
    """
    found = []
    for line in cgroup.splitlines():
        number, names, path = line.split(":", 2)
        top = _top(number, names, mounted)
        if top is None or SKIPPED & set(names.split(",")):
            continue
        own = top / path.lstrip("/")
        found.append(own if own.name == f"{leaf}.scope" else own / leaf)
    return tuple(found)


def _top(number: str, names: str, mounted: tuple[mounts.Mount, ...]) -> Path | None:
    """Where a hierarchy, given by its line's first two fields in cgroups(7), is mounted."""
    wanted = set(names.split(","))
    for mount in mounted:
        if mount.kind == "cgroup2" if number == "0" else mount.kind == "cgroup" and wanted <= set(mount.options):
            return Path(mount.target)
    return None


def existing(prefix: str) -> list[Path]:
    """Groups of any hierarchy whose names start so, the topmost only."""
    tops = [mount.target for mount in mounts.current() if mount.kind in {"cgroup", "cgroup2"}]
    found = []
    for top in dict.fromkeys(tops):
        for directory, below, _ in os.walk(top):
            own = [name for name in below if name.startswith(prefix)]
            found += [Path(directory) / name for name in own]
            below[:] = [name for name in below if name not in own]
    return found


def find(leaf: str) -> list[Path]:
    """Every group of one host that exists."""
    return [group for group in existing(leaf) if leaf_of(group.name) == leaf]


def leaf_of(name: str) -> str:
    """A group's name without what systemd appends to it."""
    return name.removesuffix(".scope")


def enter(own: tuple[Path, ...]) -> None:
    """Make the host's groups and put this process into their ``loop``."""
    for group in own:
        (group / "loop").mkdir(parents=True, exist_ok=True)
        (group / "loop/cgroup.procs").write_text("0")
        # The group above a scope is systemd's, which has passed the controllers on already.
        if not group.name.endswith(".scope"):
            enable(group.parent)
        enable(group)


def enable(group: Path) -> None:
    """Pass every controller on to the group's children, as far as that is allowed; does nothing on cgroup v1."""
    with suppress(FileNotFoundError):
        for controller in (group / "cgroup.controllers").read_text().split():
            # Refused where processes sit in the group itself, such as the one that this machine's user works in: the
            # controller is absent then.
            with suppress(OSError):
                (group / "cgroup.subtree_control").write_text(f"+{controller}")


def renew(own: tuple[Path, ...]) -> list[Path]:
    """Fresh ``host`` groups for one boot: limits that the last boot set would outlive it."""
    fresh = [group / "host" for group in own]
    for group in fresh:
        # What ended a moment ago still counts; a group that stays all the same is better than no boot.
        wait_until(partial(remove, group), 5)
        group.mkdir(exist_ok=True)
    return fresh


def remove(group: Path) -> bool:
    """Remove a group and all below it; whether it is gone. A group stays while processes are in it."""
    for directory, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(directory).rmdir()
    return not group.exists()
