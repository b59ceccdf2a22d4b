"""What is deployed on this host: the server that a sweep stands in for, and that is to be back after it."""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from blackwell.bench import durable
from blackwell.bench.errors import BenchError

from . import systemd, unit_text
from .systemd import SERVICE

FILE = "deployed.json"
READY = Path("/run/sglang/ready.json")
MICROSECONDS = 1e6
PROPERTIES = (
    *("LoadState", "ActiveState", "UnitFileState", "MainPID", "FragmentPath", "DropInPaths", "NeedDaemonReload"),
    *("User", "Group", "ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic"),
)
UNTOUCHED = "nothing was changed"


@dataclass(frozen=True)
class Deployed:
    """``argv``: the command line of the process that runs. ``unit``: text of its unit file. ``pid``: first process.

    ``deployment``: name of the deployment that generated when it started, empty if it is not known. ``enabled``:
    whether it starts with the host. ``start_s``: seconds that its last start took.
    """

    argv: tuple[str, ...]
    unit: str
    pid: int
    user: str
    group: str
    enabled: bool
    start_s: float
    deployment: str = ""

    @property
    def url(self) -> str:
        """Where the server listens, for a client on this host."""
        after = dict(pairwise(self.argv))
        host = _reachable(after.get("--host", "127.0.0.1"))
        return f"http://{f'[{host}]' if ':' in host else host}:{after.get('--port', '30000')}"

    @property
    def steps(self) -> int:
        """Draft steps of the server; raises BenchError if it does not speculate."""
        text = dict(pairwise(self.argv)).get("--speculative-num-steps", "")
        if not text.isdecimal() or int(text) < 1:
            raise BenchError(
                f"{SERVICE} does not speculate (its command line has no --speculative-num-steps): deploy it with "
                f"model_draft_path; {UNTOUCHED}"
            )
        return int(text)

    @property
    def most_requests(self) -> int | None:
        """Requests that it decodes at once, None if its command line does not say."""
        text = dict(pairwise(self.argv)).get("--max-running-requests", "")
        return int(text) if text.isdecimal() else None


def _reachable(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return {4: "127.0.0.1", 6: "::1"}[address.version] if address.is_unspecified else host


def read(proc: Path = Path("/proc")) -> Deployed:
    """What runs now; raises BenchError if it is not there, not ready, or not what its unit file says."""
    told = systemd.show(SERVICE, *PROPERTIES)
    if told.get("LoadState") != "loaded":
        raise BenchError(f"{SERVICE} is not on this host: deploy it first (site.yml); {UNTOUCHED}")
    if told["ActiveState"] != "active":
        raise BenchError(
            f"{SERVICE} is {told['ActiveState']}, and a sweep measures what is deployed: start it first "
            f"(systemctl start {SERVICE}); {UNTOUCHED}"
        )
    if told["DropInPaths"]:
        raise BenchError(
            f"{SERVICE} is changed by {told['DropInPaths']}, which no deployment made: put what it says into the "
            f"inventory, or remove it; {UNTOUCHED}"
        )
    if told["NeedDaemonReload"] == "yes":
        raise BenchError(f"the unit file of {SERVICE} was changed since systemd read it: run site.yml; {UNTOUCHED}")
    pid = int(told["MainPID"])
    unit = _text(Path(told["FragmentPath"]))
    argv = tuple(_text(proc / str(pid) / "cmdline").rstrip("\0").split("\0"))
    _check(argv, unit_text.command(unit))
    begun, ready = (int(told[name]) for name in PROPERTIES[-2:])
    return Deployed(
        argv,
        unit,
        pid,
        told["User"],
        told["Group"],
        told["UnitFileState"] == "enabled",
        (ready - begun) / MICROSECONDS,
        _deployment(),
    )


def _check(runs: Sequence[str], written: Sequence[str]) -> None:
    # An interpreter may show itself by another path.
    if list(runs[1:]) != list(written[1:]):
        raise BenchError(
            f"{SERVICE} runs with another command line than its unit file has: restart it, or run site.yml; {UNTOUCHED}"
        )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{file} cannot be read: {error}; {UNTOUCHED}") from error


def _deployment() -> str:
    try:
        return str(json.loads(READY.read_text(encoding="utf-8"))["deployment"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def write(directory: Path, found: Deployed) -> None:
    """Keep what ran when a run began, or went on."""
    durable.replace(directory / FILE, f"{json.dumps(asdict(found), indent=1)}\n".encode())


def kept(directory: Path) -> Deployed:
    """What ``write`` wrote; raises BenchError, naming the file, if it is not there or broken."""
    file = directory / FILE
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return Deployed(**(content | {"argv": tuple(content["argv"])}))
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{file} does not say what was deployed: {error}") from error
