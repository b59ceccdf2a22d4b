"""What is asked of systemd and its journal."""

import re
import subprocess
from collections.abc import Sequence

from blackwell.bench.errors import BenchError

SERVICE = "sglang.service"
SERVER = "blackwell-bench-server.service"
RUNNER = "blackwell-bench.service"

SECONDS = 60
JOURNAL_LINES = 400
SHOWN = 300
"""Characters of a journal's line that a sentence has room for."""

TELLING = (
    re.compile(r"^[\w.]*(Error|Exception)\b|\berror: |\b(CRITICAL|FATAL)\b|^Fatal Python|Segmentation fault"),
    re.compile(r"\bERROR\b|^sglang-ready: "),
)
"""Lines that say why a server ended, the more telling ones first."""


def run(words: Sequence[str], seconds: float | None = SECONDS) -> str:
    """What a command prints; raises BenchError, with its last line, if it fails or takes longer than ``seconds``."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except OSError as error:
        raise BenchError(f"{words[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{' '.join(words[:3])} did not end within {seconds:g} s") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        why = said[-1].strip() if said else f"exit status {done.returncode}"
        raise BenchError(f"{' '.join(words[:3])} failed: {why}")
    return done.stdout


def show(unit: str, *properties: str) -> dict[str, str]:
    """Properties of a unit, loaded or not, by name, times in seconds since the epoch; one that has none is missing."""
    words = ["systemctl", "show", "--timestamp=unix", f"--property={','.join(properties)}", unit]
    return dict(line.split("=", 1) for line in run(words).splitlines() if "=" in line)


def state(unit: str) -> str:
    """ActiveState of a unit; ``inactive`` for one that is not loaded."""
    return show(unit, "ActiveState").get("ActiveState", "inactive")


def stop(unit: str) -> None:
    """Stop a unit and wait until it has; nothing happens to one that does not run, or is not there.

    Raises BenchError if it cannot be stopped.
    """
    if state(unit) not in ("inactive", "failed"):
        run(["systemctl", "stop", unit], None)


def forget_failures(unit: str) -> None:
    """Have the failed and the counted starts of a unit forgotten; nothing happens to one that is not loaded."""
    subprocess.run(["systemctl", "reset-failed", unit], capture_output=True, check=False)


def journal(invocation: str, lines: int = JOURNAL_LINES) -> list[str]:
    """The last lines that the processes of one start of a unit printed, blank ones left out; none if unreadable."""
    subprocess.run(["journalctl", "--sync"], capture_output=True, check=False)
    words = ["journalctl", f"_SYSTEMD_INVOCATION_ID={invocation}", f"--lines={lines}", "--no-pager", "--output=cat"]
    try:
        return [line.rstrip() for line in run([*words, "--quiet"]).splitlines() if line.strip()]
    except BenchError:
        return []


def telling(lines: Sequence[str]) -> str:
    """The line that says most about why a server ended: its last error, or its last line; empty if there is none."""
    for wanted in TELLING:
        if found := [line for line in lines if wanted.search(line)]:
            return found[-1].strip()[:SHOWN]
    return lines[-1].strip()[:SHOWN] if lines else ""
