"""Proofs that this machine has kept, one a line for each host."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from blackwell import paths
from blackwell.bench import durable
from blackwell.bench.errors import BenchError
from blackwell.host_errors import HostError

from .proof import Proof, Size

RESULTS = paths.ROOT / "results"
FILE = "interconnect.jsonl"


def keep(host: str, at: float, proof: Proof, of: Path = RESULTS) -> Path:
    """Add a proof, made ``at`` seconds since the epoch; raises HostError, naming the file, if that cannot be."""
    file = of / host / FILE
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        durable.append(file, json.dumps({"at": at, **asdict(proof)}))
    except OSError as error:
        raise HostError(f"{file} cannot be written: {error.strerror}") from error
    except BenchError as error:
        raise HostError(str(error)) from error
    return file


def last(host: str, like: Proof, of: Path = RESULTS) -> tuple[float, Proof] | None:
    """The newest proof that summed rightly on as many devices of the same kind, and when it was made.

    One that was made beside a server does not compare with one that was not. Raises HostError, naming the file and the
    line, if something else stands there.
    """
    same = [
        (at, proof)
        for at, proof in _read(of / host / FILE)
        if proof.sums and (proof.kind, proof.ranks, proof.beside) == (like.kind, like.ranks, like.beside)
    ]
    return same[-1] if same else None


def _read(file: Path) -> Iterator[tuple[float, Proof]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        raise HostError(f"{file} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        try:
            yield _row(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise HostError(f"{file}, line {number}: no record of an all-reduce; take the line out") from error


def _row(row: dict) -> tuple[float, Proof]:
    at = float(row.pop("at"))
    return at, Proof(**{
        **row,
        "reached": tuple(row["reached"]),
        "failed": {int(number): line for number, line in row["failed"].items()},
        "sizes": tuple(Size(**size) for size in row["sizes"]),
    })  # fmt: skip
