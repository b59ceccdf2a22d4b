"""What is noted while a server is under load. All times are seconds since the load began."""

from collections.abc import Sequence
from dataclasses import dataclass, field

DIGITS = 4
"""Decimals of a time that are kept: 0.1 ms."""


@dataclass(frozen=True)
class Record:
    """One answered request.

    ``tokens``: tokens that it was given. ``verified``: rounds of speculation that it took part in, 0 without.
    ``aborted``: ended before it had all of its tokens. ``retracted``: times that the server put it back into its queue.
    """

    client: int
    began: float
    ended: float
    tokens: int
    verified: int
    aborted: bool
    retracted: int = 0


@dataclass(frozen=True)
class Poll:
    """Requests that the server itself counted as decoding and as queued, at one moment."""

    at: float
    running: int
    queued: int


@dataclass(frozen=True)
class Measurement:
    """What one load was answered, and the window (begin, end) in which all clients were busy.

    ``origin``: what time.monotonic() told when the load began; 0 for one that was read from a file.
    """

    window: tuple[float, float]
    polls: Sequence[Poll]
    records: Sequence[Record]
    origin: float = field(default=0.0, compare=False)
