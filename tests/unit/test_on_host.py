import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from blackwell import gpus, on_host


@contextmanager
def answering(status, body):
    """A server on loopback that gives one answer, and what it was asked."""
    asked = []

    def once(handler):
        length = int(handler.headers.get("Content-Length", 0))
        asked.append((handler.command, handler.path, handler.headers.get("Content-Type"), handler.rfile.read(length)))
        handler.send_response(status)
        handler.end_headers()
        handler.wfile.write(body)

    methods = {"do_GET": once, "do_POST": once, "log_message": lambda *_: None}
    with HTTPServer(("127.0.0.1", 0), type("Handler", (BaseHTTPRequestHandler,), methods)) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        yield {"host": "127.0.0.1", "port": server.server_port}, asked
        thread.join()


@pytest.mark.parametrize(
    ("words", "bound"),
    [
        (["--host", "127.0.0.1", "--port", "30000"], {"host": "127.0.0.1", "port": 30000}),
        (["--host", "0.0.0.0", "--port", "1"], {"host": "127.0.0.1", "port": 1}),
        (["--host", "::", "--port", "1"], {"host": "::1", "port": 1}),
        (["--host", "::1", "--port", "1"], {"host": "::1", "port": 1}),
        (["--host", "box.example.com", "--port", "none"], {"host": "box.example.com", "port": None}),
        ([], {"host": None, "port": None}),
    ],
)
def test_where_the_server_is_asked(words, bound):
    assert on_host.bound(["python", "-m", "sglang.launch_server", *words]) == bound


def test_a_json_answer():
    with answering(200, b'{"text": "n8"}') as (address, asked):
        answer = on_host.request(address, "/generate", 5, {"text": "n7"})
    assert (answer["status"], answer["body"]) == (200, {"text": "n8"})
    assert asked == [("POST", "/generate", "application/json", b'{"text": "n7"}')]


def test_an_answer_that_is_no_json():
    with answering(503, b"busy") as (address, asked):
        answer = on_host.request(address, "/health", 5)
    assert (answer["status"], answer["body"]) == (503, "busy")
    assert asked[0][0] == "GET"


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(200, b"") as (address, _):
        assert on_host.request(address, "/health", 5)["status"] == 200


def test_no_answer_is_status_0_with_a_reason():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = {"host": "127.0.0.1", "port": listening.getsockname()[1]}
        assert on_host.request(address, "/health", 0.1) | {"seconds": 0} == {
            "status": 0,
            "seconds": 0,
            "body": "timed out",
        }
    assert "Connection refused" in on_host.request(address, "/health", 5)["body"]


@pytest.fixture
def asked(monkeypatch):
    """What an active service is asked, in its order; each answer is the number of the question."""
    questions = []

    def request(address, path, seconds, body=None):
        del seconds
        questions.append((address["port"], path, body))
        return len(questions)

    active = {"ActiveState": "active", "ExecStart": "python --host 127.0.0.1 --port 30000"}
    monkeypatch.setattr(on_host, "unit", lambda: active)
    monkeypatch.setattr(on_host, "request", request)
    return questions


def test_a_look_at_speculation_changes_nothing(asked):
    assert on_host.speculation({})["before"] == 1
    assert asked == [(30000, "/server_info", None)]


def test_a_change_of_speculation_is_between_two_looks(asked):
    change = {"speculative_force_steps": None}
    found = on_host.speculation(change)
    assert (found["before"], found["answer"], found["after"]) == (1, 2, 3)
    assert asked[1:] == [(30000, "/set_internal_state", {"server_args": change}), (30000, "/server_info", None)]


def test_a_service_that_does_not_run_is_not_asked(asked, monkeypatch):
    monkeypatch.setattr(on_host, "unit", lambda: {"ActiveState": "failed", "ExecStart": "--host 127.0.0.1 --port 1"})
    assert set(on_host.speculation({"speculative_force_steps": 0})) == {"unit", "address"}
    assert asked == []


def entry(number, text, priority="6"):
    return {"__CURSOR": f"c{number}", "__REALTIME_TIMESTAMP": f"{number}000000", "PRIORITY": priority, "MESSAGE": text}


@pytest.mark.parametrize(
    ("text", "priority", "chosen"),
    [
        ("sglang.service: Failed with result 'exit-code'.", "4", True),
        ("[2026-11-29 13:50:15] ERROR:    Exception in ASGI application", "6", True),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory.", "6", True),
        ("[2026-11-29 13:50:15 TP0] Scheduler hit an exception: Traceback (most recent call last):", "6", True),
        ('[2026-11-29 13:48:52] INFO:     127.0.0.1:51020 - "POST /generate HTTP/1.1" 200 OK', "6", False),
        ("[2026-11-29 13:48:52] Decode batch, #running-req: 1, accept len: 2.27, accept rate: 0.57", "6", False),
        ("[2026-11-29 13:48:52] server_args=ServerArgs(log_level='error', log_level_http=None)", "6", False),
        ("", None, False),
    ],
)
def test_what_counts_as_a_warning(text, priority, chosen):
    assert bool(on_host.trouble([entry(1, text, priority)], 5)) is chosen


def test_the_last_warnings_each_once_in_their_order():
    entries = [entry(number, "late", "3") for number in (9, 3, 5, 9, 7)]
    assert [found["time"] for found in on_host.trouble(entries, 3)] == [5, 7, 9]


def test_a_message_that_is_not_text():
    assert on_host.message({"MESSAGE": [240, 159, 166, 153, 27]}) == "🦙\x1b"
    assert on_host.message({"MESSAGE": None}) == ""


def test_what_it_returns_is_json():
    with answering(200, b'{"text": "\\ud83e"}') as (address, _):
        assert json.loads(json.dumps(on_host.request(address, "/generate", 5)))["body"] == {"text": "\ud83e"}


SYSTEMCTL = """\
#!/bin/sh
for unit; do :; done
case $unit in
  blackwell-bench.service)
    echo 'ActiveState=active'
    echo 'ExecStart={ path=/opt/python ; argv[]=/opt/python -m sweep /var/lib/sglang/bench/20261130-061500/plan }'
    ;;
  *) echo 'ActiveState=inactive' ;;
esac
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Puts programs on PATH in place of the host's, all that is there but the shell's own."""

    def put(**texts):
        for name, text in {"systemctl": SYSTEMCTL, "journalctl": "#!/bin/sh\n", **texts}.items():
            (tmp_path / name.replace("_", "-")).write_text(text)
            (tmp_path / name.replace("_", "-")).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return put


def test_what_a_doctor_looks_at(programs):
    programs()
    sent = {
        "program": "import json, sys; print(json.dumps(sys.argv[1:]).join('{}')); sys.exit(1)",
        "arguments": ["--x", "1"],
    }
    found = json.loads(json.dumps(on_host.doctor(5, sent)))
    assert found["bench"] == {"sweep": "active", "server": "inactive", "run": "20261130-061500"}
    assert found["memory"]["total"] > found["memory"]["available"] > 0
    assert found["gpus"] == {"text": '{["--x", "1"]}\n'}
    assert set(on_host.status(5)) < set(found)


def test_a_host_that_wants_no_cards_is_not_asked_for_them(programs):
    programs()
    assert on_host.doctor(5, None)["gpus"] is None


def test_the_doctor_of_the_gpus_itself(programs):
    programs()
    sent = {"program": gpus.PROGRAM.read_text(), "arguments": ["--json", "--gpus=8"]}
    (finding,) = json.loads(on_host.doctor(5, sent)["gpus"]["text"])["findings"]
    assert (finding["name"], finding["level"]) == ("count", "problem")


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("import sys; sys.exit('a\\nb')", "b"),
        ("def", "SyntaxError: invalid syntax"),
        ("pass", "it said nothing"),
        ("while True: pass", "no answer within 0.2 s"),
    ],
)
def test_a_doctor_that_does_not_get_there(programs, monkeypatch, program, error):
    programs()
    if error.startswith("no answer"):
        monkeypatch.setattr(on_host, "GPU_DOCTOR_SECONDS", 0.2)
    assert on_host.doctor(5, {"program": program, "arguments": []})["gpus"] == {"error": error}


def test_the_records_of_deployments(monkeypatch, tmp_path):
    (tmp_path / "good").mkdir()
    (tmp_path / "good/deployment.json").write_text("{}")
    monkeypatch.setattr(on_host, "DEPLOYMENTS", tmp_path)
    monkeypatch.setattr(on_host, "READY", tmp_path / "good")
    found = on_host.deployments()
    assert (found["good"], found["previous"]) == ({"text": "{}"}, {})
    assert found["running"] == {"error": "Is a directory"}
