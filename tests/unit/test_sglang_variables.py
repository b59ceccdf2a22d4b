"""What the role sglang makes of its variables on a host with cards, before and after there is a lock."""

import shutil

import ansible_play
import pytest

from blackwell import paths

PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - import_role: {name: cuda, tasks_from: intent}
      when: false
    - import_role: {name: sglang, tasks_from: intent}
      vars: {role_path: "ROOT/roles/sglang"}
    - set_fact:
        problems: "{{ _sglang_checks | rejectattr('ok') | map(attribute='problem') | map('trim') }}"
        files: "{{ _sglang_requirements[sglang_device] }}"
      vars:
        role_path: "ROOT/roles/sglang"
        _preflight_host: {python: "3.11", machine: x86_64, nvidia_gpu: "true"}
"""
LOCK = "roles/sglang/files/locks/sglang-0.5.9-cuda.txt"
NO_LOCK = (
    "sglang_device: there is no lock of the dependencies of SGLang 0.5.9 for cuda (roles/sglang/files/locks/"
    "sglang-0.5.9-cuda.txt): make it where the package indexes can be reached, by "
    "scripts/wheelhouse lock --release 0.5.9 --variant cuda."
)
NO_WHEELHOUSE = (
    "sglang_wheelhouse is not set: make one with scripts/wheelhouse fetch --release 0.5.9 --variant cuda, "
    "and name what scripts/wheelhouse path prints."
)


@pytest.fixture(scope="module")
def resolved(tmp_path_factory):
    """The variables of a checkout, with and without a lock for hosts with cards."""

    def run(*, locked):
        root = tmp_path_factory.mktemp("checkout")
        for name in ("roles", "patches"):
            shutil.copytree(paths.ROOT / name, root / name)
        (root / LOCK).unlink(missing_ok=True)
        if locked:
            (root / LOCK).write_text("# for tests\n")
        (root / "house.tar").touch()
        hosts = {
            "bare": {"cuda_manage": False},
            "house": {"sglang_wheelhouse": str(root / "house.tar"), "cuda_manage": False},
            "toolkit": {"sglang_wheelhouse": str(root / "house.tar"), "cuda_version": "13.0"},
        }
        playbook = PLAYBOOK.replace("ROOT", str(root))
        return ansible_play.variables(root, playbook, hosts)

    return {locked: run(locked=locked) for locked in (False, True)}


@pytest.mark.parametrize(
    ("locked", "host", "problems"),
    [
        (False, "bare", [NO_LOCK, NO_WHEELHOUSE]),
        (False, "house", [NO_LOCK]),
        (True, "bare", [NO_WHEELHOUSE]),
        (True, "house", []),
    ],
)
def test_what_is_missing_is_named_with_the_command_that_makes_it(resolved, locked, host, problems):
    assert [" ".join(problem.split()) for problem in resolved[locked][host]["problems"]] == problems


def test_cards_get_the_lock_alone(resolved):
    assert resolved[True]["house"]["files"] == ["lock.txt"]


def test_the_check_is_the_program_and_takes_the_toolkits_cuobjdump(resolved):
    words = resolved[True]["toolkit"]["_sglang_intent"]["kernel_check"]
    program = (paths.ROOT / "roles/sglang/files/check_kernels.py").read_text().rstrip()
    assert words[-4].rstrip() == program
    assert words[-3:] == ["--architecture=sm_120", "--cuda=13", "--cuobjdump=/usr/local/cuda-13.0/bin/cuobjdump"]
