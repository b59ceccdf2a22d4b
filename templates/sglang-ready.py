#!/usr/bin/python3
"""Waits until an SGLang server is ready, which is: its health check answers 200 and one generation came back.

systemd runs this as ExecStartPost of sglang.service, so that "active" means ready. What was found is written to a
record in the runtime directory, which systemd removes when the service stops. Exits 1 with one sentence if the server
ends or time runs out. With --freeze-gc, the garbage collection of its processes is told to leave alone what is there
once it has generated; a server that refuses that is ready all the same, and the record says so.
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

POLL_SECONDS = 0.5
REQUEST_SECONDS = 60


def alive(pid: int) -> bool:
    """Whether a process exists."""
    return Path(f"/proc/{pid}").exists()


def request(url: str, body: dict | None = None) -> bytes | None:
    """Answer to a request, or None if there was none, or not with status 200."""
    data = None if body is None else json.dumps(body).encode()
    message = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(message, timeout=REQUEST_SECONDS) as answer:
            return answer.read() if answer.status == 200 else None
    except (OSError, urllib.error.URLError, ValueError):
        return None


def generated_tokens(answer: bytes | None) -> int:
    """Number of tokens in an answer of /generate; 0 if it is not one."""
    try:
        return int(json.loads(answer or b"{}")["meta_info"]["completion_tokens"])
    except (KeyError, TypeError, ValueError):
        return 0


def write_record(path: Path, record: dict) -> None:
    """Writes a JSON file whole or not at all, readable by everyone."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(record) + "\n", encoding="utf-8")
    draft.chmod(0o644)
    draft.rename(path)


def wait(url: str, pid: int, prompt: str, timeout: float) -> str:
    """Waits for readiness; returns an empty string, or what is wrong.

    ``timeout`` is in seconds; ``pid`` is the server's main process.
    """
    deadline = time.monotonic() + timeout
    wanted = {"text": prompt, "sampling_params": {"temperature": 0, "max_new_tokens": 4}}
    healthy = False
    while time.monotonic() < deadline:
        if not alive(pid):
            return f"the server (pid {pid}) ended before it was ready"
        healthy = request(f"{url}/health") is not None
        if healthy and generated_tokens(request(f"{url}/generate", wanted)) > 0:
            return ""
        time.sleep(POLL_SECONDS)
    state = "is healthy but did not generate" if healthy else "is not healthy"
    return f"the server at {url} {state} after {timeout:g} s"


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--url", required=True, help="address of the server, such as http://127.0.0.1:30000")
    parser.add_argument("--pid", type=int, required=True, help="main process of the server; the wait ends when it does")
    parser.add_argument("--timeout", type=float, required=True, help="seconds to wait at most")
    parser.add_argument("--prompt", required=True, help="text to continue")
    parser.add_argument(
        "--freeze-gc",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="keep later garbage collections from going through everything that the server holds from its start",
    )
    parser.add_argument("--record", type=Path, required=True, help="file to write when the server is ready")
    options = parser.parse_args()
    started = time.monotonic()
    problem = wait(options.url, options.pid, options.prompt, options.timeout)
    if problem:
        print(f"sglang-ready: {problem}", file=sys.stderr)
        return 1
    seconds = round(time.monotonic() - started, 1)
    frozen = options.freeze_gc and request(f"{options.url}/freeze_gc", {}) is not None
    if options.freeze_gc and not frozen:
        print("sglang-ready: /freeze_gc was refused: requests may wait for garbage collections", file=sys.stderr)
    write_record(
        options.record,
        {
            "deployment": os.environ.get("BLACKWELL_DEPLOYMENT", ""),
            "release": os.environ.get("BLACKWELL_RELEASE", ""),
            "pid": options.pid,
            "seconds": seconds,
            "gc_frozen": frozen,
        },
    )
    print(f"sglang-ready: healthy and generating after {seconds:g} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
