"""Keeps a number of clients busy at a server, and notes what they were answered while all of them were."""

import asyncio
from collections.abc import Callable, Iterator

from .client import Server, connected, end, send
from .records import Measurement, Poll, Record
from .workload import Request

POLL_SECONDS = 0.2


def measure(
    url: str,
    clients: int,
    asked: Callable[[int], Iterator[Request]],
    *,
    seconds: float,
    poll_seconds: float = POLL_SECONDS,
) -> Measurement:
    """Load a server with ``clients`` clients, each of which sends its next request as soon as one is answered.

    ``asked`` gives the requests of a client by its number from 0. The window of ``seconds`` opens when every client
    has had its first answer; when it closes, what is in flight is aborted. Every ``poll_seconds`` of it the server is
    asked what it counts itself.

    Raises LoadError if the server leaves one request unanswered.
    """
    return asyncio.run(_measure(url, clients, asked, seconds, poll_seconds))


async def _measure(
    url: str, clients: int, asked: Callable[[int], Iterator[Request]], seconds: float, poll_seconds: float
) -> Measurement:
    records: list[Record] = []
    unanswered = set(range(clients))
    all_answered, over = asyncio.Event(), asyncio.Event()

    def answered(record: Record) -> None:
        records.append(record)
        unanswered.discard(record.client)
        if not unanswered:
            all_answered.set()

    async with connected(url) as server:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(send(server, client, asked(client), answered, lambda: not over.is_set()))
                    for client in range(clients)
                ]
                await all_answered.wait()
                begin = server.clock.now()
                polls = await _polls(server, seconds, poll_seconds)
                window = (begin, server.clock.now())
                over.set()
                await end(server, tasks)
        except ExceptionGroup as failed:
            # One failure cancels the rest: the first is the cause.
            raise failed.exceptions[0] from failed
    return Measurement(window, polls, records)


async def _polls(server: Server, seconds: float, every: float) -> list[Poll]:
    until = server.clock.now() + seconds
    polls = []
    while (left := until - server.clock.now()) > 0:
        polls.append(await server.poll())
        await asyncio.sleep(min(every, left))
    return polls
