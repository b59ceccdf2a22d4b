"""A server that answers as SGLang does, a token at a time at a known pace, without a model."""

import asyncio
import threading
import time
from contextlib import contextmanager

from aiohttp import web

HOLD_SECONDS = 20


class Fake:
    """``pace``: tokens per second of each request. ``together``: requests in flight before one is answered.

    ``fail_from``: number of the request, from 1, from which all are answered 500; ``lose_from``: likewise, but their
    connections are closed. ``deaf``: aborts, the first ones, that find no request. ``loads``: whether
    /v1/loads answers. ``steps``: draft steps, if it speculates by its load. ``paces``: tokens per second of a request
    by the draft steps and the requests that run, in place of ``pace``. ``most``: requests that it decodes at once.
    """

    def __init__(
        self,
        *,
        pace=100.0,
        together=0,
        fail_from=0,
        lose_from=0,
        deaf=0,
        loads=True,
        steps=0,
        paces=None,
        most=1000,
    ):
        self.pace, self.together = pace, together
        self.steps, self.paces, self.at_once = steps, paces, most
        self.forced, self.policy, self.flushed = None, None, 0
        self.fail_from, self.lose_from = fail_from, lose_from
        self.requests, self.running, self.most, self.aborts = 0, 0, 0, 0
        self.deaf, self.has_loads = deaf, loads
        self.bodies = []
        self.given = 0

    async def generate(self, request):
        body = await request.json()
        self.bodies.append(body)
        self.requests += 1
        if self.fail_from and self.requests >= self.fail_from:
            return web.Response(status=500, text="out of memory")
        if self.lose_from and self.requests >= self.lose_from:
            request.transport.abort()
            return web.Response()
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self.answer(body)
        finally:
            self.running -= 1

    async def answer(self, body):
        new = body["sampling_params"]["max_new_tokens"]
        if self.most >= self.together:
            self.enough.set()
        try:
            await asyncio.wait_for(self.enough.wait(), HOLD_SECONDS)
        except TimeoutError:
            return web.Response(status=503, text=f"never more than {self.most} requests in flight")
        begun, aborted = time.monotonic(), self.abort
        pace = self.paces(self.now_steps, self.most_now) if self.paces else self.pace
        try:
            await asyncio.wait_for(aborted.wait(), new / pace)
        except TimeoutError:
            tokens, reason = new, {"type": "length", "length": new}
        else:
            tokens, reason = min(new, int((time.monotonic() - begun) * pace)), {"type": "abort"}
        self.given += tokens
        told = {"finish_reason": reason, "completion_tokens": tokens, "total_retractions": 0}
        verified = tokens // 2 if self.now_steps or not self.steps else 0
        return web.json_response({"output_ids": [7] * tokens, "meta_info": told | {"spec_verify_ct": verified}})

    @property
    def most_now(self):
        """Requests that run; a client between two of its requests is only on its way."""
        return max(1, self.running)

    @property
    def now_steps(self):
        """Draft steps at this load."""
        if self.forced is not None or not self.policy:
            return self.forced if self.forced is not None else self.steps
        tiers = self.policy["tiers"]
        held = next(tier for tier in tiers if self.most_now <= tier.get("max_batch", self.most_now))["steps"]
        return self.steps if held == "full" else held

    async def server_info(self, _):
        state = {"forced_steps": self.forced, "steps": self.now_steps}
        told = {"max_total_num_tokens": 4096, "internal_states": [{"speculative_load_state": state}]}
        return web.json_response(told if self.steps else {"max_total_num_tokens": 5000, "internal_states": [{}]})

    async def set_internal_state(self, request):
        values = (await request.json())["server_args"]
        held = values.get("speculative_force_steps")
        self.forced = self.steps if held == "full" else held
        self.policy = values.get("speculative_load_policy", self.policy)
        return web.json_response({"updated": True})

    async def flush_cache(self, _):
        self.flushed += not self.running
        return web.Response(status=400 if self.running else 200, text="busy" if self.running else "flushed")

    async def loads(self, _):
        if not self.has_loads:
            return web.Response(status=500, text="Internal Server Error")
        running = min(self.running, self.at_once)
        total = {"total_running_reqs": running, "total_waiting_reqs": self.running - running}
        return web.json_response({"aggregate": total})

    async def get_load(self, _):
        return web.json_response([{"num_reqs": self.running + 3, "num_waiting_reqs": 3}])

    async def abort_request(self, request):
        assert await request.json() == {"rid": "", "abort_all": True}
        self.aborts += 1
        if self.aborts > self.deaf:
            self.abort.set()
            self.abort = asyncio.Event()
        return web.Response()

    async def serve(self, ready, done):
        self.abort, self.enough = asyncio.Event(), asyncio.Event()
        app = web.Application()
        app.router.add_post("/generate", self.generate)
        app.router.add_get("/v1/loads", self.loads)
        app.router.add_get("/get_load", self.get_load)
        app.router.add_post("/abort_request", self.abort_request)
        app.router.add_get("/server_info", self.server_info)
        app.router.add_post("/set_internal_state", self.set_internal_state)
        app.router.add_post("/flush_cache", self.flush_cache)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = "http://{}:{}".format(*runner.addresses[0])
        self.loop = asyncio.get_running_loop()
        self.done = done
        ready.set()
        await done.wait()
        await runner.cleanup()


@contextmanager
def serving(**settings):
    """A fake server for the length of a block, in a thread of its own."""
    fake, ready, done = Fake(**settings), threading.Event(), asyncio.Event()
    thread = threading.Thread(target=lambda: asyncio.run(fake.serve(ready, done)))
    thread.start()
    assert ready.wait(10)
    try:
        yield fake
    finally:
        fake.loop.call_soon_threadsafe(done.set)
        thread.join()
