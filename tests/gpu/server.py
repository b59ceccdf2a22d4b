"""One SGLang server for the length of a ``with`` block, in a process group of its own, with its log in a file."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

READY = "The server is fired up and ready to roll!"
START_SECONDS = 500
STEPS = 3

PAUSE_SECONDS = 0.02
"""From where on a garbage collection of the tokenizer manager is one that a client sees: a decode round or more."""

RANDOM_WEIGHTS = ("--load-format", "dummy")
MOST_REQUESTS = 64

SEVERAL_CARDS: Mapping[str, str] = {
    "NCCL_NVLS_ENABLE": "0",
    "NVSHMEM_DISABLE_NVLS": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK": "false",
}
"""What servers on several cards have in their environment.

NVLink multicast is off: a program that fails with it can put the cards out of service for others. Another server that
starts on the same cards may have filled one before the other, which would be taken for a fault.
"""


def common(most_requests: int) -> tuple[str, ...]:
    """Options of every server; it decodes up to ``most_requests`` requests at once, all of them with CUDA graphs."""
    return (
        *("--skip-tokenizer-init", "--sampling-backend", "pytorch", "--grammar-backend", "none"),
        *("--host", "127.0.0.1", "--cuda-graph-max-bs", str(most_requests)),
        *("--max-running-requests", str(most_requests), "--random-seed", "7"),
        *("--enable-metrics", "--disable-radix-cache", "--gc-warning-threshold-secs", str(PAUSE_SECONDS)),
    )


def speculation(draft: Path) -> tuple[str, ...]:
    """Options of EAGLE-3 with ``STEPS`` steps and the head in ``draft``."""
    return (
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(draft)),
        *("--speculative-num-steps", str(STEPS), "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", str(STEPS + 1)),
    )


class ServerError(Exception):
    """The server did not start, or gave another answer than the one that was expected."""


class Server:
    """A server that serves when the block begins and is gone, with all of its processes, when it ends."""

    def __init__(
        self,
        log: Path,
        port: int,
        options: Sequence[str],
        environment: Mapping[str, str],
        *,
        most_requests: int = MOST_REQUESTS,
        tp: int = 1,
        freeze_gc: bool = True,
    ) -> None:
        """A server on ``tp`` cards; ``environment`` is added to this process's own, whose ``PYTHONPATH`` has SGLang.

        ``freeze_gc``: as the deployed service does, so that no garbage collection goes through what was there at the
        start.
        """
        self.log, self.port, self.freeze_gc = log, port, freeze_gc
        launch = [sys.executable, "-m", "sglang.launch_server", "--port", str(port), "--tp-size", str(tp)]
        self.command = [*launch, *common(most_requests), *options]
        several = {} if tp == 1 else SEVERAL_CARDS
        self.environment = {**os.environ, "SGLANG_ENABLE_SPEC_V2": "1", **several, **environment}
        self.process: subprocess.Popen | None = None
        self.start_seconds = 0.0

    def __enter__(self) -> Self:
        """Start it and wait until it serves; raise ServerError with the end of its log if it does not."""
        begun = time.monotonic()
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                self.command, stdout=log, stderr=subprocess.STDOUT, env=self.environment, start_new_session=True
            )
        while READY not in self.log.read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() - begun > START_SECONDS:
                self.stop()
                raise ServerError(f"{self.log.name}: not ready\n{self.log.read_text(errors='replace')[-3500:]}")
            time.sleep(0.5)
        self.start_seconds = time.monotonic() - begun
        if self.freeze_gc:
            self._freeze_gc()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        """End the server."""
        self.stop()

    def stop(self) -> None:
        """Kill all of its processes; nothing if it was never started."""
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: object = None) -> tuple[int, object]:
        """Status and answer of one request: decoded if it is JSON, text otherwise."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, decoded(answer)
        except urllib.error.HTTPError as error:
            return error.code, decoded(error)

    def state(self) -> dict:
        """The scheduler's state, as ``/server_info`` gives it."""
        return self.ask("/server_info")[1]["internal_states"][0]

    def change(self, **values: object) -> None:
        """Change the live state; raise ServerError if it is refused."""
        status, answer = self.ask("/set_internal_state", {"server_args": values})
        if status != 200:
            raise ServerError(f"{values} refused: {answer}")

    def abort_all(self) -> None:
        """End every request that it has; raise ServerError if it refuses."""
        status, answer = self.ask("/abort_request", {"rid": "", "abort_all": True})
        if status != 200:
            raise ServerError(f"no abort: {answer}")

    def _freeze_gc(self) -> None:
        status, answer = self.ask("/freeze_gc", {})
        if status != 200:
            self.stop()
            raise ServerError(f"garbage collection not frozen: {answer}")

    def pauses(self) -> list[float]:
        """Seconds of each garbage collection of the tokenizer manager that took longer than ``PAUSE_SECONDS``."""
        found = re.findall(r"LONG GARBAGE COLLECTION DETECTED .*?Duration: ([\d.]+)s", self.log.read_text())
        return [float(seconds) for seconds in found]

    def running(self) -> int:
        """Requests that are being decoded."""
        (load,) = self.ask("/v1/loads")[1]["loads"]
        return load["num_running_reqs"]

    def profile(self, out: Path, rounds: int) -> None:
        """Have it write a trace of what the GPU does in the next rounds; raise ServerError if it refuses."""
        status, answer = self.ask(
            "/start_profile", {"output_dir": str(out), "num_steps": rounds, "activities": ["GPU"]}
        )
        if status != 200:
            raise ServerError(f"no profile: {answer}")

    def tiers(self) -> list[dict]:
        """Steps, seconds and GiB that each tier took to build, from the log."""
        # Every rank says so; the first one speaks for all.
        found = re.findall(
            r"\[[-\d :]+(?: TP0)?\] Speculation tier of (\d+) steps is ready. "
            r"Time elapsed: ([\d.]+) s. mem usage=([-\d.]+) GB",
            self.log.read_text(),
        )
        return [{"steps": int(steps), "seconds": float(s), "gib": float(gib)} for steps, s, gib in found]


@contextmanager
def side_by_side(*servers: Server) -> Iterator[None]:
    """Servers that serve for the length of a block, started all at once; raises ServerError if one does not."""
    with ThreadPoolExecutor(len(servers)) as pool:
        try:
            for start in as_completed([pool.submit(server.__enter__) for server in servers]):
                start.result()
            yield
        finally:
            # Before the pool waits: one that is still starting ends with its process.
            for server in servers:
                server.stop()


def decoded(answer: http.client.HTTPResponse | urllib.error.HTTPError) -> object:
    """Body of an answer."""
    body = answer.read()
    return json.loads(body) if answer.headers.get_content_type() == "application/json" else body.decode()
