"""A real server on a free port of this machine, for the length of a ``with`` block, and questions to it."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

READY = "The server is fired up and ready to roll!"
START_SECONDS = 300
ANSWER_SECONDS = 120
LOG_LINES = 5000

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",
    "SGLANG_USE_CPU_ENGINE": "1",
    "HF_HUB_OFFLINE": "1",
}


class RefusedError(AssertionError):
    """An answer whose status is not 200."""

    def __init__(self, path: str, status: int, content: str):
        super().__init__(f"{path}: {status} {content}")
        self.status, self.content = status, content


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One server process; ready when it is entered, gone when it is left.

    ``out`` holds ``models/target``; ``probe`` is a directory whose ``sitecustomize.py`` every process of it runs.
    """

    def __init__(self, out: Path, *options: str, probe: Path, **environment: str):
        self.port = free_port()
        self.command = [
            *(sys.executable, "-m", "sglang.launch_server", "--host=127.0.0.1", f"--port={self.port}"),
            *(f"--model-path={out}/models/target", "--served-model-name=counting", "--device=cpu", "--dtype=bfloat16"),
            *("--context-length=4096", "--max-total-tokens=8192", "--max-running-requests=8", "--page-size=1"),
            # Left out, it is guessed from the memory of one NUMA node and is negative on a small one.
            "--mem-fraction-static=0.3",
            *("--attention-backend=torch_native", "--sampling-backend=pytorch", "--grammar-backend=xgrammar"),
            *("--disable-cuda-graph", "--sleep-on-idle", "--random-seed=1", *options),
        ]
        path = os.pathsep.join([str(probe), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": path, **environment}
        self.log: list[str] = []
        self.told = threading.Event()

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        threading.Thread(target=self.read_log, daemon=True).start()
        self.told.wait(START_SECONDS)
        if not any(READY in line for line in self.log):
            self.__exit__()
            raise AssertionError(f"the server did not become ready:\n{''.join(self.log[-60:])}")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def read_log(self):
        for line in self.process.stdout:
            self.log.append(line[:2000])
            del self.log[:-LOG_LINES]
            if READY in line:
                self.told.set()
        self.told.set()

    def ask(self, path: str, body: object = None) -> str:
        """The answer's content; raise RefusedError if its status is not 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise RefusedError(path, answer.status, content)
        return content
