"""How a host is reached, by the Ansible inventory's word; Ansible is asked through ``ansible-inventory``."""

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from blackwell import host_names, paths
from blackwell.host_errors import HostError

DEFAULT = paths.ROOT / "inventory/sandbox"
VARIABLE = "BLACKWELL_INVENTORY"

_ADDRESS = ("ansible_host", "ansible_ssh_host")
_PORT = ("ansible_port", "ansible_ssh_port")
_USER = ("ansible_user", "ansible_ssh_user")
_IDENTITY = ("ansible_ssh_private_key_file", "ansible_private_key_file")
_ARGUMENTS = ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args")
_SSH = ("ssh", "smart", "paramiko", "paramiko_ssh")


@dataclass(frozen=True)
class Inventory:
    """An inventory as read: where it came from, its hosts' variables, its groups' hosts."""

    source: str
    hosts: Mapping[str, Mapping[str, object]]
    groups: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Host:
    """How a host is reached. None and empty leave the choice to the user's own SSH configuration."""

    name: str
    address: str
    port: int | None = None
    user: str | None = None
    identity: Path | None = None
    ssh_args: tuple[str, ...] = ()
    become: bool = False
    become_user: str = "root"
    inventory: str = "none"


def chosen(option: str, environment: Mapping[str, str]) -> tuple[str, Path] | None:
    """Which inventory to read and who named it: the option, else the environment; None if neither did.

    Raises HostError if the one named is not there.
    """
    for origin, value in (("--inventory", option), (VARIABLE, environment.get(VARIABLE, ""))):
        if value:
            path = Path(value).expanduser().absolute()
            if not path.exists():
                raise HostError(f"{origin} names {value}, which is not there")
            return origin, path
    return None


def parse(source: str, listing: dict) -> Inventory:
    """The answer of ``ansible-inventory --list``."""
    hosts = listing.get("_meta", {}).get("hostvars", {})
    groups = {name: group for name, group in listing.items() if name != "_meta"}
    # A host without any variable is missing from hostvars.
    named = {host for group in groups.values() for host in group.get("hosts", ())}
    return Inventory(
        source,
        {name: hosts.get(name, {}) for name in sorted({*hosts, *named})},
        {name: _members(name, groups, frozenset()) for name in groups},
    )


def _members(name: str, groups: Mapping[str, dict], above: frozenset[str]) -> tuple[str, ...]:
    group = groups.get(name, {})
    below = [_members(child, groups, above | {name}) for child in group.get("children", ()) if child not in above]
    return tuple(sorted({*group.get("hosts", ()), *(host for hosts in below for host in hosts)}))


def read(path: Path) -> Inventory:
    """Ask Ansible for an inventory, a file or a directory, with the variables that ``site.yml`` would see.

    Raises HostError with Ansible's reason if it cannot be read.
    """
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(paths.ROOT / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "true",
    }
    program = paths.ROOT / ".venv/bin/ansible-inventory"
    try:
        done = subprocess.run(
            [program, "--inventory", path, "--playbook-dir", paths.ROOT, "--list"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise HostError(f"{program} does not start ({error.strerror}): run scripts/bootstrap control") from error
    if done.returncode:
        raise HostError(f"{path} is not an inventory that Ansible can read: {reason(done.stderr)}")
    return parse(str(path), json.loads(done.stdout))


def reason(stderr: str) -> str:
    """The sentence of what ansible-inventory printed that says most: a script's own, else the first error."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    script = [after for before, after in pairwise(lines) if before.startswith("Standard error from")]
    errors = [line.removeprefix("[ERROR]: ") for line in lines if line.startswith("[ERROR]")]
    return [*script, *errors, *lines, "it gave no reason"][0]


def available(option: str, environment: Mapping[str, str], default: Path = DEFAULT) -> Inventory:
    """The inventory that applies: the one that was named, else the sandbox if it has hosts, else an empty one.

    Raises HostError if the one named cannot be read; that the sandbox is down is no error.
    """
    named = chosen(option, environment)
    if named:
        return read(named[1])
    try:
        return read(default)
    except HostError:
        return Inventory("none", {}, {})


def resolves(address: str) -> bool:
    """Whether this machine knows an address for a name."""
    try:
        return bool(socket.getaddrinfo(address, None))
    except (OSError, UnicodeError):
        return False


def resolve(text: str, inventory: Inventory, known: Callable[[str], bool] = resolves) -> Host:
    """The host that somebody typed: an inventory name, the address of one, or any host that ``known`` knows.

    Raises HostError for an unknown host, a group, and variables that leave open how to connect.
    """
    if text in inventory.hosts:
        return from_variables(text, inventory)
    asked = host_names.parse(text)
    names = [asked.host] if asked.host in inventory.hosts else _at_address(asked, inventory)
    if len(names) > 1:
        raise HostError(f"{asked.host} is the address of {', '.join(names)} in {inventory.source}: name one of them")
    if names:
        return from_variables(names[0], inventory, asked)
    if asked.host in inventory.groups:
        members = ", ".join(inventory.groups[asked.host]) or "none"
        raise HostError(f"{asked.host} is a group of {inventory.source}, not a host; its hosts: {members}")
    if known(asked.host):
        return Host(asked.host, asked.host, asked.port, asked.user, inventory="none")
    raise HostError(_unknown(asked.host, inventory))


def _at_address(asked: host_names.Asked, inventory: Inventory) -> list[str]:
    same = [name for name, variables in inventory.hosts.items() if _first(variables, _ADDRESS)[1] == asked.host]
    on_port = [name for name in same if str(_first(inventory.hosts[name], _PORT)[1]) == str(asked.port)]
    return on_port if len(same) > 1 and on_port else same


def _unknown(name: str, inventory: Inventory) -> str:
    if not inventory.hosts:
        return (
            f"{name} does not resolve, and there is no inventory to find it in: name one with --inventory or "
            f"{VARIABLE}, or bring a sandbox host up (scripts/sandbox up)"
        )
    return f"{name} is not in {inventory.source} and does not resolve; {host_names.suggestion(name, inventory.hosts)}"


def _first(variables: Mapping[str, object], names: tuple[str, ...]) -> tuple[str, object]:
    """The first of these variables that is set, and its value; the value is None if none is."""
    return next(((name, variables[name]) for name in names if variables.get(name) is not None), (names[0], None))


def from_variables(name: str, inventory: Inventory, asked: host_names.Asked | None = None) -> Host:
    """A host of an inventory; user and port that were typed win.

    Raises HostError for a variable that only a play can resolve, and for a host that is not reached over SSH.
    """
    variables = inventory.hosts[name]

    def text(names: tuple[str, ...]) -> str | None:
        variable, value = _first(variables, names)
        if isinstance(value, dict) or "{{" in str(value):
            raise HostError(f"{name}: {variable} in {inventory.source} is a template or a secret; write it out for fab")
        return None if value is None else str(value)

    connection = text(("ansible_connection",)) or "ssh"
    if connection.rpartition(".")[2] not in _SSH:
        raise HostError(f"{name}: ansible_connection in {inventory.source} is {connection}; fab reaches hosts over SSH")
    port = text(_PORT)
    if port is not None and not port.isdecimal():
        raise HostError(f"{name}: ansible_port in {inventory.source} is {port!r}, not a port")
    words: list[str] = []
    for variable in _ARGUMENTS:
        try:
            words += shlex.split(text((variable,)) or "")
        except ValueError as error:
            raise HostError(f"{name}: {variable} in {inventory.source} has a quote that stays open") from error
    identity = text(_IDENTITY)
    return Host(
        name=name,
        address=text(_ADDRESS) or name,
        port=(asked and asked.port) or (int(port) if port else None),
        user=(asked and asked.user) or text(_USER),
        identity=Path(identity).expanduser() if identity else None,
        ssh_args=tuple(words),
        become=(text(("ansible_become",)) or "false").lower() in ("true", "yes", "1", "on"),
        become_user=text(("ansible_become_user",)) or "root",
        inventory=inventory.source,
    )
