"""The systemd-nspawn command that runs a host."""

from blackwell.sandbox.recipe import INIT
from blackwell.sandbox.settings import Settings

REBOOT = 133
"""Exit status of systemd-nspawn --keep-unit when the host asked for a reboot (systemd-nspawn(1))."""

# A network namespace from outside comes without the capability to configure it; the last two are for units with
# IPAddressDeny=.
CAPABILITIES = ("CAP_NET_ADMIN", "CAP_BPF", "CAP_PERFMON")

ENVIRONMENT = {"SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"}
"""Makes the host's own /proc/sys/net writable (https://systemd.io/ENVIRONMENT)."""


def command(settings: Settings, name: str) -> list[str]:
    """The command that boots the host and ends when the host does.

    It registers with no machine manager, which may not run here, and stays in the cgroup it is started in. When its
    parent dies it gets SIGTERM, which it turns into an orderly shutdown of the host.
    """
    return [
        "setpriv",
        "--pdeathsig=TERM",
        "systemd-nspawn",
        "--quiet",
        "--settings=no",
        f"--directory={settings.root(name)}",
        f"--machine={settings.machine(name)}",
        f"--hostname={name}",
        "--register=no",
        "--keep-unit",
        "--kill-signal=SIGRTMIN+3",
        f"--network-namespace-path={settings.namespace(name)}",
        "--private-users=no",
        f"--capability={','.join(CAPABILITIES)}",
        # Nothing here needs a device node of its own, and one for a disk would be this machine's disk.
        "--drop-capability=CAP_MKNOD",
        "--system-call-filter=bpf",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        INIT,
    ]
