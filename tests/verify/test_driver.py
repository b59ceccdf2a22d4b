"""The driver that is installed is the one that is asked for and the one that is loaded, and it stays."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "roles/nvidia_driver/filter_plugins"))
from driver_look import nvidia_driver_seen

PROBE = Path(__file__).parents[2] / "roles/nvidia_driver/files/probe.sh"


@pytest.fixture(scope="module", autouse=True)
def _managed(intent):
    if not intent["driver"]["manage"]:
        of_cuda = intent["sglang"]["device"] == "cuda"
        pytest.skip(
            "nvidia_driver_manage is false: the driver of this host is not asked for"
            if of_cuda
            else "sglang_device is not cuda: this host has no driver to look at"
        )


@pytest.fixture(scope="module")
def seen(host):
    """What the probe of the role sees of the driver."""
    said = host.check_output("sh -c %s", PROBE.read_text(encoding="utf-8"))
    return nvidia_driver_seen(said.splitlines())


@pytest.fixture(scope="module")
def installed(seen):
    """The versions that the packages of the driver have, of which there must be one."""
    return sorted(set(seen["driver"].values()))


def test_the_version_that_is_asked_for_is_installed(seen, installed, intent):
    branch, exact = intent["driver"]["branch"], intent["driver"]["version"]
    # The module of a container is its host's, and only libraries of the very same version work with it.
    wanted = seen["loaded"] if seen["container"] else exact
    assert len(installed) == 1
    assert installed == [wanted] if wanted else installed[0].startswith(f"{branch}.")


def test_the_installed_version_is_loaded_as_an_open_module(seen, installed):
    assert [seen["loaded"]] == installed
    assert seen["open"]


def test_it_is_held(seen):
    pins = {name for name in seen["installed"] if name.startswith("nvidia-driver-pinning-")}
    assert len(pins) == 1
    assert (set(seen["driver"]) | pins) - set(seen["held"]) == set()


def test_unattended_upgrades_leave_it_alone(host):
    said = host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    assert '"^nvidia-"' in said
    assert '"^libnvidia-"' in said


def test_the_cards_stay_initialised(host, seen):
    if seen["container"]:
        pytest.skip("the persistence daemon is that of the host of this container")
    service = host.service("nvidia-persistenced")
    assert service.is_enabled
    assert service.is_running


def test_every_card_answers_with_that_version(host, seen):
    answers = host.check_output("nvidia-smi --query-gpu=driver_version --format=csv,noheader").split()
    assert answers
    assert set(answers) == {seen["loaded"]}
