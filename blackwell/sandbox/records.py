"""What is written down about each host: enough to find it, start it again and take it down from another process."""

import json
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address

from blackwell.sandbox.settings import Settings


@dataclass(frozen=True)
class Record:
    """One host as ``up`` makes it."""

    name: str
    address: str
    suite: str
    image: str
    """Directory of the image under the host's own files."""
    host_key: str = ""
    """Public host key, algorithm and key, as in known_hosts."""
    made: bool = False
    """False while ``up`` is making the host: what is found so was left by a killed ``up`` and is made afresh."""

    @property
    def ip(self) -> IPv4Address:
        """The address as a number."""
        return IPv4Address(self.address)


def read(settings: Settings) -> list[Record]:
    """Every host on record, by name in natural order (sandbox2 before sandbox10)."""
    found = []
    for path in settings.hosts.glob("*/host.json"):
        try:
            found.append(Record(**json.loads(path.read_text())))
        except FileNotFoundError:
            continue  # taken down between the listing and the reading
    return sorted(found, key=lambda record: (len(record.name), record.name))


def write(settings: Settings, record: Record) -> None:
    """Put the record on disk, whole or not at all."""
    directory = settings.host(record.name)
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o755)
    fresh = directory / "host.json.new"
    fresh.write_text(json.dumps(asdict(record), indent=1) + "\n")
    fresh.chmod(0o644)
    fresh.replace(directory / "host.json")
