"""SSH to hosts: the sandbox's key, pinned host keys, and waiting until a host answers."""

import os
import shlex
import socket
import subprocess

from blackwell.sandbox.commands import run
from blackwell.sandbox.records import Record
from blackwell.sandbox.settings import Settings


def ensure_key(settings: Settings) -> str:
    """The sandbox's public key, made when there is none. Under sudo it belongs to the user who called, whose Ansible
    is to read it.
    """
    if not settings.key.exists():
        fresh = settings.run / "new_key"
        fresh.unlink(missing_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", settings.bridge, "-f", str(fresh))
        owner = int(os.environ.get("SUDO_UID", "0")), int(os.environ.get("SUDO_GID", "0"))
        os.chown(fresh, *owner)
        fresh.with_suffix(".pub").rename(settings.key.with_suffix(".pub"))
        fresh.rename(settings.key)
    return settings.key.with_suffix(".pub").read_text()


def known_hosts(records: list[Record]) -> str:
    """The known_hosts text: one line for each host whose key is made."""
    return "".join(f"{record.address} {record.host_key}\n" for record in records if record.host_key)


def write_known_hosts(settings: Settings, records: list[Record]) -> None:
    """Pin the keys of these hosts and no others."""
    fresh = settings.run / "known_hosts.new"
    fresh.write_text(known_hosts(records))
    fresh.chmod(0o644)
    fresh.replace(settings.known_hosts)


def options(settings: Settings) -> list[str]:
    """ssh's options for any host of the sandbox, without the key: nothing of the user's configuration, nothing but
    the pinned host keys.
    """
    return [
        "-F",
        "none",
        "-o",
        f"UserKnownHostsFile={settings.known_hosts}",
        "-o",
        "StrictHostKeyChecking=yes",
        "-o",
        "IdentitiesOnly=yes",
    ]


def command(settings: Settings, address: str, user: str = "root") -> list[str]:
    """The ssh command up to and including the host."""
    return ["ssh", "-i", str(settings.key), *options(settings), f"{user}@{address}"]


def ansible_arguments(settings: Settings) -> str:
    """The options as one text for ansible_ssh_common_args."""
    return shlex.join(options(settings))


def answers(settings: Settings, address: str) -> bool:
    """Whether a command runs on the host now; the cheap look at the port comes first."""
    try:
        with socket.create_connection((address, 22), timeout=0.5) as connection:
            if not connection.recv(4).startswith(b"SSH-"):
                return False
    except OSError:
        return False
    target = command(settings, address)
    probe = [*target[:-1], "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", target[-1], "true"]
    return subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
