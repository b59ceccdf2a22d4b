"""The unit of a sweep, and what is written down of a sweep that could not do so itself."""

import json
import socket
from pathlib import Path

import pytest

from blackwell.bench.errors import BenchError
from blackwell.sweep import put_back, runner_unit, service, systemd

RUN = Path("/var/lib/sglang/bench/20261130-061500")
PYTHON = "/opt/sglang/releases/0.5.9-f43cee65b1a2/venv/bin/python"


def test_the_command_that_starts_a_sweep():
    words = runner_unit.words(RUN, PYTHON, RUN / "program.zip")
    assert words[:4] == ["systemd-run", "--quiet", "--collect", "--unit=blackwell-bench.service"]
    assert words[-5:] == [PYTHON, "-P", "-m", "blackwell.sweep.main", str(RUN)]
    assert f"--property=ExecStopPost={PYTHON} -P -m blackwell.sweep.put_back {RUN}" in words
    assert f"--property=StandardOutput=append:{RUN}/log" in words
    assert f"--property=StandardError=append:{RUN}/log" in words
    assert f"--setenv=PYTHONPATH={RUN}/program.zip" in words


def test_the_program_of_a_sweep_can_be_another():
    assert runner_unit.words(RUN, PYTHON, Path("/root/p.zip"), "tiny")[-2:] == ["tiny", str(RUN)]


@pytest.mark.parametrize("run", ["/var/lib/a run", "/var/lib/100%", "/var/lib/$HOME", "relative/run", "/var/lib/a:b"])
def test_a_path_that_systemd_reads_in_another_way_is_refused_by_name(run):
    with pytest.raises(BenchError) as refused:
        runner_unit.words(Path(run), PYTHON, RUN / "program.zip")
    assert str(refused.value).startswith(f"{run} is no absolute path of letters")


@pytest.mark.parametrize(
    ("result", "code", "status", "told"),
    [
        ("success", "killed", "TERM", ("stopped", "it was told to stop")),
        ("signal", "killed", "KILL", ("failed", "the sweep was ended by signal KILL before it could say why")),
        (
            "oom-kill",
            "killed",
            "KILL",
            ("failed", "the sweep was ended by signal KILL before it could say why, as the memory was used up"),
        ),
        ("exit-code", "exited", "1", ("failed", "the sweep was over, with exit status 1, before it could say why")),
    ],
)
def test_how_a_sweep_ended_by_what_systemd_says(tmp_path, result, code, status, told):
    variables = {"SERVICE_RESULT": result, "EXIT_CODE": code, "EXIT_STATUS": status}
    put_back.note(tmp_path, variables)
    written = json.loads((tmp_path / "exit.json").read_text())
    assert (written["status"], written["reason"]) == told
    assert written["at"] > 1.7e9


def test_what_the_sweep_said_itself_stays(tmp_path):
    (tmp_path / "exit.json").write_text('{"status": "done"}')
    put_back.note(tmp_path, {"SERVICE_RESULT": "signal", "EXIT_CODE": "killed", "EXIT_STATUS": "KILL"})
    assert (tmp_path / "exit.json").read_text() == '{"status": "done"}'


def test_nothing_is_said_of_a_sweep_when_somebody_puts_back_by_hand(tmp_path):
    put_back.note(tmp_path, {})
    assert not (tmp_path / "exit.json").exists()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            [
                "[2026-11-30 07:00:00] server_args=ServerArgs(...)",
                "Traceback (most recent call last):",
                "ValueError: User-specified context_length (123456) is greater than the derived one (4096)",
                "[2026-11-30 07:00:01] Received sigquit from a child process.",
                "sglang-ready: the server (pid 7) ended before it was ready",
            ],
            "ValueError: User-specified context_length (123456) is greater than the derived one (4096)",
        ),
        (
            ["usage: launch_server.py", "launch_server.py: error: argument --tp-size: invalid int value: 'x'", "bye"],
            "launch_server.py: error: argument --tp-size: invalid int value: 'x'",
        ),
        (
            ["KeyError: 'first'", "torch.OutOfMemoryError: CUDA out of memory.", "Killed"],
            "torch.OutOfMemoryError: CUDA out of memory.",
        ),
        (["loading", "sglang-ready: the server is not healthy after 9 s", "bye"],
         "sglang-ready: the server is not healthy after 9 s"),
        (["one", "  two  "], "two"),
        ([], ""),
    ],
)  # fmt: skip
def test_the_line_that_tells_most(lines, told):
    assert systemd.telling(lines) == told


def test_a_long_line_is_cut():
    assert len(systemd.telling(["ValueError: " + "x" * 1000])) == 300


def test_a_port_on_which_nothing_listens():
    with socket.create_server(("127.0.0.1", 0)) as one:
        taken = one.getsockname()[1]
        found = service.free_port(taken - 1)
        assert found not in (taken - 1, taken)
        with socket.create_server(("127.0.0.1", found)):
            assert service.free_port(taken - 1) not in (taken, found)
