"""How an all-reduce is started on its host, with programs on PATH that stand for systemd's and the driver's."""

import sys
from pathlib import Path

import pytest

from blackwell import on_host

SHOWN = """LoadState=loaded
ActiveState={state}
User=sglang
EnvironmentFiles=/etc/sglang/environment (ignore_errors=no)
EnvironmentFiles=/etc/sglang/more (ignore_errors=yes)"""

RANKS = """
def run(**given):
    return {"ranks": [], "given": given}
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Puts the programs on PATH; ``systemd-run`` notes its options and runs what follows them."""

    def made(*, state="inactive", shown=SHOWN, gpus=0, runs='exec "$@"'):
        programs = tmp_path / "bin"
        programs.mkdir()
        monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
        note = tmp_path / "options"
        written = {
            "systemctl": f"cat <<'EOF'\n{shown.format(state=state)}\nEOF",
            "systemd-run": f'while [ "${{1#--}}" != "$1" ]; do echo "$1" >>{note}; shift; done\n{runs}',
            **({"nvidia-smi": f"seq {gpus}"} if gpus else {}),
        }
        for name, text in written.items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        python = tmp_path / "sglang/current/venv/bin/python"
        python.parent.mkdir(parents=True)
        python.symlink_to(sys.executable)
        monkeypatch.setattr(on_host, "ROOT", Path(tmp_path / "sglang"))
        return note

    return made


def asked(total=0, *, beside=False):
    arguments = {"program": "", "total": total, "kind": "cuda", "sizes": [4], "seconds": 20}
    return on_host.interconnect(RANKS, arguments, beside)


def test_it_is_a_unit_of_the_service_user_with_the_service_environment_and_an_end(host):
    note = host(gpus=8)
    found = asked()
    assert (found["total"], found["active"], found["ranks"]) == (8, False, [])
    assert found["given"] == {"program": "", "total": 8, "kind": "cuda", "sizes": [4], "seconds": 20}
    options = note.read_text().splitlines()
    wanted = {"User=sglang", "EnvironmentFile=/etc/sglang/environment", "EnvironmentFile=/etc/sglang/more"}
    assert {f"--property={text}" for text in (*wanted, "LimitMEMLOCK=infinity", "RuntimeMaxSec=50")} <= set(options)
    assert "--unit=blackwell-interconnect.service" in options


@pytest.mark.parametrize(
    ("has", "total", "problem"),
    [
        ({"gpus": 0}, 0, "it has no GPUs, and an all-reduce takes two"),
        ({"gpus": 1}, 0, "it has 1 GPU, and an all-reduce takes two"),
        (
            {"state": "active", "gpus": 2},
            0,
            "sglang.service runs, and its requests would be measured too: stop it first, or --beside",
        ),
        ({"state": "activating", "gpus": 2}, 0, "sglang.service runs"),
        ({"shown": "LoadState=not-found"}, 2, "there is no release to run it with: deploy first"),
        (
            {"runs": "echo 'Failed to start: it was already loaded' >&2; exit 1"},
            2,
            "blackwell-interconnect.service failed with 1: Failed to start: it was already loaded",
        ),
        ({"runs": "exit 3"}, 2, "blackwell-interconnect.service failed with 3: it said nothing"),
    ],
)
def test_what_cannot_be_run_says_why(host, has, total, problem):
    host(**has)
    assert asked(total)["problem"].startswith(problem)


@pytest.mark.parametrize(("state", "active"), [("active", True), ("failed", False)])
def test_beside_a_server_if_one_says_so(host, state, active):
    host(state=state)
    assert asked(2, beside=True)["active"] == active


def test_a_host_without_a_release(host, tmp_path):
    host()
    (tmp_path / "sglang/current/venv/bin/python").unlink()
    assert asked(2)["problem"].startswith("there is no release to run it with: deploy first")
