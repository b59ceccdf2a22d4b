"""The runs of a host: a directory each."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from blackwell.bench import durable, fingerprint, store
from blackwell.bench.errors import BenchError
from blackwell.bench.fingerprint import Fingerprint

from . import events, plan
from .estimate import Guess
from .plan import Plan
from .points import Key

ROOT = Path("/var/lib/sglang/bench")
POINTS, BEGUN = "points.jsonl", "begun.json"
MODE = 0o700


@dataclass(frozen=True)
class Begun:
    """What a run was begun with: the fingerprint of the service, and guesses for its estimates."""

    fingerprint: Fingerprint
    guess: Guess


def directories(root: Path = ROOT) -> list[Path]:
    """The runs, oldest first."""
    return sorted(file.parent for file in root.glob(f"*/{plan.FILE}"))


def found(name: str, root: Path = ROOT) -> Path:
    """The directory of a run, or of the newest one if there is no name; raises BenchError if there is none."""
    known = directories(root)
    if not known:
        raise BenchError("there is no run on this host: fab bench makes one")
    if not name:
        return known[-1]
    for directory in known:
        if directory.name == name:
            return directory
    raise BenchError(f"there is no run {name} on this host; its runs: {', '.join(run.name for run in known)}")


def new_name(root: Path = ROOT) -> str:
    """A name for a run that begins now, by UTC."""
    name = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    taken = {directory.name for directory in directories(root)}
    return next(full for count in range(1, 1000) if (full := name if count == 1 else f"{name}-{count}") not in taken)


def resumable(wanted: Plan, now: Fingerprint, root: Path = ROOT) -> Path | None:
    """The newest run of the same plan and fingerprint that is not done; None if there is none.

    A directory that cannot be read is none.
    """
    for directory in reversed(directories(root)):
        try:
            same = not plan.read(directory).differences(wanted)
            alike = begun(directory).fingerprint.digest == now.digest
        except BenchError:
            continue
        if same and alike and (events.ended(directory) or {}).get("status") != events.DONE:
            return directory
    return None


def begin(directory: Path, wanted: Plan, begun_with: Begun) -> None:
    """Make the directory of a run, and write what it is; nothing that is there is changed."""
    directory.mkdir(mode=MODE, parents=True, exist_ok=True)
    plan.write(directory, wanted)
    if not (directory / BEGUN).exists():
        content = {
            "fingerprint": json.loads(begun_with.fingerprint.text),
            "guess": asdict(begun_with.guess),
        }
        durable.replace(directory / BEGUN, f"{json.dumps(content, indent=1)}\n".encode())


def begun(directory: Path) -> Begun:
    """What a run was begun with; raises BenchError, naming the file, if it does not say."""
    file = directory / BEGUN
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        return Begun(fingerprint.parsed(json.dumps(content["fingerprint"])), Guess(**content["guess"]))
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, BenchError) as error:
        raise BenchError(f"{file} does not say what the run was begun with") from error


def points(directory: Path) -> Mapping[Key, Mapping]:
    """The points of a run; raises BenchError, naming file and line, for a line that is none."""
    return store.read(directory / POINTS, Key, begun(directory).fingerprint.digest).points
