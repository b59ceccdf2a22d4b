"""The commands that deploy, verify and roll back one host of an inventory, as a person would type them."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from blackwell import paths
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory

GROUP = "sglang_hosts"


def deploy(host: Host) -> str:
    """How to deploy to a host, for people to type in the checkout."""
    where = ["-i", host.inventory, "--limit", host.name] if host.inventory != "none" else ["-i", "INVENTORY"]
    return shlex.join(["ansible-playbook", "site.yml", *where])


def check(host: Host, known: Inventory, what: str) -> None:
    """Raises HostError if the playbooks are not for a host; ``what`` names what it is needed for."""
    if host.name not in known.hosts:
        raise HostError(f"{host.name} is in no inventory, which {what} needs: name one with --inventory")
    if host.name not in known.groups.get(GROUP, ()):
        raise HostError(f"{host.name} is not in the group {GROUP} of {known.source}, which {what} is for")


def verification(host: Host) -> list[str]:
    """The command that compares what runs on a host with what its inventory asks for."""
    return [str(paths.ROOT / "scripts/verify"), "--inventory", host.inventory, "--limit", host.name]


def deployment(host: Host) -> list[str]:
    """The command that deploys to a host what its inventory asks for."""
    program, playbook = paths.ROOT / ".venv/bin/ansible-playbook", paths.ROOT / "site.yml"
    return [str(program), str(playbook), "--inventory", host.inventory, "--limit", host.name]


def rollback(host: Host) -> list[str]:
    """The command that goes back to the deployment before the one that runs on a host."""
    program, playbook = paths.ROOT / ".venv/bin/ansible-playbook", paths.ROOT / "playbooks/rollback.yml"
    return [str(program), str(playbook), "--inventory", host.inventory, "--limit", host.name]


def run(words: Sequence[str]) -> int:
    """Run a command to its end, with the output of this process; returns its exit status.

    Raises HostError if it does not start.
    """
    sys.stdout.flush()
    environment = {**os.environ, "ANSIBLE_CONFIG": str(paths.ROOT / "ansible.cfg")}
    try:
        return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise HostError(f"{words[0]} does not start ({error.strerror}): run scripts/bootstrap control") from error
