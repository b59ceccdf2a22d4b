"""An all-reduce on the screen, and for scripts."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from blackwell.status_screen import moment

from .proof import Proof, bus_bandwidth

GIGA = 1e9
DEVICES = {"cuda": "GPUs", "cpu": "processes on the CPU"}


def render(host: str, proof: Proof, last: tuple[float, Proof] | None, wrong: Sequence[str], todo: Sequence[str]) -> str:
    """The proof as a screen; its first line is the verdict."""
    verdict = "; ".join(wrong) or f"{proof.ranks} {DEVICES[proof.kind]} sum what they hold, rightly"
    lines = [f"{host}: {verdict}", *(f"  -> {step}" for step in todo), f"  {_facts(proof)}"]
    lines += [_row(proof, number, last[1] if last else None) for number in range(len(proof.sizes))]
    lines.append(f"  the last time was {moment(last[0])}" if last else "  there was no other time to compare with")
    return "\n".join(lines)


def _facts(proof: Proof) -> str:
    words = [f"{name} {value}" if name != "gpu" else value for name, value in proof.facts.items()]
    pairs = proof.ranks * (proof.ranks - 1)
    words += [f"{proof.peers} of {pairs} pairs read each other's memory"] if proof.kind == "cuda" else []
    return ", ".join([*words, *(["beside the server"] if proof.beside else [])])


def _row(proof: Proof, number: int, last: Proof | None) -> str:
    found = proof.sizes[number]
    before = {one.bytes: one.seconds for one in last.sizes} if last else {}
    speed = bus_bandwidth(found, proof.ranks) / GIGA
    share = f", {before[found.bytes] / found.seconds:.2f} of the last time's speed" if found.bytes in before else ""
    return f"  {_size(found.bytes):>8}  {found.seconds * 1e6:>10.1f} us  {speed:>8.2f} GB/s on the bus{share}"


def _size(count: int) -> str:
    return f"{count / 2**20:g} MiB" if count >= 2**20 else f"{count / 2**10:g} KiB"


def as_json(
    host: str, proof: Proof, last: tuple[float, Proof] | None, wrong: Sequence[str], todo: Sequence[str]
) -> str:
    """The same for scripts; bandwidths in bytes per second."""
    sizes = [asdict(found) | {"bus_bandwidth": bus_bandwidth(found, proof.ranks)} for found in proof.sizes]
    before = {"at": last[0], **asdict(last[1])} if last else None
    told = {"host": host, "wrong": list(wrong), "remedies": list(todo), **asdict(proof), "sizes": sizes, "last": before}
    return json.dumps(told, indent=1)
