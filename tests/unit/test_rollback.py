"""From what to what a rollback goes, who is asked, and what it is not for."""

import os
import sys

import pytest
from looks import GOOD, HOST, PREVIOUS, RUNNING

from blackwell import playbooks, rollback
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory

FOUND = {"user": "root", "running": {"text": RUNNING}, "good": {"text": GOOD}, "previous": {"text": PREVIOUS}}
ROWS = [
    "box:",
    "  from  5f778176afecd71f (release 0.5.9-c1e502af0b3c.3)",
    "  to    b757bece3255c9fe (release 0.5.9-c1e502af0b3c.2)",
]


@pytest.mark.parametrize(
    ("running", "more"),
    [
        ({"text": RUNNING}, []),
        ({}, ["  now   nothing runs"]),
        ({"text": PREVIOUS}, ["  now   b757bece3255c9fe (release 0.5.9-c1e502af0b3c.2) runs"]),
    ],
)
def test_from_what_to_what(running, more):
    shown = rollback.render(HOST, rollback.way(HOST, FOUND | {"running": running}))
    assert shown.splitlines() == ROWS + more


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"previous": {}}, "box has no second deployment that worked, so there is nothing to go back to"),
        ({"good": {}, "previous": {}}, "box has no second deployment that worked, so there is nothing to go back to"),
        (
            {"user": "ops", "good": {"error": "Permission denied"}},
            "box: ops may not read /var/lib/sglang/deployments: set ansible_become for the host",
        ),
    ],
)
def test_nothing_to_go_back_to(changes, said):
    with pytest.raises(HostError) as caught:
        rollback.way(HOST, FOUND | changes)
    assert str(caught.value) == said


@pytest.fixture
def terminal(monkeypatch):
    """Types on a terminal that is this process's input."""
    master, slave = os.openpty()
    with os.fdopen(slave) as typed, os.fdopen(master, "wb", buffering=0) as keyboard:
        monkeypatch.setattr(sys, "stdin", typed)
        yield keyboard.write


@pytest.mark.parametrize(("typed", "agreed"), [("y", True), ("Yes", True), ("n", False), ("", False), ("yy", False)])
def test_who_is_asked(terminal, capsys, typed, agreed):
    terminal(f"{typed}\n".encode())
    assert rollback.agreed(HOST) is agreed
    assert capsys.readouterr().err == "The service restarts. Roll back? [y/N] "


def test_nobody_to_ask(monkeypatch, tmp_path):
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open() as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        with pytest.raises(HostError, match="box: there is no terminal to ask on whether to roll back: --yes says so"):
            rollback.agreed(HOST)


KNOWN = Inventory("/inv", {"box": {}, "other": {}}, {"sglang_hosts": ("box",)})


def test_hosts_that_the_playbooks_are_not_for():
    playbooks.check(HOST, KNOWN, "it")
    for host, said in {
        Host("other", "other"): "other is not in the group sglang_hosts of /inv, which it is for",
        Host("far", "far"): "far is in no inventory, which it needs: name one with --inventory",
    }.items():
        with pytest.raises(HostError) as caught:
            playbooks.check(host, KNOWN, "it")
        assert str(caught.value) == said


def test_the_exit_status_of_a_command_is_handed_on():
    assert playbooks.run(["sh", "-c", "exit 3"]) == 3
    with pytest.raises(HostError, match="/nowhere/ansible-playbook does not start"):
        playbooks.run(["/nowhere/ansible-playbook"])


def test_how_to_deploy():
    assert playbooks.deploy(HOST) == "ansible-playbook site.yml -i /inv --limit box"
    assert playbooks.deploy(Host("box", "box", inventory="none")) == "ansible-playbook site.yml -i INVENTORY"
