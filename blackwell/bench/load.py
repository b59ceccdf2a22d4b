"""Keeps a number of clients busy at a server, and notes what they were answered while all of them were."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator

from .client import Server, connected, end, send, tasks_together
from .length import Length
from .records import Measurement, Poll, Record
from .workload import Request

POLL_SECONDS = 0.2


def measure(
    url: str,
    clients: int,
    asked: Callable[[int], Iterator[Request]],
    length: Length,
    *,
    poll_seconds: float = POLL_SECONDS,
) -> Measurement:
    """Load a server with ``clients`` clients, each of which sends its next request as soon as one is answered.

    ``asked`` gives the requests of a client by its number from 0. The window opens when every client has had its first
    answer, and what is in flight when it closes is aborted. Every ``poll_seconds`` of it the server is asked what it
    counts itself.

    Raises LoadError if the server leaves one request unanswered.
    """
    return asyncio.run(_measure(url, clients, asked, length, poll_seconds))


async def _measure(
    url: str, clients: int, asked: Callable[[int], Iterator[Request]], length: Length, poll_seconds: float
) -> Measurement:
    records: list[Record] = []
    had = Counter(dict.fromkeys(range(clients), 0))
    all_answered, all_done, over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def answered(record: Record) -> None:
        records.append(record)
        had[record.client] += 1
        # The fewest that a client has had change only with the one that has had the fewest.
        if had[record.client] == 1 and min(had.values()) == 1:
            all_answered.set()
        if had[record.client] == 1 + length.answers and min(had.values()) == 1 + length.answers:
            all_done.set()

    async with connected(url) as server, tasks_together() as group:
        tasks = [
            group.create_task(send(server, client, asked(client), answered, lambda: not over.is_set()))
            for client in range(clients)
        ]
        await all_answered.wait()
        begin = server.clock.now()
        polls = await _polls(server, length.seconds, poll_seconds, all_done)
        window = (begin, server.clock.now())
        over.set()
        await end(server, tasks)
    return Measurement(window, polls, records, server.clock.origin)


async def _polls(server: Server, seconds: float, every: float, done: asyncio.Event) -> list[Poll]:
    until = server.clock.now() + seconds
    polls = []
    while (left := until - server.clock.now()) > 0 or not done.is_set():
        polls.append(await server.poll())
        if left > 0:
            await asyncio.sleep(min(every, left))
        else:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), every)
    return polls
