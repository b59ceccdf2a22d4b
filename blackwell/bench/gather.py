"""Takes the fingerprint of a server on this host: asks the driver, the server, and what the kernel tells of it."""

import hashlib
import http.client
import mmap
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import facts
from .fingerprint import Fingerprint, Unknown, made

ANSWER_SECONDS = 10
COMMAND_SECONDS = 60
SAMPLE_BYTES = 1 << 16
SHOWN_DIGITS = 16
"""Of a SHA-256 that is shown in a sentence; 64 bits are enough to see a change."""

NCCL_VERSION = re.compile(rb"NCCL version (\d[\w.+-]*)")


@dataclass(frozen=True)
class Host:
    """Where a host is asked: ``proc`` is where /proc is, ``run`` gives what a command prints, or why it does not."""

    proc: Path
    run: Callable[[Sequence[str]], str | Unknown]


def output(command: Sequence[str]) -> str | Unknown:
    """What a command prints, or why it prints nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except OSError as error:
        return Unknown(f"{command[0]} cannot be run: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Unknown(f"{command[0]} said nothing within {COMMAND_SECONDS} s")
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        return Unknown(f"{command[0]} ended with {done.returncode}: {said[0] if said else 'without a word'}")
    return done.stdout


THIS_HOST = Host(Path("/proc"), output)


def server_info(url: str) -> str | Unknown:
    """What the server at ``url`` answers to /server_info."""
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/server_info", timeout=ANSWER_SECONDS) as answer:
            return answer.read().decode(errors="replace")
    except urllib.error.HTTPError as error:
        return Unknown(f"/server_info was answered with {error.code}")
    except (OSError, http.client.HTTPException) as error:
        return Unknown(f"/server_info was not answered: {getattr(error, 'reason', None) or error}")


def gather(pid: int, answer: str | Unknown, workload: Mapping[str, Any], host: Host = THIS_HOST) -> Fingerprint:
    """The fingerprint of the server whose first process is ``pid`` and whose answer to /server_info is ``answer``.

    ``workload``: what is asked of it. What cannot be read is an unknown part, never an error.
    """
    server = _then(facts.information, answer)
    environ, maps = _bytes(host.proc / str(pid) / "environ"), _maps(pid, host.proc)
    return made(
        {
            **_cards(host),
            **_model(server, "model", "model_path", "revision"),
            **_model(server, "draft", "speculative_draft_model_path", "speculative_draft_model_revision"),
            "cuda_runtime": _then(lambda found: _libraries(found, "libcudart.so"), maps),
            "nccl": _then(lambda found: _libraries(found, "libnccl.so"), maps),
            "nccl_environment": _then(lambda found: facts.environment(found, "NCCL_"), environ),
            "sglang_environment": _then(lambda found: facts.environment(found, "SGLANG_"), environ),
            "sglang": _then(lambda found: facts.told(found, "version"), server),
            "patch_tree": _then(lambda found: facts.told(found, "patch_tree"), server),
            "flags": _then(facts.flags, server),
            "workload": workload,
        }
    )


def _then(made_of: Callable[[Any], object], found: object) -> object:
    return found if isinstance(found, Unknown) else made_of(found)


def _cards(host: Host) -> dict[str, Any]:
    version = host.proc / "driver" / "nvidia" / "version"
    # Without the driver's module there is no card that a server could use, which is known.
    if not version.exists():
        return dict.fromkeys(("gpus", "topology", "driver", "cuda"))
    query = ["nvidia-smi", f"--query-gpu={facts.GPU_QUERY}", "--format=csv,noheader"]
    return {
        "gpus": _then(facts.gpus, host.run(query)),
        "topology": _then(facts.topology, host.run(["nvidia-smi", "topo", "-m"])),
        "driver": _then(lambda found: facts.driver(found.decode(errors="replace")), _bytes(version)),
        "cuda": _then(facts.cuda, host.run(["nvidia-smi", "--version"])),
    }


def _model(server: Mapping[str, Any] | Unknown, part: str, path: str, revision: str) -> dict[str, object]:
    """A part for its name and one for its files: where those cannot be read, two models still differ by name."""
    files = f"{part}_files"
    if isinstance(server, Unknown):
        return dict.fromkeys((part, files), server)
    if server.get(path) is None:
        return dict.fromkeys((part, files))
    at = f" at {server[revision]}" if server.get(revision) else ""
    return {part: f"{server[path]}{at}", files: _content(Path(server[path]))}


def _content(folder: Path) -> str | Unknown:
    try:
        return content_digest(folder)
    except OSError as error:
        return Unknown(f"{error.filename or folder} cannot be read: {error.strerror}")


def content_digest(folder: Path) -> str:
    """What tells the files of a model from those of another, as hexadecimal digits.

    Names, sizes, all of the JSON, and of every other file its beginning, middle and end: to read all weights takes
    minutes, and those of another training differ everywhere. Raises OSError if something cannot be read.
    """
    told = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        size = file.stat().st_size
        told.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as data:
            if file.suffix == ".json":
                told.update(data.read())
                continue
            for start in (0, size // 2, max(0, size - SAMPLE_BYTES)):
                data.seek(start)
                told.update(data.read(SAMPLE_BYTES))
    return told.hexdigest()[:SHOWN_DIGITS]


def _maps(pid: int, proc: Path) -> list[str] | Unknown:
    found = [_bytes(proc / str(one) / "maps") for one in family(pid, proc)]
    unknown = next((one for one in found if isinstance(one, Unknown)), None)
    return unknown or [text.decode(errors="replace") for text in found]


def _libraries(maps: list[str], name: str) -> str | Unknown | None:
    found = [library(path) for path in facts.libraries(maps, name)]
    unknown = next((one for one in found if isinstance(one, Unknown)), None)
    return unknown or ", ".join(sorted(set(found))) or None


def family(pid: int, proc: Path) -> list[int]:
    """A process and all that it started and that are still there; the schedulers load NCCL, not the first process."""
    found, pending = [], [pid]
    while pending:
        found.append(pending.pop())
        for children in (proc / str(found[-1]) / "task").glob("*/children"):
            text = _bytes(children)
            pending += [] if isinstance(text, Unknown) else map(int, text.split())
    return found


def library(path: str) -> str | Unknown:
    """A shared library in words: its name, a digest of the file, and the version that NCCL names in it."""
    if path.endswith(" (deleted)"):
        return Unknown(f"{path.removesuffix(' (deleted)')} was replaced since the server loaded it")
    try:
        with Path(path).open("rb") as data, mmap.mmap(data.fileno(), 0, access=mmap.ACCESS_READ) as content:
            digest = hashlib.sha256(content).hexdigest()[:SHOWN_DIGITS]
            named = NCCL_VERSION.search(content)
            version = f"{named[1].decode()} " if named else ""
    except OSError as error:
        return Unknown(f"{path} cannot be read: {error.strerror}")
    return f"{version}{Path(path).name} ({digest})"


def _bytes(file: Path) -> bytes | Unknown:
    try:
        return file.read_bytes()
    except OSError as error:
        return Unknown(f"{file} cannot be read: {error.strerror}")
