"""The process that keeps one host running, through reboots, after the command that started it has ended.

Usage: python3 -m blackwell.sandbox.supervisor RUN_DIRECTORY MACHINE
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from blackwell import paths
from blackwell.sandbox import cgroups, mounts, nspawn, processes
from blackwell.sandbox.settings import Settings, from_environment


def booted_with_systemd() -> bool:
    """Whether systemd is this machine's PID 1 (sd_booted(3))."""
    return Path("/run/systemd/system").is_dir()


def launcher(settings: Settings, name: str, *, systemd: bool) -> list[str]:
    """The command that becomes the supervisor.

    Under systemd it gets a scope of its own with the cgroup subtree delegated (https://systemd.io/CGROUP_DELEGATION),
    so that neither the end of the user's session nor systemd's own bookkeeping touches the host.
    """
    own = [sys.executable, "-m", processes.SUPERVISOR, str(settings.run), settings.machine(name)]
    scope = [
        "systemd-run",
        "--scope",
        "--quiet",
        "--collect",
        "--slice=machine.slice",
        f"--unit={settings.machine(name)}.scope",
        f"--description=Sandbox host {name}",
        "--property=Delegate=yes",
        "--",
    ]
    return ["setsid", "--fork", *(scope if systemd else []), *own]


def start(settings: Settings, name: str) -> None:
    """Start the host's supervisor in a session of its own."""
    with settings.console(name).open("ab") as console:
        subprocess.run(
            launcher(settings, name, systemd=booted_with_systemd()),
            cwd=paths.ROOT,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            check=True,
        )


def main(run_directory: str, machine: str) -> int:
    """Boot the host, again after each reboot, until it powers off or fails; returns systemd-nspawn's exit status."""
    settings = replace(from_environment(), run=Path(run_directory))
    name = machine.removeprefix(settings.machine(""))
    own = cgroups.groups(Path("/proc/self/cgroup").read_text(), mounts.current(), machine)
    cgroups.enter(own)
    while True:
        fresh = cgroups.renew(own)
        joined = ["sh", "-c", cgroups.JOIN, "sh", *map(str, fresh), "--", *nspawn.command(settings, name)]
        status = subprocess.run(joined, env=os.environ | nspawn.ENVIRONMENT, check=False).returncode
        if status != nspawn.REBOOT:
            return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
