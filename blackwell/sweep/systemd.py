"""What is asked of systemd."""

import subprocess
from collections.abc import Sequence

from blackwell.bench.errors import BenchError

SERVICE = "sglang.service"
SERVER = "blackwell-bench-server.service"
RUNNER = "blackwell-bench.service"

SECONDS = 60


def run(words: Sequence[str], seconds: float | None = SECONDS) -> str:
    """What a command prints; raises BenchError with its own last line if it fails or takes longer than ``seconds``."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except OSError as error:
        raise BenchError(f"{words[0]} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{' '.join(words)} did not end within {seconds:g} s") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise BenchError(f"{' '.join(words)} failed: {said[-1] if said else f'exit status {done.returncode}'}")
    return done.stdout


def show(unit: str, *properties: str) -> dict[str, str]:
    """Properties of a unit, loaded or not, by name; one that systemd does not know is missing."""
    lines = run(["systemctl", "show", f"--property={','.join(properties)}", unit]).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def state(unit: str) -> str:
    """ActiveState of a unit, ``inactive`` for one that is not loaded."""
    return show(unit, "ActiveState").get("ActiveState", "inactive")


def stop(unit: str) -> None:
    """Stop a unit and wait until it has ended; nothing happens to one that is not loaded."""
    if show(unit, "LoadState").get("LoadState") == "loaded":
        run(["systemctl", "stop", unit], None)


def forget_failure(unit: str) -> None:
    """Have a unit's failed starts forgotten; nothing happens to one that has none or is not loaded."""
    subprocess.run(["systemctl", "reset-failed", unit], capture_output=True, check=False)


def journal(unit: str, invocation: str, lines: int = 200) -> list[str]:
    """The last lines that one start of a unit printed."""
    words = ["journalctl", f"_SYSTEMD_INVOCATION_ID={invocation}", "+", f"INVOCATION_ID={invocation}"]
    if not invocation:
        words = ["journalctl", f"--unit={unit}"]
    return run([*words, f"--lines={lines}", "--no-pager", "--output=cat", "--quiet"]).splitlines()
