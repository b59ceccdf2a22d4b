"""The readiness check: ready is healthy and generating; everything else has a sentence."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from blackwell import paths

GENERATED = {"text": " n8", "meta_info": {"completion_tokens": 1}}


class Server(ThreadingHTTPServer):
    """Answers like SGLang: a status for /health, a status and a body for /generate, a status for /freeze_gc."""

    def __init__(self, health, generate, body, freeze=404):
        self.posted = posted = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(health(), {})

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                posted.append(self.path)
                self.answer(freeze if self.path == "/freeze_gc" else generate, body)

            def answer(self, status, content):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, *arguments):
                pass

        super().__init__(("127.0.0.1", 0), Handler)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *arguments):
        self.shutdown()
        super().__exit__(*arguments)


def check(server, record, *arguments, pid=None, timeout="1.5"):
    words = {
        "url": f"http://127.0.0.1:{server.server_address[1]}",
        "pid": str(pid or os.getpid()),
        "timeout": timeout,
        "prompt": "n5",
        "record": str(record),
    }
    program = paths.ROOT / "templates" / "sglang-ready.py"
    return subprocess.run(
        [sys.executable, program, *(f"--{name}={value}" for name, value in words.items()), *arguments],
        env={"BLACKWELL_DEPLOYMENT": "d1", "BLACKWELL_RELEASE": "r1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def record(tmp_path):
    return tmp_path / "ready.json"


def test_ready_is_written_down(record):
    statuses = iter([503, 503, 200])
    with Server(lambda: next(statuses), 200, GENERATED) as server:
        run = check(server, record, timeout="20")
    assert run.returncode == 0, run.stderr
    written = json.loads(record.read_text())
    assert (written["deployment"], written["release"], written["pid"]) == ("d1", "r1", os.getpid())
    assert written["seconds"] >= 1
    assert oct(record.stat().st_mode)[-3:] == "644"


@pytest.mark.parametrize(
    ("health", "generate", "body", "reason"),
    [
        (503, 200, GENERATED, "is not healthy after 1.5 s"),
        (200, 500, {}, "is healthy but did not generate after 1.5 s"),
        (200, 200, {"text": "", "meta_info": {"completion_tokens": 0}}, "did not generate"),
        (200, 200, {"error": "no"}, "did not generate"),
        (200, 200, [], "did not generate"),
    ],
)
def test_not_ready_has_a_sentence_and_no_record(record, health, generate, body, reason):
    with Server(lambda: health, generate, body) as server:
        run = check(server, record)
    assert run.returncode == 1
    assert reason in run.stderr
    assert run.stderr.count("\n") == 1
    assert not record.exists()


def test_the_wait_ends_with_the_server(record):
    ended = subprocess.Popen(["true"])
    ended.wait()
    with Server(lambda: 503, 200, GENERATED) as server:
        run = check(server, record, pid=ended.pid, timeout="600")
    assert run.returncode == 1
    assert f"the server (pid {ended.pid}) ended before it was ready" in run.stderr


def test_garbage_collection_is_frozen_once_it_has_generated(record):
    with Server(lambda: 200, 200, GENERATED, freeze=200) as server:
        run = check(server, record, "--freeze-gc")
    assert (run.returncode, run.stderr) == (0, "")
    assert server.posted == ["/generate", "/freeze_gc"]
    assert json.loads(record.read_text())["gc_frozen"] is True


def test_a_server_that_does_not_freeze_is_ready_and_says_so(record):
    with Server(lambda: 200, 200, GENERATED, freeze=404) as server:
        run = check(server, record, "--freeze-gc")
    assert run.returncode == 0
    assert run.stderr.count("\n") == 1
    assert "/freeze_gc was refused" in run.stderr
    assert json.loads(record.read_text())["gc_frozen"] is False


@pytest.mark.parametrize("arguments", [(), ("--no-freeze-gc",)])
def test_it_is_left_as_it_is_without_being_asked(record, arguments):
    with Server(lambda: 200, 200, GENERATED, freeze=200) as server:
        run = check(server, record, *arguments)
    assert (run.returncode, run.stderr) == (0, "")
    assert server.posted == ["/generate"]
    assert json.loads(record.read_text())["gc_frozen"] is False
