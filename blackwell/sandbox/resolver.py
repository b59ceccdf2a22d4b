"""Name resolution for hosts: the name servers of this machine, as far as another host can reach them."""

from ipaddress import ip_address
from pathlib import Path

from blackwell.sandbox.errors import SandboxError

# systemd-resolved's own list of the servers behind its loopback address (systemd-resolved.service(8)).
CANDIDATES = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))


def reachable(text: str) -> bool:
    """Whether a resolv.conf(5) names a server, and none of them is a loopback address."""
    lines = (line.split() for line in text.splitlines())
    servers = [ip_address(line[1]) for line in lines if len(line) > 1 and line[0] == "nameserver"]
    return bool(servers) and not any(server.is_loopback for server in servers)


def configuration() -> str:
    """The resolv.conf for hosts.

    Raises SandboxError when this machine has loopback servers only.
    """
    for path in CANDIDATES:
        if path.exists():
            text = path.read_text()
            if reachable(text):
                return text
    raise SandboxError(
        "no name server that a sandbox host could reach is in /etc/resolv.conf or /run/systemd/resolve/resolv.conf"
    )
