"""What OpenSSH would do for a host, by its own word (``ssh -G``): nothing here reads its configuration again."""

import subprocess
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from blackwell import host_names
from blackwell.host_errors import HostError
from blackwell.inventory import Host

CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Settings:
    """Where to connect, with which keys, and which host keys to accept. ``timeout`` is in seconds."""

    host: str
    port: int
    user: str
    identities: tuple[Path, ...]
    identities_only: bool
    known_hosts: tuple[Path, ...]
    host_key_alias: str | None
    jumps: tuple[str, ...]
    proxy_command: str | None
    timeout: float

    @property
    def host_key_name(self) -> str:
        """The name that known_hosts files have for the host."""
        return self.host_key_alias or (self.host if self.port == 22 else f"[{self.host}]:{self.port}")


def arguments(host: Host) -> list[str]:
    """What follows ``ssh`` on a command line that Ansible would write for the host."""
    return [
        *host.ssh_args,
        *(["-p", str(host.port)] if host.port else []),
        *(["-l", host.user] if host.user else []),
        *(["-i", str(host.identity)] if host.identity else []),
        "--",
        host.address,
    ]


def hop_arguments(hop: str, ssh_args: tuple[str, ...]) -> list[str]:
    """The same for a jump host, which OpenSSH gives the configuration file of the host and none of its options."""
    asked = host_names.parse(hop.removeprefix("ssh://"))
    file = [word for flag, name in pairwise(ssh_args) if flag == "-F" for word in (flag, name)]
    return [*file, *arguments(Host(asked.host, asked.host, asked.port, asked.user))]


def parse(text: str) -> Settings:
    """The output of ``ssh -G``."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        found.setdefault(name, []).append(value)

    def one(name: str, absent: str = "none") -> str | None:
        value = found.get(name, [absent])[0]
        return None if value in (absent, "none") else value

    files = [*found.get("userknownhostsfile", [""])[0].split(), *found.get("globalknownhostsfile", [""])[0].split()]
    jumps = one("proxyjump")
    return Settings(
        host=found["hostname"][0],
        port=int(found["port"][0]),
        user=found["user"][0],
        identities=tuple(Path(name).expanduser() for name in found.get("identityfile", ()) if name != "none"),
        identities_only=one("identitiesonly", "no") == "yes",
        known_hosts=tuple(Path(name).expanduser() for name in files if name != "none"),
        host_key_alias=one("hostkeyalias"),
        jumps=tuple(jumps.split(",")) if jumps else (),
        proxy_command=one("proxycommand"),
        timeout=float(one("connecttimeout") or CONNECT_SECONDS),
    )


def effective(label: str, words: list[str]) -> Settings:
    """Ask ssh. ``label`` names the host in errors.

    Raises HostError if ssh is not there or does not take the arguments.
    """
    try:
        done = subprocess.run(["ssh", "-G", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise HostError(f"ssh does not start ({error.strerror}): install openssh-client") from error
    if done.returncode:
        complaint = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise HostError(f"{label}: ssh does not take its settings: {complaint}")
    return parse(done.stdout)


def configured(name: str) -> bool:
    """Whether the user's SSH configuration has a way to a name that need not resolve here."""
    done = subprocess.run(["ssh", "-G", "--", name], capture_output=True, text=True, check=False)
    if done.returncode:
        return False
    settings = parse(done.stdout)
    return settings.host != name.lower() or bool(settings.jumps or settings.proxy_command)
