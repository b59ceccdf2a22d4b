"""Puts the service back after a sweep, however that ended: ``python -m blackwell.sweep.put_back RUN``.

The unit of a sweep runs this as its ExecStopPost.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from blackwell.bench import durable
from blackwell.bench.errors import BenchError

from . import service
from .events import EXIT, FAILED, STOPPED


def main() -> int:
    """Command line; returns the exit status."""
    run = Path(sys.argv[1])
    try:
        print(f"put back: {service.put_back(run, wait=False)}", flush=True)
        note(run, os.environ)
    except (BenchError, OSError) as error:
        print(f"put back: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def note(run: Path, told: Mapping[str, str]) -> None:
    """Write down how a sweep ended that could not do so itself; ``told``: what systemd tells an ExecStopPost.

    Raises BenchError if that cannot be written.
    """
    if "SERVICE_RESULT" in told and not (run / EXIT).exists():
        content = {**how(told), "at": round(time.time(), 1)}
        durable.replace(run / EXIT, f"{json.dumps(content)}\n".encode())


def how(told: Mapping[str, str]) -> dict[str, str]:
    """Status and reason of a sweep that left no word, by the variables of systemd.exec(5)."""
    result, code, status = (told.get(name, "") for name in ("SERVICE_RESULT", "EXIT_CODE", "EXIT_STATUS"))
    if (code, status) == ("killed", "TERM"):
        return {"status": STOPPED, "reason": "it was told to stop"}
    signal = f"ended by signal {status}" if code in ("killed", "dumped") else f"over, with exit status {status or '?'},"
    memory = ", as the memory was used up" if result == "oom-kill" else ""
    return {"status": FAILED, "reason": f"the sweep was {signal} before it could say why{memory}"}


if __name__ == "__main__":
    sys.exit(main())
