"""What nvidia-smi says of a host's cards that an operator should know."""

from collections.abc import Mapping
from dataclasses import dataclass

OURS = ("/sglang.service", "/blackwell-bench.service", "/blackwell-bench-server.service")
"""The control groups that may compute on the cards."""

SLOWED = {
    0x08: "hardware slowdown",
    0x20: "too hot, by the driver",
    0x40: "too hot, by the hardware",
    0x80: "power brake of the power supply",
}
"""Bits of ``clocks_event_reasons.active`` that are no part of working (nvmlClocksEventReasons of NVML's reference)."""


@dataclass(frozen=True)
class Card:
    """``uncorrected``: memory errors since the driver was loaded, None where the card does not count.

    ``slowed``: why its clocks are held down now.
    """

    index: str
    name: str
    uncorrected: int | None
    slowed: tuple[str, ...]


@dataclass(frozen=True)
class Process:
    """A process on a card that is none of the service's; ``memory`` in MiB, as nvidia-smi writes it."""

    pid: str
    memory: str
    name: str


@dataclass(frozen=True)
class Cards:
    """``error``: what nvidia-smi said instead of an answer; empty if it gave one."""

    cards: tuple[Card, ...]
    strangers: tuple[Process, ...]
    error: str = ""


def parse(found: Mapping | None) -> Cards | None:
    """The cards by ``gpus`` of what ``on_host.doctor`` returned; None on a host without nvidia-smi."""
    if found is None:
        return None
    error = found["cards"].get("error") or found["processes"].get("error") or ""
    rows = [_cells(line, 4) for line in found["cards"].get("text", "").splitlines() if line.strip()]
    processes = [_cells(line, 3) for line in found["processes"].get("text", "").splitlines() if line.strip()]
    if any(len(row) != 4 for row in rows) or any(len(row) != 3 for row in processes):
        return Cards((), (), "it answered in another form")
    return Cards(
        tuple(_card(*row) for row in rows),
        tuple(Process(*row) for row in processes if not _ours(found["groups"].get(row[0], ""))),
        error,
    )


def _cells(line: str, count: int) -> list[str]:
    return [cell.strip() for cell in line.split(",", count - 1)]


def _card(index: str, name: str, uncorrected: str, reasons: str) -> Card:
    try:
        bits = int(reasons, 16)
    except ValueError:
        bits = 0
    return Card(
        index,
        name,
        int(uncorrected) if uncorrected.isdecimal() else None,
        tuple(words for bit, words in SLOWED.items() if bits & bit),
    )


def _ours(group: str) -> bool:
    return any(line.endswith(OURS) or any(f"{name}/" in line for name in OURS) for line in group.splitlines())
