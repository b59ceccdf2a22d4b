"""What the role nvidia_driver reads from the lines of its probe."""

import driver_looks as looks
import pytest


@pytest.fixture(scope="module")
def look(load):
    return load("roles/nvidia_driver/filter_plugins/driver_look.py")


@pytest.mark.parametrize(
    ("line", "loaded", "is_open"),
    [
        (looks.OPEN.format("580.95.05"), "580.95.05", True),
        (looks.OPEN.format("580.142"), "580.142", True),
        (looks.CLOSED.format("535.161.07"), "535.161.07", False),
        ("", "", False),
    ],
)
def test_the_module(look, line, loaded, is_open):
    seen = look.nvidia_driver_seen(looks.printed({"nvrm": line}))
    assert (seen["loaded"], seen["open"]) == (loaded, is_open)


def test_packages_states_and_the_kernel(look):
    packages = [
        *looks.KERNEL,
        ("hi ", "nvidia-open", "580.95.05-0ubuntu1"),
        ("ii ", "libnvidia-compute-580", "580.95.05-0ubuntu1"),
        ("rc ", "nvidia-utils-575", "575.57.08-0ubuntu1"),
        ("ii ", "nvidia-container-toolkit", "1.18.0-1"),
        ("ii ", "nvidia-support", "20220217+3~deb12u1"),
        ("hi ", "nvidia-driver-pinning-580", "580.95.05-0ubuntu1"),
    ]
    seen = look.nvidia_driver_seen(looks.printed(looks.METAL, packages))
    assert seen["driver"] == {"nvidia-open": "580.95.05", "libnvidia-compute-580": "580.95.05"}
    assert seen["held"] == ["nvidia-driver-pinning-580", "nvidia-open"]
    assert list(seen["installed"]) == ["nvidia-driver-pinning-580"]
    assert seen["kernels"] == ["linux-image-6.1.0-40-amd64 6.1.153-1"]
    assert seen["header_releases"] == ["6.1.0-40-amd64", "6.1.0-40-common"]


def test_the_archive_is_that_of_the_installed_version(look):
    lines = looks.policy("libcuda1:amd64", "580.95.05-1", looks.ARCHIVE.format("debian12"))
    assert look.archives(lines) == {"libcuda1": [looks.ARCHIVE.format("debian12")]}


def test_a_package_of_no_archive_has_none(look):
    assert look.archives(["x:", "  Installed: 1", " *** 1 100", "        100 /var/lib/dpkg/status"]) == {}


def test_lines_with_the_ends_of_a_terminal(look):
    seen = look.nvidia_driver_seen(["os=ubuntu 24.04\r", "container=lxc\r", "unpackaged=/usr/bin/nvidia-smi\r"])
    assert (seen["os"], seen["container"], seen["unpackaged"]) == ("ubuntu 24.04", "lxc", ["/usr/bin/nvidia-smi"])
