"""Running other programs and waiting for what they bring about."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from blackwell.sandbox.errors import SandboxError

Say = Callable[[str], None]


def say(text: str) -> None:
    """Print a progress line with the time on stderr."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run(*argv: str, stdin: str = "") -> str:
    """Run a program to its end and return what it printed.

    Raises SandboxError with the program's own last words when it fails or is missing.
    """
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SandboxError(f"{argv[0]} is missing: run scripts/bootstrap sandbox") from error
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["no message"]
        raise SandboxError(f"{' '.join(argv)} failed ({done.returncode}): {words[-1]}")
    return done.stdout


def run_json(*argv: str) -> list[dict]:
    """Run a program that prints a JSON list; ``ip`` prints nothing at all when the list is empty."""
    return json.loads(run(*argv) or "[]")


def missing(programs: tuple[str, ...]) -> list[str]:
    """Those of the programs that are not on PATH."""
    return [program for program in programs if shutil.which(program) is None]


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within so many seconds; asked every 20 ms."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
