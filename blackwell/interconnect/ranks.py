"""All ranks of an all-reduce, under a time limit.

Runs on the host, where it is sent as text: the standard library only.
"""

import contextlib
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

END_SECONDS = 2
LAST_WORDS = 2000
"""Characters that are kept of what a rank said on its standard error."""


def read(rank: int, process: subprocess.Popen, heard: queue.Queue) -> None:
    """Hand on what a rank tells, and None once it has ended."""
    for line in process.stdout:
        with contextlib.suppress(ValueError):
            heard.put((rank, json.loads(line)))
    process.wait()
    heard.put((rank, None))


def listen(processes: list, heard: queue.Queue, seconds: float) -> list:
    """What each rank told, until all have ended, one has failed, or the time is up."""
    told, running, deadline = [[] for _ in processes], set(range(len(processes))), time.monotonic() + seconds
    while running:
        try:
            rank, row = heard.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        if row is not None:
            told[rank].append(row)
        elif processes[rank].returncode:
            # The others wait for it for ever.
            break
        else:
            running.discard(rank)
    return told


def end(processes: list) -> None:
    """End what still runs. A process that the driver holds does not end; systemd reports it with the unit."""
    for process in processes:
        process.kill()
    for process in processes:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)


def run(program: str, total: int, kind: str, sizes: list, seconds: float) -> dict:
    """One process a rank, all ended when it returns.

    Of each rank: what it ``told``, its ``status``, None for one that had not ended, and its last words.
    """
    heard, processes = queue.Queue(), []
    with tempfile.TemporaryDirectory() as scratch:
        logs = [Path(scratch) / f"{rank}.log" for rank in range(total)]
        try:
            for rank, log in enumerate(logs):
                arguments = [str(rank), str(total), kind, f"{scratch}/store", json.dumps(sizes)]
                with log.open("w") as errors:
                    process = subprocess.Popen(
                        [sys.executable, "-I", "-c", program, *arguments],
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True,
                    )  # fmt: skip
                processes.append(process)
                threading.Thread(target=read, args=(rank, process, heard), daemon=True).start()
            told = listen(processes, heard, seconds)
            statuses = [process.poll() for process in processes]
        finally:
            end(processes)
        said = [log.read_text(errors="replace")[-LAST_WORDS:] for log in logs]
    return {
        "ranks": [
            {"told": rows, "status": status, "said": text}
            for rows, status, text in zip(told, statuses, said, strict=True)
        ]
    }
