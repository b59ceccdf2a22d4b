"""Which hosts the role nvidia_driver refuses, and which are as they were asked for."""

import driver_looks as looks
import pytest
import yaml

from blackwell import paths

SYSTEMS = yaml.safe_load((paths.ROOT / "roles/nvidia_driver/vars/main/systems.yml").read_text())[
    "_nvidia_driver_systems"
]
ASKED = {
    "systems": list(SYSTEMS),
    "folder": "debian12",
    "oldest": 580,
    "branch": 580,
    "version": "",
    "exact": "",
    "packages": ["nvidia-open", "nvidia-persistenced"],
    "pin": "nvidia-driver-pinning-580",
    "container": "",
    "source": "nvidia",
    "archive": looks.ARCHIVE.format("debian12"),
    "given": {"mirror": "", "mirror_key": "", "package_file": ""},
    "missing": [],
}
IN_CONTAINER = ASKED | {
    "container": "lxc",
    "version": "580.95.05",
    "packages": ["nvidia-driver-cuda"],
    "pin": "nvidia-driver-pinning-580.95.05",
}
LISTS = "/etc/apt/sources.list.d"
REPOSITORY = "https://developer.download.nvidia.com/compute/cuda/repos"
LOADED = looks.METAL | {"nvrm": looks.OPEN.format("580.95.05")}


@pytest.fixture(scope="module")
def look(load):
    return load("roles/nvidia_driver/filter_plugins/driver_look.py")


@pytest.fixture(scope="module")
def checks(load):
    return load("roles/nvidia_driver/filter_plugins/driver_checks.py")


@pytest.fixture(scope="module")
def problems(look, checks):
    def of(values, asked=ASKED, packages=looks.KERNEL, **lists):
        seen = look.nvidia_driver_seen(looks.printed(values, packages, **lists))
        return [check["problem"] for check in checks.nvidia_driver_checks(seen, asked) if not check["ok"]]

    return of


def test_a_fresh_host_and_one_that_is_done_are_accepted(problems):
    assert problems(looks.METAL) == []
    assert problems(LOADED, packages=looks.KERNEL + looks.driver()) == []


def test_a_container_with_all_that_it_needs_is_accepted(problems):
    assert problems(looks.CONTAINER, IN_CONTAINER, packages=[]) == []


REFUSED = {
    "run file": ({"unpackaged": ["/usr/bin/nvidia-uninstall"]}, "No package owns /usr/bin/nvidia-uninstall"),
    "headers": ({"headers": ""}, "run apt-get install linux-headers-6.1.0-40-amd64"),
    "machine": ({"machine": "aarch64"}, "x86_64, not on aarch64"),
    "trusted": (
        {"source": [f"{LISTS}/cuda-debian12-x86_64.list:deb [trusted=yes] {REPOSITORY}/debian12/x86_64/ /"]},
        "trusted=yes",
    ),
    "second list": (
        {"source": [f"{LISTS}/nvidia.list:deb {REPOSITORY}/debian12/x86_64/ /"]},
        "nvidia.list names NVIDIA's repository a second time",
    ),
    "other distribution": (
        {"source": [f"{LISTS}/cuda-ubuntu2404-x86_64.list:deb {REPOSITORY}/ubuntu2404/x86_64/ /"]},
        "for another distribution than debian12",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_one_sentence(problems, case):
    values, reason = REFUSED[case]
    (problem,) = problems(looks.METAL | values)
    assert reason in problem


ASKED_REFUSED = {
    "branch": ({"branch": 575}, "575 is older than 580"),
    "version": ({"exact": "590.48.01"}, "590.48.01 is not of nvidia_driver_branch 580"),
    "mirror": ({"source": "mirror"}, "needs nvidia_driver_mirror and nvidia_driver_mirror_key"),
    "package": (
        {"source": "package", "given": {"package_file": "/x.deb"}, "missing": ["package_file"]},
        "nvidia_driver_package_file: /x.deb is not on the control machine",
    ),
    "system": ({"folder": ""}, "debian 12, debian 13, ubuntu 22.04, ubuntu 24.04, not on debian 12"),
}


@pytest.mark.parametrize("case", ASKED_REFUSED)
def test_what_is_asked_for_is_refused_with_one_sentence(problems, case):
    asked, reason = ASKED_REFUSED[case]
    (problem,) = problems(looks.METAL, ASKED | asked)
    assert reason in problem


def test_every_reason_is_given_at_once(problems):
    faults = {"machine": "aarch64", "headers": "", "unpackaged": ["/usr/bin/nvidia-uninstall"]}
    assert len(problems(looks.METAL | faults)) == 3


def test_debian_13_must_not_use_the_repository_of_debian_12(problems):
    line = f"{LISTS}/cuda-debian12-x86_64.list:deb {REPOSITORY}/debian12/x86_64/ /"
    (problem,) = problems(looks.METAL | {"os": "debian 13"}, ASKED | {"folder": "debian13"}, source=[line])
    assert "another distribution than debian13" in problem


@pytest.mark.parametrize(
    ("release", "refused"),
    [("6.1.0-41-amd64", True), ("6.1.0-9-amd64", False), ("6.1.0-41-common", False), ("6.12.0-1-amd64", True)],
)
def test_headers_newer_than_the_running_kernel(problems, release, refused):
    found = problems(looks.METAL, packages=[*looks.KERNEL, ("ii ", f"linux-headers-{release}", "1")])
    assert bool(found) is refused
    assert all(f"The headers of {release} are newer" in problem for problem in found)


def test_a_driver_that_is_in_place_needs_nothing_to_be_built_with(problems):
    packages = [*looks.KERNEL, ("ii ", "linux-headers-6.1.0-41-amd64", "1"), *looks.driver()]
    assert problems(LOADED | {"headers": ""}, packages=packages) == []


def test_packages_from_another_archive_are_named(problems):
    lines = [
        *looks.policy("nvidia-open", "580.95.05-1", ASKED["archive"]),
        *looks.policy("libcuda1:amd64", "535.261.03-1", "http://deb.debian.org/debian bookworm/non-free amd64"),
    ]
    packages = [("ii ", "nvidia-open", "580.95.05-1"), ("ii ", "libcuda1", "535.261.03-1")]
    (problem,) = problems(looks.METAL, packages=looks.KERNEL + packages, policy=lines)
    assert "libcuda1 from http://deb.debian.org/debian" in problem
    assert "apt-get purge libcuda1" in problem
    assert "nvidia-open from" not in problem


CONTAINERS_REFUSED = {
    "no driver on its host": ({"nvrm": ""}, {"version": ""}, "host has no NVIDIA driver loaded"),
    "closed module": ({"nvrm": looks.CLOSED.format("580.95.05")}, {}, "closed kernel module"),
    "another version": (
        {},
        {"exact": "580.65.06"},
        "580.65.06 is asked for, and the host of this container has 580.95.05",
    ),
    "old host": ({"nvrm": looks.OPEN.format("575.57.08")}, {"branch": 575}, "update the driver of the host"),
}


@pytest.mark.parametrize("case", CONTAINERS_REFUSED)
def test_a_container_is_refused_with_one_sentence(problems, case):
    values, asked, reason = CONTAINERS_REFUSED[case]
    (problem,) = problems(looks.CONTAINER | values, IN_CONTAINER | asked, packages=[])
    assert reason in problem


def test_a_container_needs_no_kernel_of_its_own(problems):
    assert problems(looks.CONTAINER | {"headers": ""}, IN_CONTAINER, packages=[]) == []


@pytest.mark.parametrize(
    ("packages", "asked", "settled"),
    [
        (looks.driver(), {}, True),
        (looks.driver(), {"version": "580.95.05"}, True),
        (looks.driver(), {"version": "580.65.06"}, False),
        (looks.driver("590.48.01-1"), {}, False),
        (looks.driver(pin="nvidia-driver-pinning-590"), {}, False),
        (looks.driver(state="rc "), {}, False),
        ([*looks.driver(), ("ii ", "libnvidia-ml1", "575.57.08-1")], {}, False),
        ([*looks.driver(), ("ii ", "nvidia-container-toolkit", "1.18.0-1")], {}, True),
        ([], {}, False),
    ],
)
def test_settled(look, checks, packages, asked, settled):
    seen = look.nvidia_driver_seen(looks.printed(looks.METAL, packages))
    assert checks.nvidia_driver_settled(seen, ASKED | asked) is settled


@pytest.mark.parametrize(
    ("nvrm", "stale"),
    [
        (looks.OPEN.format("580.95.05"), False),
        (looks.OPEN.format("580.65.06"), True),
        (looks.CLOSED.format("580.95.05"), True),
        ("", True),
    ],
)
def test_stale(look, checks, nvrm, stale):
    seen = look.nvidia_driver_seen(looks.printed(looks.METAL | {"nvrm": nvrm}, looks.driver()))
    assert checks.nvidia_driver_stale(seen) is stale
