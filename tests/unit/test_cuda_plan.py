"""Which plans of apt's the role cuda does not let happen."""

import cuda_looks as looks
import pytest

TOOLKIT = "cuda-toolkit-13-0"


@pytest.fixture(scope="module")
def judge(load):
    return load("roles/cuda/filter_plugins/cuda_plan.py").cuda_plan_problems


@pytest.mark.parametrize("version", ["13.0.", "13.0.2-1"])
def test_the_packages_of_the_toolkit_are_fine(judge, version):
    assert judge(looks.plan(), TOOLKIT, version) == []


def test_an_upgrade_of_its_own_packages_is_fine(judge):
    line = "Inst cuda-nvcc-13-0 [13.0.48-1] (13.0.88-1 NVIDIA:NVIDIA [amd64]) []"
    assert judge([line], TOOLKIT, "13.0.") == []


@pytest.mark.parametrize(
    "name",
    [
        *("cuda", "cuda-13-0", "cuda-runtime-13-0", "cuda-drivers", "cuda-drivers-580", "cuda-compat-13-0"),
        *("nvidia-open", "nvidia-driver-pinning-580", "nvidia-kernel-open-dkms", "libnvidia-compute-580", "libcuda1"),
        *("dkms", "nvidia-dkms-580", "linux-image-6.1.0-41-amd64", "linux-headers-amd64", "proxmox-kernel-6.8"),
    ],
)
def test_the_driver_and_the_kernel_are_not_touched(judge, name):
    (problem,) = judge([*looks.plan(), looks.step(name, "580.95.05-1")], TOOLKIT, "13.0.")
    assert problem.startswith(f"apt would install {name}, which is the driver's or the kernel's")


def test_an_upgrade_of_the_driver_is_not_let_in_either(judge):
    (problem,) = judge(["Inst libcuda1 [580.95.05-1] (580.105.08-1 NVIDIA:NVIDIA [amd64])"], TOOLKIT, "13.0.")
    assert "libcuda1" in problem


def test_nothing_is_removed(judge):
    (problem,) = judge(["Remv cuda-toolkit-12-8 [12.8.1-1]", *looks.plan()], TOOLKIT, "13.0.")
    assert problem.startswith("apt would remove cuda-toolkit-12-8: remove it by hand")


@pytest.mark.parametrize("found", ["13.1.0-1", "13.0.1-1", "12.13.0.2-1"])
def test_another_version_is_not_let_in(judge, found):
    (problem,) = judge(looks.plan(found), TOOLKIT, "13.0.2")
    assert problem == f"apt would install {TOOLKIT} {found}, not 13.0.2: the archive lacks that version."
