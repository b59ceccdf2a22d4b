"""Hosts to deploy to, in a sandbox of their own beside one that is in use.

The tests of a module share its hosts and run in the order in which they are written: a deployment is made once, then
examined.
"""

import fcntl
import os
from pathlib import Path

import driver_packages
import metal
import pytest
from target import SETTINGS, make

from blackwell.sandbox import api


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="run what is marked long, too")


def pytest_collection_modifyitems(config, items):
    """What needs a bare host comes before what needs a deployed one, as both take the same host."""
    items.sort(key=lambda item: item.path.name != "test_site.py")
    for item in items:
        if item.get_closest_marker("long") and not config.getoption("--all"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: scripts/test --all runs it"))


@pytest.fixture(scope="session", autouse=True)
def _sandbox():
    """Takes down what the tests brought up, and what an earlier run that was killed left."""
    if os.geteuid():
        pytest.skip("sandbox hosts need root")
    with Path("/run/blackwell-sandbox-deploy.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.exit("another run of the deployment tests is under way on this machine", returncode=2)
        api.down(settings=SETTINGS)
        yield
        api.down(settings=SETTINGS)


@pytest.fixture(scope="session")
def fresh():
    """A host that nothing was deployed to, until the first test of the deployment does."""
    return make("fresh")


@pytest.fixture(scope="session")
def deployed(fresh):
    """A host with a deployment that runs, as the inventory asks for it."""
    if not fresh.ready:
        done = fresh.play()
        assert done.returncode == 0, done.output
    return fresh


@pytest.fixture(scope="session")
def second():
    """Another fresh host."""
    return make("second")


@pytest.fixture(scope="session")
def key(tmp_path_factory):
    made = driver_packages.Key.make(tmp_path_factory.mktemp("key") / "gnupg")
    yield made
    made.discard()


@pytest.fixture(scope="session")
def repositories(key, tmp_path_factory):
    """NVIDIA's repository at two times: ``after`` has a newer version of the branch than ``before``."""
    root = tmp_path_factory.mktemp("repositories")
    for name, versions in {
        "before": (driver_packages.OLD, driver_packages.NEXT),
        "after": (driver_packages.OLD, driver_packages.NEW, driver_packages.NEXT),
    }.items():
        driver_packages.repository(root / name, key, *versions)
        driver_packages.keyring(root / name, key, metal.ARCHIVE)
    return root
