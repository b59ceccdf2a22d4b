"""What the cards do while a server is measured: nvidia-smi in the background, and what its lines say."""

import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

FIELDS = (
    *("index", "power.draw", "clocks.sm", "temperature.gpu", "utilization.gpu", "memory.used"),
    "clocks_event_reasons.active",
)
"""In the order of ``Sample``; nvidia-smi --help-query-gpu tells what they are."""

COMMAND = ("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits", "--loop-ms=1000")
STOP_SECONDS = 5

SLOWED = {
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML, nvmlClocksEventReasons) that say that something is wrong.

Of the others, 0x4, the software power cap, is how a card under load keeps to its power limit.
"""


@dataclass(frozen=True)
class Sample:
    """One card at one moment: ``at`` as time.monotonic() counts, MHz, degrees Celsius, percent, MiB, NVML's bits.

    What the card does not tell is None.
    """

    at: float
    card: int
    power_w: float | None
    sm_mhz: float | None
    temperature_c: float | None
    busy: float | None
    memory_mib: float | None
    reasons: int | None


@dataclass(frozen=True)
class Summary:
    """All cards over a window; what one of them does not tell is None for all. ``note``: why not to trust the clocks.

    ``power_w``: sum over the cards of their means. ``sm_mhz``: mean of the slowest card. ``temperature_c``: highest of
    any card. ``note``: a clause without full stop.
    """

    power_w: float | None = None
    sm_mhz: float | None = None
    temperature_c: float | None = None
    note: str | None = None


def parsed(line: str, at: float) -> Sample | None:
    """The sample of one line of ``COMMAND``; None if it is none, such as a message about a lost card."""
    cells = [cell.strip() for cell in line.split(",")]
    if len(cells) != len(FIELDS) or not cells[0].isdecimal():
        return None
    *numbers, reasons = cells[1:]
    return Sample(at, int(cells[0]), *map(_number, numbers), _bits(reasons))


def _number(cell: str) -> float | None:
    # [N/A], [Not Supported], [Unknown Error] and others
    try:
        return float(cell)
    except ValueError:
        return None


def _bits(cell: str) -> int | None:
    try:
        return int(cell, 16)
    except ValueError:
        return None


def summary(samples: Sequence[Sample], begin: float, end: float) -> Summary:
    """What the samples from ``begin`` to ``end``, as time.monotonic() counts, say of the machine."""
    cards: dict[int, list[Sample]] = {}
    for sample in samples:
        if begin <= sample.at <= end:
            cards.setdefault(sample.card, []).append(sample)
    powers = _of_all(cards, lambda sample: sample.power_w)
    clocks = _of_all(cards, lambda sample: sample.sm_mhz)
    temperatures = _of_all(cards, lambda sample: sample.temperature_c)
    return Summary(
        round(sum(map(statistics.mean, powers)), 1) if powers else None,
        round(min(map(statistics.mean, clocks)), 1) if clocks else None,
        max(map(max, temperatures)) if temperatures else None,
        _note(cards),
    )


def _of_all(cards: dict[int, list[Sample]], told: Callable[[Sample], float | None]) -> list[list[float]] | None:
    """The values of each card; None if one of them has none: a sum or a minimum without it would mislead."""
    values = [[value for sample in samples if (value := told(sample)) is not None] for samples in cards.values()]
    return values if all(values) else None


def _note(cards: dict[int, list[Sample]]) -> str | None:
    clauses = []
    for card, samples in sorted(cards.items()):
        slowed = [sample.reasons for sample in samples if (sample.reasons or 0) & sum(SLOWED)]
        if slowed:
            words = [word for bit, word in SLOWED.items() if any(reasons & bit for reasons in slowed)]
            clauses.append(
                f"card {card} was slowed down in {len(slowed)} of {len(samples)} samples: {', '.join(words)}"
            )
    return "; ".join(clauses) or None


@contextmanager
def sampled(command: Sequence[str] = COMMAND) -> Iterator[list[Sample]]:
    """The samples of all cards, a second apart, that come in for the length of a block; none without nvidia-smi."""
    samples: list[Sample] = []
    if not shutil.which(command[0]):
        yield samples
        return
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    # It is not waited for without end: nvidia-smi may hang in the driver, where no signal reaches it.
    reader = threading.Thread(target=_read, args=(process, samples), daemon=True)
    reader.start()
    try:
        yield samples
    finally:
        process.terminate()
        reader.join(STOP_SECONDS)
        if reader.is_alive():
            process.kill()
            reader.join(STOP_SECONDS)


def _read(process: subprocess.Popen, samples: list[Sample]) -> None:
    with process:
        for line in process.stdout:
            if sample := parsed(line, time.monotonic()):
                samples.append(sample)
