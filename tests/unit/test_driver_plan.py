"""Which plans of apt's the role nvidia_driver does not let happen. Their form is that of apt-get(8), --simulate."""

import pytest

METAL = {"container": "", "version": "", "branch": 580}
LXC = {"container": "lxc", "version": "580.95.05", "branch": 580}
GOOD = [
    "NOTE: This is only a simulation!",
    "Inst linux-libc-dev (6.1.153-1 Debian:12/stable [amd64])",
    "Inst dkms (3.0.10-8 Debian:12/stable [all])",
    "Inst nvidia-kernel-open-dkms (580.95.05-1 NVIDIA:NVIDIA [amd64])",
    "Inst nvidia-open [580.65.06-1] (580.95.05-1 NVIDIA:NVIDIA [amd64])",
    "Conf nvidia-open (580.95.05-1 NVIDIA:NVIDIA [amd64])",
]


@pytest.fixture(scope="module")
def judge(load):
    return load("roles/nvidia_driver/filter_plugins/driver_plan.py").nvidia_driver_plan_problems


def test_a_driver_of_the_branch_is_fine(judge):
    assert judge(GOOD, METAL) == []


def test_userspace_of_the_version_is_fine_in_a_container(judge):
    assert judge(["Inst nvidia-driver-cuda (580.95.05-1 NVIDIA:NVIDIA [amd64])"], LXC) == []


@pytest.mark.parametrize(
    ("line", "asked", "reason"),
    [
        ("Inst linux-image-6.1.0-41-amd64 (6.1.158-1 Debian:12 [amd64])", METAL, "install linux-image-6.1.0-41-amd64"),
        ("Remv linux-headers-6.1.0-40-amd64 [6.1.153-1]", METAL, "remove linux-headers-6.1.0-40-amd64"),
        ("Inst nvidia-open (590.48.01-1 NVIDIA:NVIDIA [amd64])", METAL, "nvidia-open 590.48.01-1, not 580"),
        ("Inst dkms (3.0.10-8 Debian:12/stable [all])", LXC, "install dkms, which is for a kernel"),
        ("Inst nvidia-kernel-open-dkms (580.95.05-1 NVIDIA [amd64])", LXC, "a container has none"),
        ("Inst libnvidia-compute-580 (580.65.06-0ubuntu1 NVIDIA [amd64])", LXC, "not 580.95.05"),
    ],
)
def test_refused_with_a_sentence(judge, line, asked, reason):
    (problem,) = judge([line], asked)
    assert reason in problem
