"""What the preflight role makes of the doctor of the GPUs: whom it asks, what it refuses, and what it only says."""

import shlex
import sys

import ansible_play
import gpu_machine
import pytest
import yaml

from blackwell import paths

PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - import_role: {name: preflight, tasks_from: gpus}
    - import_role: {name: preflight, tasks_from: report}
    # For their defaults.
    - import_role: {name: nvidia_driver, tasks_from: preflight}
      when: false
    - import_role: {name: sglang, tasks_from: intent}
      when: false
    - import_role: {name: sglang_server, tasks_from: intent}
      when: false
"""
ALONE = {"_preflight_variable_problems": [], "_preflight_failed": "{{ _preflight_gpu_checks | rejectattr('ok') }}"}
"""The report without what the other checks find, for which there is no host."""


def play(scratch, machine, **variables):
    """The role's words, without line breaks, on a host whose Python looks at a machine in place of this one."""
    python = scratch / "python"
    program = [f"PATH={shlex.quote(str(machine.programs))}", "exec", shlex.quote(sys.executable)]
    python.write_text(f'#!/bin/sh\n{" ".join(program)} "$@" --root={shlex.quote(str(machine.root))}\n')
    python.chmod(0o755)
    host = yaml.safe_load((paths.ROOT / "inventory/example/group_vars/all.yml").read_text(encoding="utf-8"))
    host |= {"preflight_python": str(python)} | variables
    done = ansible_play.play(scratch, PLAYBOOK, {"box": host}, **ALONE)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def break_cards(machine):
    """MIG on one card, and less power for all."""
    cards = gpu_machine.recording("cards.csv").replace("12.0, Disabled", "12.0, Enabled", 1)
    text = cards.replace("600.00, 600.00", "450.00, 600.00")
    (machine.programs / "cards.csv").write_text(text)
    program = machine.programs / "nvidia-smi"
    program.write_text(
        program.read_text().replace(str(gpu_machine.RECORDINGS / "cards.csv"), str(machine.programs / "cards.csv"))
    )


@pytest.fixture
def machine(tmp_path):
    return gpu_machine.container(tmp_path / "machine")


def test_eight_cards_are_accepted(tmp_path, machine):
    code, said = play(tmp_path, machine)
    assert code == 0, said
    assert "GPUs (" not in said


def test_refused_with_every_reason_and_the_rest_is_said(tmp_path, machine):
    break_cards(machine)
    code, said = play(tmp_path, machine, preflight_gpu_count=9, preflight_gpu_driver="590", nvidia_driver_manage=False)
    assert code != 0
    assert "box is refused, nothing was changed. 3 to mend:" in said
    for problem in (
        "1. GPUs (driver): the loaded driver is 580.105.08, older than 590: on the host of the container: install",
        "2. GPUs (count): 8 GPUs are on the PCI bus, 9 are wanted: seat the cards",
        "3. GPUs (mig): MIG is on for GPU 0: on the host of the container: nvidia-smi -i 0 -mig 0, and reset",
    ):
        assert problem in said
    assert (
        "GPUs (power): the power of GPU 0, 1, 2, 3, 4, 5, 6 and 7 is capped at 450 W" in said.partition("is refused")[0]
    )


def test_warnings_are_a_variable(tmp_path, machine):
    break_cards(machine)
    code, said = play(tmp_path, machine, preflight_gpu_warnings=["mig"])
    assert code != 0
    assert "1 to mend: 1. GPUs (power):" in said
    assert "GPUs (mig):" in said.partition("is refused")[0]


def test_a_host_without_a_driver_is_the_driver_roles_to_judge_where_it_installs_one(tmp_path):
    machine = gpu_machine.without_driver(tmp_path / "machine")
    code, said = play(tmp_path, machine)
    assert code == 0, said
    code, said = play(tmp_path, machine, nvidia_driver_manage=False)
    assert code != 0
    assert "1 to mend: 1. GPUs (driver): 8 NVIDIA GPUs are on the PCI bus, and no NVIDIA driver is loaded" in said


def test_a_host_without_python_is_told_so(tmp_path, machine):
    code, said = play(tmp_path, machine, preflight_python="/opt/no/python")
    assert code != 0
    assert "The GPUs could not be looked at, as /opt/no/python did not run the doctor" in said
    assert "not found): install Python 3.9 or newer on the host" in said


@pytest.mark.parametrize("variables", [{"sglang_device": "cpu"}, {"preflight_gpu_count": 0}])
def test_where_no_card_is_wanted_none_is_looked_at(tmp_path, machine, variables):
    code, said = play(tmp_path, machine, preflight_python="/opt/no/python", **variables)
    assert code == 0, said
    assert "GPUs (" not in said
