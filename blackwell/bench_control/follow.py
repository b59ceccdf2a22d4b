"""Watches a sweep that goes on by itself; a connection that breaks is opened again."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TextIO

from fabric import Connection

from blackwell import remote
from blackwell.bench_control import screen
from blackwell.host_errors import HostError
from blackwell.inventory import Host

POLL_SECONDS = 2.0
MOST_BREAKS = 30
"""Attempts to connect again, one after the other, until it is left to the operator."""

Opened = Callable[[], AbstractContextManager[tuple[Connection, Host]]]


class Follower:
    """Shows the events of a run from an ``offset`` on; ``archive``: the zip of the program."""

    def __init__(self, opened: Opened, archive: bytes, run: str, offset: int = 0, out: TextIO = sys.stdout) -> None:
        """``opened`` gives a connection each time that it is called; without a ``run`` it is the newest one."""
        self.opened, self.archive, self.run, self.offset, self.out = opened, archive, run, offset, out
        self.last: Mapping = {}
        self.breaks, self.seen = 0, False

    def follow(self) -> Mapping:
        """Return the last look at a run, once it has ended; raises HostError if the host cannot be reached any more."""
        while True:
            try:
                with self.opened() as (connection, host):
                    return next(found for found in self._looks(connection, host) if _is_over(found))
            except remote.RefusedError:
                raise
            except HostError as error:
                if not self.seen:
                    raise
                self.breaks += 1
                if self.breaks > MOST_BREAKS:
                    raise HostError(f"{error}; {goes_on()}") from error
                self._say(f"{error}; connecting again")
                time.sleep(POLL_SECONDS)

    def _looks(self, connection: Connection, host: Host) -> Iterator[Mapping]:
        while True:
            found = remote.call_packed(connection, host, self.archive, "look", run=self.run, offset=self.offset)
            self.breaks, self.seen, self.offset, self.run = 0, True, found["offset"], found["run"]
            for event in found["events"]:
                self._say(screen.event(event))
                self.last = event
            yield found
            # More than one look holds.
            if not found["events"]:
                self._status()
                time.sleep(POLL_SECONDS)

    def _say(self, line: str) -> None:
        self.out.write(f"{self._clear()}{line}\n")
        self.out.flush()

    def _status(self) -> None:
        """Show on a terminal that it goes on; nothing elsewhere, where it would fill a log."""
        if self.last and self.out.isatty():
            waited = screen.duration(max(0, time.time() - self.last["at"]))
            self.out.write(f"{self._clear()}{screen.counted(self.last)}... {waited} since {self.last['event']}")
            self.out.flush()

    def _clear(self) -> str:
        return "\r\x1b[K" if self.out.isatty() else ""


def _is_over(found: Mapping) -> bool:
    """Whether the sweep has ended, and the service is back or cannot be."""
    return not found["under_way"] and not found["events"] and found["service"] not in ("activating", "deactivating")


def goes_on() -> str:
    """What an operator has to know who is not connected any more."""
    return "the sweep goes on by itself: bench.follow shows it again, bench.stop ends it"


@contextmanager
def detachable(say: Callable[[str], None]) -> Iterator[None]:
    """Within the block an interrupt means that somebody stops to watch, and says so; it ends with status 130."""
    try:
        yield
    except KeyboardInterrupt:
        say(goes_on())
        raise SystemExit(130) from None
