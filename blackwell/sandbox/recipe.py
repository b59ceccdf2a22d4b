"""What an image consists of. Its key is a checksum over all of it, so that an image is built again exactly when
something in here changes.
"""

import hashlib
import json
import platform
from dataclasses import asdict, dataclass
from pathlib import Path

from blackwell.sandbox.errors import SandboxError

SUITES = ("bookworm", "trixie")

PACKAGES = (
    "ca-certificates",
    "dbus",
    "git",
    "iproute2",
    "libnss-systemd",
    "libpam-systemd",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "python3-packaging",
    "python3-venv",
    "sudo",
    "systemd",
    "systemd-sysv",
)

OPERATOR = "operator"
OPERATOR_ID = 1000
"""User id of the unprivileged user; its group is the one of that name that Debian has for such users."""

INIT = "/usr/local/sbin/sandbox-init"

# systemd-nspawn mounts cgroup v1 controllers read-only, and systemd ignores the limits that it cannot write.
INIT_TEXT = """\
#!/bin/sh
for controller in memory pids cpu cpuacct cpu,cpuacct blkio devices; do
  [ ! -d "/sys/fs/cgroup/$controller" ] || mount -o remount,bind,rw,nosuid,nodev,noexec "/sys/fs/cgroup/$controller"
done
exec /lib/systemd/systemd "$@"
"""

SSHD = """\
HostKey /etc/ssh/ssh_host_ed25519_key
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""

# Without it sshd answers a moment before PAM lets anyone but root in (pam_nologin(8)).
SSH_UNIT = """\
[Unit]
After=systemd-user-sessions.service
"""

# What cannot work in a container, and what would change a host or take its apt lock behind a deployment's back.
MASKED = (
    "apt-daily-upgrade.timer",
    "apt-daily.timer",
    "console-getty.service",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty.target",
)


@dataclass(frozen=True)
class File:
    """A file that goes into an image."""

    path: str
    text: str
    mode: int = 0o644


FILES = (
    File(INIT, INIT_TEXT, 0o755),
    File("/etc/default/locale", "LANG=C.UTF-8\n"),
    # Empty: systemd writes one of its own on each host (machine-id(5)).
    File("/etc/machine-id", ""),
    File("/etc/pip.conf", "[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n"),
    File("/etc/ssh/sshd_config.d/sandbox.conf", SSHD),
    File("/etc/sudoers.d/operator", f"{OPERATOR} ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440),
    File("/etc/systemd/system/ssh.service.d/users.conf", SSH_UNIT),
)

COMMANDS = (
    'rm -f "$1"/etc/ssh/ssh_host_*',
    'chroot "$1" update-ca-certificates',
    f'chroot "$1" useradd --create-home --shell /bin/bash --uid {OPERATOR_ID} --gid {OPERATOR} {OPERATOR}',
)
"""Shell text, run in order when packages and files are in; ``$1`` is the root file system (mmdebstrap(1), HOOKS)."""

OPTIONS = (
    "--mode=root",
    "--variant=minbase",
    "--format=directory",
    '--aptopt=Acquire::Languages "none"',
    '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
)


@dataclass(frozen=True)
class Recipe:
    """One image."""

    suite: str
    certificates: tuple[File, ...]
    """Certificate authorities that were added to this machine: its way to the package mirrors may need them."""
    packages: tuple[str, ...] = PACKAGES
    files: tuple[File, ...] = FILES
    masked: tuple[str, ...] = MASKED
    commands: tuple[str, ...] = COMMANDS
    options: tuple[str, ...] = OPTIONS
    architecture: str = platform.machine()

    @property
    def name(self) -> str:
        """The suite and the key."""
        key = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
        return f"{self.suite}-{key[:12]}"

    def command(self, files: Path, root: Path) -> list[str]:
        """The mmdebstrap command that builds the image in ``root``, with ``files`` copied over it."""
        hooks = [f"--customize-hook=sync-in {files} /", *(f"--customize-hook={text}" for text in self.commands)]
        return ["mmdebstrap", *self.options, f"--include={','.join(self.packages)}", *hooks, self.suite, str(root)]


def recipe(suite: str, authorities: Path = Path("/usr/local/share/ca-certificates")) -> Recipe:
    """The image of a suite, for this machine.

    Raises SandboxError for a suite that nobody tried.
    """
    if suite not in SUITES:
        raise SandboxError(f"unknown suite {suite!r}: choose {' or '.join(SUITES)}")
    certificates = (
        File(str(path), path.read_text(errors="surrogateescape")) for path in sorted(authorities.rglob("*.crt"))
    )
    return Recipe(suite, tuple(certificates))
