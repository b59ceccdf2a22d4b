"""Sums of several cards without NCCL: whether each way of the patch series runs, and gives what NCCL gives.

Torch symmetric memory without multicast and FlashInfer's fused all-reduce, as on SM120: SGLang's own all-reduce is off,
and the cards say that they are of capability 12 while things are set up. Calls are counted at the kernels.
SGLang, FlashInfer and torch must be importable (PYTHONPATH).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import machine
from command_line import WRONG, Parser
from server import SEVERAL_CARDS

RANK = Path(__file__).with_name("collectives_rank.py")

BUILT = "trtllm_comm_sm120/trtllm_comm_sm120.so"

ENVIRONMENT = {**SEVERAL_CARDS, "SGLANG_IS_FLASHINFER_AVAILABLE": "true"}


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    made = Parser(prog="collectives.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("out", type=Path, help="directory for logs and results")
    made.add_argument("--tp", type=int, default=2, help="cards: 2, 4 or 8 (%(default)s)")
    made.add_argument("--port", type=int, default=31900, help="port of the ranks (%(default)s)")
    made.add_argument("--seconds", type=float, default=140, help="after which all ranks are killed (%(default)s)")
    made.add_argument(
        "--built",
        type=Path,
        help=f"directory with {BUILT} for these cards; otherwise nvcc builds it, in minutes",
    )
    return made


def architecture() -> str:
    """The cards' compute capability as FlashInfer wants it: its compiler must not believe what they say in the test."""
    query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
    said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return f"{said.split()[0]}a"


def run(commands: Sequence[Sequence[str]], out: Path, seconds: float) -> list[int | None]:
    """Exit statuses of the ranks, None for one that had to be killed; each has a log in ``out``.

    One that fails leaves the others waiting for it: they are given no more than a few seconds.
    """
    ranks = []
    for number, command in enumerate(commands):
        with (out / f"rank-{number}.log").open("w") as log:
            environment = {**os.environ, **ENVIRONMENT, "FLASHINFER_CUDA_ARCH_LIST": architecture()}
            ranks.append(
                subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            )
    deadline = time.monotonic() + seconds
    while any(rank.poll() is None for rank in ranks) and time.monotonic() < deadline:
        if any(rank.returncode for rank in ranks):
            deadline = min(deadline, time.monotonic() + 5)
        time.sleep(0.1)
    statuses = [rank.poll() for rank in ranks]
    for rank in ranks:
        if rank.poll() is None:
            os.killpg(rank.pid, signal.SIGKILL)
            rank.wait()
    return statuses


def read(out: Path, ranks: int) -> list[list[dict]]:
    """What each rank noted."""
    return [[json.loads(line) for line in lines(out / f"rank-{rank}.jsonl")] for rank in range(ranks)]


def lines(path: Path) -> list[str]:
    """The whole lines of a file; none if it is not there."""
    return [line for line in path.read_text().splitlines(keepends=True) if line[-1:] == "\n"] if path.exists() else []


def problems(noted: Sequence[Sequence[dict]], statuses: Sequence[int | None]) -> list[str]:
    """What is not as it should be, a sentence each."""
    found = []
    for rank, (rows, status) in enumerate(zip(noted, statuses, strict=True)):
        found += [f"rank {rank}: {name(row)} ran as {row.get('ran')}" for row in rows if row.get("is_right") is False]
        if not rows or rows[-1]["what"] != "end":
            last = name(rows[-1]) if rows else "nothing"
            ended = "was killed" if status is None else f"ended with {status}"
            found.append(f"rank {rank} {ended} after {last}")
    return found


def name(row: dict) -> str:
    """What a row is about."""
    size = f" of {row['bytes']} bytes" if "bytes" in row else ""
    return f"{row['what']}{size}{' by ' + row['wanted'] if 'wanted' in row else ''}"


def table(noted: Sequence[Sequence[dict]]) -> str:
    """A line for each thing that was tried, with the calls on each rank, and one for each time of rank 0."""
    made = []
    for rows in zip(*noted, strict=False):
        first = rows[0]
        if "is_right" in first:
            calls = " | ".join(" ".join(f"{way} x{n}" for way, n in row.get("ran", {}).items()) for row in rows)
            verdict = "equal" if all(row["is_right"] for row in rows) else "WRONG"
            made.append(f"{name(first):62} {verdict:6} {calls if 'ran' in first else ''}".rstrip())
        elif first["what"] == "time":
            made.append(f"{name(first):62} {first['us']:8.2f} us by {first['way']}, {first['nccl_us']:.2f} us by nccl")
    return "\n".join(made)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: exits with 1 if something is not as NCCL has it or did not run, 2 if an option is wrong."""
    options = parser().parse_args(arguments)
    there = machine.cards()
    wrong = machine.problem(options.tp, len(there))
    if not wrong and options.tp == 1:
        wrong = "--tp is 1, and one card has nothing to sum"
    if not wrong and options.built and not (options.built / BUILT).is_file():
        wrong = f"--built: {options.built} has no {BUILT}"
    if wrong:
        sys.stderr.write(f"collectives.py: {wrong}\n")
        return WRONG
    options.out.mkdir(parents=True, exist_ok=True)
    for old in options.out.glob("rank-*"):
        old.unlink()
    given = (str(options.tp), str(options.port), str(options.built.resolve()) if options.built else "")
    commands = [[sys.executable, str(RANK), str(options.out), str(rank), *given] for rank in range(options.tp)]
    begun = time.monotonic()
    statuses = run(commands, options.out, options.seconds)
    noted = read(options.out, options.tp)
    found = problems(noted, statuses)
    result = {"gpu": machine.used(there, options.tp), "seconds": round(time.monotonic() - begun, 1), "problems": found}
    (options.out / "collectives.json").write_text(json.dumps({**result, "ranks": noted}, indent=1) + "\n")
    sys.stdout.write("\n".join([table(noted), *found, f"{len(found)} problems in {result['seconds']} s"]) + "\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
