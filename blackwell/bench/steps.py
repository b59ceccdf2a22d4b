"""A load that steps: the number of clients changes at once, and what was generated meanwhile."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .client import Server, connected, end, send, tasks_together
from .records import Record
from .window import tokens_between
from .workload import Request


@dataclass(frozen=True)
class Phase:
    """So many clients for so many seconds."""

    clients: int
    seconds: float


@dataclass(frozen=True)
class Stepped:
    """Output tokens per second over all phases and in each, and all records, the aborted ones at the end too."""

    tok_s: float
    phases: tuple[float, ...]
    records: tuple[Record, ...]


def measure(url: str, phases: Sequence[Phase], asked: Callable[[int], Iterator[Request]]) -> Stepped:
    """Load a server with phase after phase.

    Where clients are too many, they have their request answered and stop; those that come begin at once. ``asked``
    gives the requests of a client by its number from 0; one that comes again goes on with them.

    Raises LoadError if the server leaves one request unanswered.
    """
    return asyncio.run(_measure(url, phases, asked))


async def _measure(url: str, phases: Sequence[Phase], asked: Callable[[int], Iterator[Request]]) -> Stepped:
    records: list[Record] = []
    bounds: list[float] = []
    streams: dict[int, Iterator[Request]] = {}
    wanted = 0

    async def client(server: Server, number: int) -> None:
        stream = streams.setdefault(number, asked(number))
        await send(server, number, stream, records.append, lambda: number < wanted)

    async with connected(url) as server, tasks_together() as group:
        tasks: dict[int, asyncio.Task] = {}
        bounds.append(server.clock.now())
        for phase in phases:
            wanted = phase.clients
            # A client that has not finished since it became too many goes on.
            for number in range(wanted):
                if number not in tasks or tasks[number].done():
                    tasks[number] = group.create_task(client(server, number))
            bounds.append(bounds[-1] + phase.seconds)
            await asyncio.sleep(bounds[-1] - server.clock.now())
        wanted = 0
        await end(server, list(tasks.values()))
    rates = tuple(tokens_between(records, begin, until) / (until - begin) for begin, until in pairwise(bounds))
    return Stepped(tokens_between(records, bounds[0], bounds[-1]) / (bounds[-1] - bounds[0]), rates, tuple(records))
