"""Taking hosts down, from what is on disk and what exists in the kernel: neither alone is complete after a kill."""

import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path

from blackwell.sandbox import cgroups, filesystem, mounts, network, processes, records
from blackwell.sandbox.commands import wait_until
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.settings import Settings

NSPAWN = Path("/run/systemd/nspawn")


def traces(settings: Settings) -> set[str]:
    """Names of the hosts of which anything is left: a directory, a process, a cgroup, a mount or written files."""
    start = settings.machine("")
    return {
        *(path.name for path in settings.hosts.glob("*")),
        *(path.name for path in settings.layers.glob("*/")),
        *(name for process in processes.current() if (name := processes.host_of(settings, process))),
        *(cgroups.leaf_of(group.name).removeprefix(start) for group in cgroups.existing(start)),
        *(mount.source.removeprefix(start) for mount in mounts.current() if mount.source.startswith(start)),
    }


def remove_host(settings: Settings, name: str) -> None:
    """Take one host down and remove every trace of it; safe when there is little or nothing left of it.

    Raises SandboxError when a process of it does not end, or something foreign is mounted in it.
    """
    stop(settings, name)
    for group in cgroups.find(settings.machine(name)):
        if not wait_until(partial(cgroups.remove, group), 10):
            raise SandboxError(f"cannot remove the cgroup {group}: look for processes in it")
    link = next((settings.link(record.ip) for record in records.read(settings) if record.name == name), None)
    network.remove_host(settings, name, link)
    _remove_nspawn_files(settings, name)
    filesystem.remove(settings, name)


def stop(settings: Settings, name: str) -> None:
    """End every process of a host at once, without an orderly shutdown.

    Raises SandboxError when one does not end.
    """

    def ours(process: processes.Process) -> bool:
        return processes.host_of(settings, process) == name

    def supervisor(process: processes.Process) -> bool:
        return processes.supervises(settings, process) == name

    def init(process: processes.Process) -> bool:
        return ours(process) and process.is_init

    def killed(kind: processes.Kind) -> list[processes.Process]:
        found = [process for process in processes.current() if kind(process)]
        for process in found:
            processes.kill(process.pid, kind)
        return found

    def all_ended(kind: processes.Kind) -> bool:
        return not killed(kind) and not processes.of(settings, name)

    # First the supervisor, which would boot the host again. Then PID 1, with which all of the host ends, and
    # systemd-nspawn removes its locks. Killing that one would leave them: only when it does not end by itself.
    wait_until(lambda: not killed(supervisor), 5)
    if not wait_until(lambda: all_ended(init), 10) and not wait_until(lambda: all_ended(ours), 10):
        left = ", ".join(str(process.pid) for process in processes.of(settings, name))
        raise SandboxError(f"processes of {name} do not end: {left}")


def _remove_nspawn_files(settings: Settings, name: str) -> None:
    """Remove what a killed systemd-nspawn leaves: a lock named after the root's inode, and an empty directory."""
    root = settings.root(name)
    if mounts.at(root):
        found = root.stat()
        (NSPAWN / f"locks/inode-{found.st_dev}:{found.st_ino}").unlink(missing_ok=True)
    with suppress(OSError):
        (NSPAWN / "propagate" / settings.machine(name)).rmdir()


def remove_shared(settings: Settings) -> None:
    """Remove what the last host leaves: bridge, rules, forwarding, layers, key and the state directory itself."""
    network.remove(settings)
    filesystem.remove_layers(settings)
    shutil.rmtree(settings.run)
