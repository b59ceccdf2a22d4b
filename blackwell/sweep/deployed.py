"""What is deployed on this host: the server that a bench stands in for, and that is to be back after it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from blackwell.bench import durable
from blackwell.bench.errors import BenchError

from . import bench_unit, server_words, systemd, unit_text
from .systemd import SERVICE
from .unit_text import Assignment

FILE = "service.json"
"""All of it. Drop-ins may hold secrets: it does not leave the host."""

TOLD = "deployed.json"
"""The command line alone, for a report."""

READY = Path("/run/sglang/ready.json")
RELEASES = Path("/opt/sglang/releases")
MICROSECONDS = 1e6
UNCHANGED = "nothing was changed"

BEGUN, ACTIVE = "ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic"
PROPERTIES = (
    *("LoadState", "ActiveState", "UnitFileState", "MainPID", "InvocationID", "FragmentPath", "DropInPaths"),
    *("NeedDaemonReload", "User", "Group", BEGUN, ACTIVE),
)


@dataclass(frozen=True)
class Deployed:
    """``argv``: the command line of the process that runs, which is ``pid``. ``invocation``: systemd's name of this
    start. ``unit``: text of the unit file. ``drop_ins``: texts of those of this unit alone, by path, in their order.

    ``environment_files``: in their order. ``active``: whether the service ran. ``enabled``: whether it starts with the
    host. ``deployment``: name of the deployment that generated. ``start_s``: seconds from its start until it generated.
    """

    argv: tuple[str, ...]
    pid: int
    invocation: str
    unit: str
    drop_ins: Mapping[str, str]
    environment_files: tuple[str, ...]
    user: str
    group: str
    active: bool
    enabled: bool
    deployment: str
    start_s: float

    @property
    def settings(self) -> list[Assignment]:
        """The settings of the unit, those of its drop-ins last, as systemd reads them."""
        return [one for text in (self.unit, *self.drop_ins.values()) for one in unit_text.assignments(text)]

    @property
    def address(self) -> tuple[str, int]:
        """Host and port where the server is asked by a client on this host."""
        return server_words.address(self.argv)

    @property
    def url(self) -> str:
        """The same as a URL."""
        return server_words.url(self.argv)

    @property
    def steps(self) -> int:
        """Draft steps of the server; raises BenchError if they cannot follow the load."""
        return server_words.steps(self.argv)

    @property
    def most_requests(self) -> int | None:
        """Requests that it decodes at once; None if its command line does not say."""
        return server_words.most_requests(self.argv)


def read(proc: Path = Path("/proc"), ready: Path = READY, releases: Path = RELEASES) -> Deployed:
    """What runs now.

    Raises BenchError, in one sentence, if the service does not run, is not what its files say, or is none that a
    bench's server can be made from.
    """
    told = systemd.show(SERVICE, *PROPERTIES)
    if problem := _not_running(told):
        raise BenchError(f"{problem}; {UNCHANGED}")
    try:
        found = _made(told, proc, ready)
        problem = another(found, _stated(found.environment_files), releases)
    except BenchError as error:
        raise BenchError(f"{SERVICE}: {error}; {UNCHANGED}") from error
    if problem:
        raise BenchError(f"{SERVICE} {problem}; {UNCHANGED}")
    return found


def _made(told: Mapping[str, str], proc: Path, ready: Path) -> Deployed:
    unit, drop_ins = _text(Path(told["FragmentPath"])), _drop_ins(told["DropInPaths"].split())
    settings = [one for text in (unit, *drop_ins.values()) for one in unit_text.assignments(text)]
    return Deployed(
        argv=tuple(_text(proc / told["MainPID"] / "cmdline").removesuffix("\0").split("\0")),
        pid=int(told["MainPID"]),
        invocation=told["InvocationID"],
        unit=unit,
        drop_ins=drop_ins,
        environment_files=environment_files(settings),
        user=told["User"],
        group=told["Group"],
        active=True,
        enabled=told["UnitFileState"] == "enabled",
        deployment=_deployment(ready),
        start_s=(int(told[ACTIVE]) - int(told[BEGUN])) / MICROSECONDS,
    )


def _not_running(told: Mapping[str, str]) -> str:
    loaded, state = told["LoadState"], told["ActiveState"]
    if loaded == "not-found":
        return f"{SERVICE} is not on this host: deploy it first (ansible-playbook site.yml)"
    if loaded != "loaded":
        return f"systemd has not loaded {SERVICE} ({loaded}): see systemctl status {SERVICE}"
    if state in ("activating", "reloading"):
        return f"{SERVICE} is still starting: wait until it is active"
    if state != "active":
        return f"{SERVICE} is {state}: start it first (systemctl start {SERVICE}), a bench measures what is deployed"
    if told["NeedDaemonReload"] == "yes":
        return f"the unit of {SERVICE} was edited and systemd has not read it since: deploy again, or undo the edit"
    return ""


def another(found: Deployed, stated: str | None, releases: Path = RELEASES) -> str:
    """In what the server that runs is another than its files say, or none that a bench can stand in for.

    A clause without a full stop, empty if all is well. ``stated``: name of the deployment in its environment files.
    """
    again = "deploy again (ansible-playbook site.yml), or restart it"
    if list(found.argv) != unit_text.command(found.settings):
        return f"runs with another command line than its unit states: {again}"
    if stated is not None and stated != found.deployment:
        return f"runs deployment {found.deployment or 'unknown'} and its files are those of {stated}: {again}"
    if not _of_a_release(found.argv, releases):
        return f"does not run a release of {releases}: its command line begins with {' '.join(found.argv[:3])}"
    return next(iter(bench_unit.problems(found.settings)), "")


def _of_a_release(argv: Sequence[str], releases: Path) -> bool:
    program = Path(argv[0])
    parts = program.relative_to(releases).parts if program.is_relative_to(releases) else ()
    return (
        parts[1:] == ("venv", "bin", "python")
        and tuple(argv[1:3]) == server_words.PROGRAM
        and (releases / parts[0] / "release.json").is_file()
    )


def environment_files(settings: Sequence[Assignment]) -> tuple[str, ...]:
    """The environment files of a unit, in their order."""
    return tuple(value.removeprefix("-") for value in unit_text.values(settings, "EnvironmentFile"))


def _stated(files: Sequence[str]) -> str | None:
    """The name of the deployment that environment files state; None if they state none."""
    named = re.compile(rf'^{server_words.DEPLOYMENT}="?([^"\n]*)"?$', re.MULTILINE)
    names = [name for file in files if Path(file).is_file() for name in named.findall(_text(Path(file)))]
    return names[-1] if names else None


def _drop_ins(paths: Sequence[str]) -> dict[str, str]:
    # Those for all services are for the bench's server too, by themselves.
    own = [path for path in paths if Path(path).parent.name == f"{SERVICE}.d"]
    return {path: _text(Path(path)) for path in own}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error


def _deployment(ready: Path) -> str:
    try:
        return str(json.loads(ready.read_text(encoding="utf-8"))["deployment"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def write(directory: Path, found: Deployed) -> None:
    """Keep, in the directory of a run, what ran when it began or went on; raises BenchError if that cannot be."""
    for name, content in ((TOLD, {"argv": found.argv}), (FILE, asdict(found))):
        durable.replace(directory / name, f"{json.dumps(content, indent=1)}\n".encode())


def kept(directory: Path) -> Deployed | None:
    """What ``write`` has kept, None if nothing; raises BenchError, naming the file, if it is no such thing."""
    file = directory / FILE
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        lists = {name: tuple(content[name]) for name in ("argv", "environment_files")}
        return Deployed(**(content | lists))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"{file} does not say what was deployed: {error}") from error
