"""site.yml on a box that has nothing but another driver: through the reboot to a toolkit, and nothing in the next run.

What comes after, a server, needs the locked packages for CUDA; the CPU's refuse to run beside a driver.
"""

import pytest
from driver_packages import NEW, OLD
from metal import LOADED, REPOSITORIES, add_headers, load, make_metal, publish
from test_cuda import ASKED

BOX = {
    **ASKED,
    "nvidia_driver_manage": True,
    "nvidia_driver_repository": REPOSITORIES,
    "nvidia_driver_version": NEW,
    "nvidia_driver_reboot": True,
    # Of a release for the CPU, which refuses a host with a driver.
    "_sglang_checks": [],
}
STAGES = ("--tags", "driver,cuda")

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


def test_one_run_takes_it_through_a_reboot_to_a_toolkit(box):
    before = boot(box)
    run = box.play(*STAGES, **BOX)
    assert run.returncode == 0, run.output
    assert boot(box) != before
    assert f"  {NEW}  " in box.ssh(f"cat {LOADED}")
    assert "release 13.0" in box.ssh("/opt/sglang/toolkits/*/nvidia/cu13/bin/nvcc --version")


@pytest.mark.parametrize("stages", ["driver,cuda", "driver", "cuda"])
def test_a_second_run_changes_nothing(box, stages):
    before = box.fingerprint(), boot(box)
    run = box.play("--tags", stages, **BOX)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert (box.fingerprint(), boot(box)) == before
