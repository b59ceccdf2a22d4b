"""site.yml on a box that has nothing but another driver: through every stage in one run, and nothing in the second."""

import pytest
from driver_packages import NEW, OLD
from metal import LOADED, REPOSITORIES, add_headers, load, make_metal, publish
from test_cuda import ASKED

STAGES = ("preflight", "driver", "cuda", "sglang", "model", "serve", "verify")
BOX = {
    **ASKED,
    "nvidia_driver_manage": True,
    "nvidia_driver_repository": REPOSITORIES,
    "nvidia_driver_version": NEW,
    "nvidia_driver_reboot": True,
    # It has a driver to look at and computes on the CPU all the same.
    "_sglang_stand_ins_beside_gpus": True,
}

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def box(repositories):
    host = make_metal("box", repositories)
    publish(host, "after")
    add_headers(host)
    load(host, OLD)
    return host


def boot(host) -> str:
    return host.ssh("cat /proc/sys/kernel/random/boot_id")


def test_one_run_takes_it_through_a_reboot_to_a_server_that_is_verified(box):
    before = boot(box)
    run = box.play(**BOX)
    assert run.returncode == 0, run.output
    assert boot(box) != before
    assert f"  {NEW}  " in box.ssh(f"cat {LOADED}")
    assert "release 13.0" in box.ssh("/opt/sglang/toolkits/*/nvidia/cu13/bin/nvcc --version")
    assert box.generates()
    assert " passed" in run.output


def test_a_second_run_changes_nothing(box):
    before = box.fingerprint(), boot(box)
    run = box.play(**BOX)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert (box.fingerprint(), boot(box)) == before


@pytest.mark.parametrize("stage", STAGES)
def test_each_stage_alone_finds_it_as_it_is(box, stage):
    before = box.fingerprint(), boot(box)
    run = box.play("--tags", stage, **BOX)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert (box.fingerprint(), boot(box)) == before
