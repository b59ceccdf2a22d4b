"""One request after the other, as a client of SGLang's native API sends them."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

import aiohttp

from .errors import LoadError
from .records import DIGITS, Poll, Record
from .workload import Request

ANSWER_SECONDS = 600
KEPT_SECONDS = 2
"""A connection that was idle for longer is not used again: SGLang closes one after 5 s, just as it may be used."""


LOADS, GET_LOAD = "/v1/loads?include=core", "/get_load"


class StatusError(LoadError):
    """An answer whose status is not 200."""


@dataclass
class Clock:
    """Seconds since it was made, as they are noted."""

    origin: float = field(default_factory=time.monotonic)

    def now(self) -> float:
        """The time, rounded to what is kept of it."""
        return round(time.monotonic() - self.origin, DIGITS)


class Server:
    """A server under load; every answer that is not one raises LoadError, which names the server."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        """``url``: scheme, host and port."""
        self.url = url.rstrip("/")
        self.session = session
        self.clock = Clock()
        self.has_loads = True

    async def generate(self, client: int, request: Request) -> Record:
        """Have an answer generated, to its full length or until it is aborted."""
        prompt, new = request
        body = {
            "input_ids": prompt,
            "sampling_params": {"max_new_tokens": new, "temperature": 0, "ignore_eos": True},
        }
        began = self.clock.now()
        answer = await self._ask("POST", "/generate", body)
        ended = self.clock.now()
        try:
            told = answer["meta_info"]
            aborted = (told["finish_reason"] or {}).get("type") == "abort"
            tokens = int(told["completion_tokens"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise LoadError(f"{self.url}: /generate answered without meta_info as SGLang gives it") from error
        if tokens != new and not aborted:
            raise LoadError(f"{self.url}: /generate gave {tokens} tokens of the {new} that were asked for")
        verified, retracted = told.get("spec_verify_ct", 0), told.get("total_retractions", 0)
        return Record(client, began, ended, tokens, verified, aborted, retracted)

    async def poll(self) -> Poll:
        """How many requests it counts now."""
        # A server with metrics answers its own /v1/loads with 500 under some releases of FastAPI; /get_load counts the
        # same, and logs a warning each time.
        if self.has_loads:
            try:
                answer = await self._ask("GET", LOADS)
            except StatusError:
                self.has_loads = False
        if not self.has_loads:
            answer = await self._ask("GET", GET_LOAD)
        try:
            running, queued = _counted(answer) if self.has_loads else _counted_before(answer)
        except (KeyError, TypeError) as error:
            path = LOADS if self.has_loads else GET_LOAD
            raise LoadError(f"{self.url}: {path} answered without the requests that run and wait") from error
        return Poll(self.clock.now(), running, queued)

    async def abort(self) -> None:
        """End every request that it has."""
        await self._ask("POST", "/abort_request", {"rid": "", "abort_all": True})

    async def _ask(self, method: str, path: str, body: object = None) -> dict | list:
        try:
            async with self.session.request(method, self.url + path, json=body) as reply:
                if reply.status != 200:
                    said = (await reply.text())[:300].strip()
                    raise StatusError(f"{self.url}: {path} answered {reply.status}: {said or 'without a word'}")
                return await reply.json() if reply.content_type == "application/json" else {}
        except TimeoutError as error:
            raise LoadError(f"{self.url}: {path} was not answered within {ANSWER_SECONDS} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise LoadError(f"{self.url}: {path} was not answered: {error or type(error).__name__}") from error


def _counted(answer: Mapping) -> tuple[int, int]:
    total = answer["aggregate"]
    return total["total_running_reqs"], total["total_waiting_reqs"]


def _counted_before(answer: Sequence[Mapping]) -> tuple[int, int]:
    queued = sum(rank["num_waiting_reqs"] for rank in answer)
    return sum(rank["num_reqs"] for rank in answer) - queued, queued


@contextmanager
def collector_off() -> Iterator[None]:
    """No garbage collection for the length of a block: all clients are one thread, which it would hold up together."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Server]:
    """A server for the length of a block, with as many connections as there are requests."""
    # aiohttp's own limit is 100 connections: beyond them it would hold requests back, unseen.
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_SECONDS)
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    with collector_off():
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            yield Server(url, session)


@asynccontextmanager
async def tasks_together() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks for the length of a block; what makes one fail is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as failed:
        # One failure cancels the rest: the first is the cause.
        raise failed.exceptions[0] from failed


async def send(
    server: Server, client: int, asked: Iterator[Request], answered: Callable[[Record], None], more: Callable[[], bool]
) -> None:
    """Send the next request as soon as the one before is answered, for as long as there is to be more."""
    while more():
        answered(await server.generate(client, next(asked)))


async def end(server: Server, clients: list[asyncio.Task]) -> None:
    """Abort what is in flight until every client, told to stop before, has its last answer."""
    waiting = set(clients)
    while waiting:
        # Again and again: a request may still have been on its way when the others were aborted.
        await server.abort()
        _, waiting = await asyncio.wait(waiting, timeout=0.1)
