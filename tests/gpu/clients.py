"""Clients that send requests to a server at once, and what each request got."""

import asyncio
import random
import time
from collections.abc import Sequence

import aiohttp

PROMPT_TOKENS = 64
FIRST_TOKEN, LAST_TOKEN = 10, 31000


def prompts(total: int, seed: int, *, tokens: int = PROMPT_TOKENS) -> list[list[int]]:
    """Random prompts of ``tokens`` tokens each."""
    rng = random.Random(seed)
    return [[rng.randint(FIRST_TOKEN, LAST_TOKEN) for _ in range(tokens)] for _ in range(total)]


def together(port: int, clients: int, asked: Sequence[tuple[list[int], int]]) -> list[dict]:
    """Have ``clients`` clients send all requests, each a prompt and the number of tokens to generate.

    Returns a record for each, in order: ``wanted``, ``tokens`` (output ids), ``verified`` (speculative rounds that the
    request took part in), ``began`` and ``ended`` (seconds of the monotonic clock) or ``error``.
    """
    return asyncio.run(_together(port, clients, asked))


async def _together(port: int, clients: int, asked: Sequence[tuple[list[int], int]]) -> list[dict]:
    records: list[dict] = [{} for _ in asked]
    left = iter(range(len(asked)))
    timeout = aiohttp.ClientTimeout(total=300)
    # The default of 100 connections would cap the load.
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def client() -> None:
            for number in left:
                prompt, new = asked[number]
                records[number] = await _request(session, port, prompt, new)

        await asyncio.gather(*(client() for _ in range(clients)))
    return records


async def _request(session: aiohttp.ClientSession, port: int, prompt: list[int], new: int) -> dict:
    body = {
        "input_ids": prompt,
        "sampling_params": {"max_new_tokens": new, "temperature": 0, "ignore_eos": True},
    }
    began = time.monotonic()
    async with session.post(f"http://127.0.0.1:{port}/generate", json=body) as reply:
        answer = await reply.json()
        if reply.status != 200:
            return {"wanted": new, "error": str(answer)}
    return {
        "wanted": new,
        "tokens": answer["output_ids"],
        "verified": answer["meta_info"].get("spec_verify_ct", 0),
        "began": began,
        "ended": time.monotonic(),
    }
