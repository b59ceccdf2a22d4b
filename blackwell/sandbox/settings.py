"""Where one sandbox lives: its state, its images, its network, and the names that it gives to things in the kernel."""

import hashlib
import os
import re
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from blackwell import paths
from blackwell.sandbox import addresses
from blackwell.sandbox.errors import SandboxError

PREFIX = "bwsbx"
"""Every bridge, link, nft table, cgroup, mount source and machine name of any sandbox on this machine starts with
this.
"""


def process_namespace() -> int:
    """The inode number that stands for this process's PID namespace (namespaces(7))."""
    return Path("/proc/self/ns/pid").stat().st_ino


@dataclass(frozen=True)
class Settings:
    """One sandbox. Sandboxes with different state directories run side by side, each on its own network."""

    run: Path
    """State: key, known_hosts and a directory per host."""
    cache: Path
    """Images, and the files that hosts write; on a file system that overlayfs accepts as an upper layer."""
    network: IPv4Network

    processes: int = field(default_factory=process_namespace)
    """The PID namespace: a container on this machine may have a sandbox under the same paths, whose processes and
    cgroups show from here."""

    @property
    def bridge(self) -> str:
        """The bridge, and the nft table: the prefix, and six digits for state directory and PID namespace."""
        return PREFIX + hashlib.sha256(f"{self.run} {self.processes}".encode()).hexdigest()[:6]

    def link(self, address: IPv4Address) -> str:
        """The host's link on this machine's side; at most 15 characters, the kernel's limit (IFNAMSIZ)."""
        return f"{self.bridge}-{address.packed[-1]}"

    def machine(self, name: str) -> str:
        """The name of a host's machine, cgroup and root mount."""
        return f"{self.bridge}-{name}"

    @property
    def hosts(self) -> Path:
        """One directory per host."""
        return self.run / "hosts"

    def host(self, name: str) -> Path:
        """One host's state."""
        return self.hosts / name

    def inside(self, name: str) -> Path:
        """What only root may look into: in a host's root file system lie setuid programs that nobody updates."""
        return self.host(name) / "inside"

    def root(self, name: str) -> Path:
        """Where a host's root file system is mounted."""
        return self.inside(name) / "root"

    def namespace(self, name: str) -> Path:
        """The file that a host's network namespace is bound to."""
        return self.host(name) / "network"

    def console(self, name: str) -> Path:
        """What a host prints on its console."""
        return self.host(name) / "console.log"

    @property
    def key(self) -> Path:
        """The private key that root and operator accept on every host."""
        return self.run / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """Every host's address with its host key."""
        return self.run / "known_hosts"

    @property
    def images(self) -> Path:
        """Built images, one directory each."""
        return self.cache / "images"

    @property
    def layers(self) -> Path:
        """What this sandbox's hosts wrote over their images."""
        return self.cache / "hosts" / self.bridge


def from_environment() -> Settings:
    """The sandbox that the environment names (BLACKWELL_SANDBOX_RUN, BLACKWELL_SANDBOX_NET, BLACKWELL_CACHE).

    Raises SandboxError for directories that cannot stand in ssh's options or a mount's, and for a bad network.
    """
    run, cache = paths.sandbox_run().absolute(), paths.cache()
    for name, path in (("BLACKWELL_SANDBOX_RUN", run), ("BLACKWELL_CACHE", cache)):
        if re.search(r"[\s,:\\\"']", str(path)):
            raise SandboxError(f"{name} must not hold spaces, commas, colons, backslashes or quotes: {str(path)!r}")
    net = addresses.network(os.environ.get("BLACKWELL_SANDBOX_NET", addresses.DEFAULT))
    return Settings(run=run, cache=cache / "sandbox", network=net)
