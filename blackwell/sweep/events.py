"""What a sweep says while it goes on: a line of JSON for each step, for whoever follows it."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blackwell.bench import durable

FILE, EXIT = "events.jsonl", "exit.json"
DONE, FAILED, STOPPED = "done", "failed", "stopped"


@dataclass(frozen=True)
class Events:
    """The events of a run's directory."""

    directory: Path

    def add(self, event: str, **content: object) -> None:
        """Write an event, and a line for the log."""
        line = {"at": round(time.time(), 1), "event": event, **content}
        durable.append(self.directory / FILE, json.dumps(line, separators=(",", ":")))
        print(json.dumps(line), flush=True)

    def end(self, status: str, reason: str = "") -> None:
        """Write how the run ended."""
        at = round(time.time(), 1)
        content = {"status": status, "reason": reason, "at": at}
        durable.replace(self.directory / EXIT, f"{json.dumps(content)}\n".encode())
        self.add("end", status=status, reason=reason)

    def begin(self) -> None:
        """Forget how the run ended when it ran before."""
        (self.directory / EXIT).unlink(missing_ok=True)


def ended(directory: Path) -> Mapping | None:
    """How a run ended; None if it has not, or if nobody could write it down."""
    try:
        found = json.loads((directory / EXIT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and "status" in found else None


def size(directory: Path) -> int:
    """Bytes of the events that there are."""
    try:
        return (directory / FILE).stat().st_size
    except FileNotFoundError:
        return 0


def after(directory: Path, offset: int, most: int = 1 << 20) -> tuple[list[dict], int]:
    """The events from a byte offset on, of at most ``most`` bytes, and the offset after them."""
    try:
        with (directory / FILE).open("rb") as file:
            file.seek(offset)
            data = file.read(most)
    except FileNotFoundError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return [found for line in whole.splitlines() if (found := _event(line)) is not None], offset + len(whole)


def _event(line: bytes) -> dict | None:
    try:
        found = json.loads(line)
    except ValueError:
        # What a power cut left of a line is no event.
        return None
    return found if isinstance(found, dict) and "event" in found else None
