"""What the role nvidia_driver asks for on each distribution, bare and in a container, as Ansible resolves it."""

import ansible_play
import driver_looks as looks
import pytest

BRANCHED = ["libnvidia-compute-580", "nvidia-utils-580"]
WANTED = {
    # system, place, loaded in a container: folder, packages, pin
    ("debian 12", "metal", ""): ("debian12", ["nvidia-open", "nvidia-persistenced"], "580"),
    ("debian 13", "metal", ""): ("debian13", ["nvidia-open", "nvidia-persistenced"], "580"),
    ("ubuntu 22.04", "metal", ""): ("ubuntu2204", ["nvidia-open", "nvidia-persistenced"], "580"),
    ("ubuntu 24.04", "metal", ""): ("ubuntu2404", ["nvidia-open", "nvidia-persistenced"], "580"),
    ("debian 12", "container", "580.95.05"): ("debian12", ["nvidia-driver-cuda"], "580.95.05"),
    ("debian 13", "container", "590.48.01"): ("debian13", ["nvidia-driver-cuda"], "590.48.01"),
    ("ubuntu 22.04", "container", "580.95.05"): ("ubuntu2204", BRANCHED, "580.95.05"),
    ("ubuntu 24.04", "container", "590.48.01"): ("ubuntu2404", ["libnvidia-compute", "nvidia-utils"], "590.48.01"),
}
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - import_role: {name: nvidia_driver, tasks_from: preflight}
      when: false
    - set_fact:
        _nvidia_driver_raw: {stdout_lines: "{{ recorded }}"}
    - set_fact:
        asked: "{{ _nvidia_driver_asked }}"
        problems: "{{ _nvidia_driver_problems }}"
"""


def host(values, **variables):
    """A host whose probe is recorded, so that none has to be run."""
    return {"recorded": looks.printed(values)} | variables


def values_of(system, place, loaded):
    base = looks.METAL if place == "metal" else looks.CONTAINER | {"nvrm": looks.OPEN.format(loaded)}
    return base | {"os": system}


@pytest.fixture(scope="module")
def resolved(tmp_path_factory):
    scratch = tmp_path_factory.mktemp("driver")
    hosts = {"_".join(case).replace(" ", "_"): host(values_of(*case)) for case in WANTED}
    hosts["other"] = host(looks.METAL | {"os": "fedora 43"})
    hosts["cpu"] = host(looks.METAL | {"os": "fedora 43", "headers": ""}, sglang_device="cpu")
    return ansible_play.variables(scratch, PLAYBOOK, hosts)


@pytest.mark.parametrize("case", WANTED, ids=" ".join)
def test_a_supported_system_is_accepted_and_gets_its_packages(resolved, case):
    found = resolved["_".join(case).replace(" ", "_")]
    folder, packages, pin = WANTED[case]
    assert found["problems"] == []
    assert found["asked"]["packages"] == packages
    assert found["asked"]["pin"] == f"nvidia-driver-pinning-{pin}"
    assert found["asked"]["archive"] == looks.ARCHIVE.format(folder)


def test_another_system_is_refused(resolved):
    (problem,) = resolved["other"]["problems"]
    assert "not on fedora 43" in problem


def test_a_host_that_computes_on_the_cpu_is_not_judged(resolved):
    assert resolved["cpu"]["problems"] == []
