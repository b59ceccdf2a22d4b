"""Settings: names that several sandboxes give to things in one kernel."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from blackwell.sandbox import settings
from blackwell.sandbox.errors import SandboxError

HERE = settings.Settings(Path("/run/one"), Path("/cache/sandbox"), IPv4Network("10.213.0.0/24"))


def test_interface_names_fit_the_kernels_limit():
    # IFNAMSIZ is 16 with the closing zero (netdevice(7)).
    assert len(HERE.link(IPv4Address("10.213.0.254"))) <= 15


@pytest.mark.parametrize("change", [{"run": Path("/run/two")}, {"processes": HERE.processes + 1}])
def test_sandboxes_in_other_directories_or_containers_share_no_name(change):
    other = replace(HERE, **change)
    assert HERE.bridge != other.bridge
    assert HERE.machine("a") != other.machine("a")
    assert HERE.layers != other.layers


def test_every_name_in_the_kernel_carries_the_prefix():
    made = (HERE.bridge, HERE.machine("a"), HERE.link(IPv4Address("10.213.0.2")))
    assert all(name.startswith(settings.PREFIX) for name in made)


def test_the_environment_names_the_sandbox(monkeypatch):
    monkeypatch.setenv("BLACKWELL_SANDBOX_RUN", "/run/other")
    monkeypatch.setenv("BLACKWELL_SANDBOX_NET", "10.9.0.0/28")
    monkeypatch.setenv("BLACKWELL_CACHE", "/somewhere")
    found = settings.from_environment()
    assert (found.run, found.network, found.cache) == (
        Path("/run/other"),
        IPv4Network("10.9.0.0/28"),
        Path("/somewhere/sandbox"),
    )


@pytest.mark.parametrize("variable", ["BLACKWELL_SANDBOX_RUN", "BLACKWELL_CACHE"])
@pytest.mark.parametrize("path", ["/run/a b", "/run/a,b", "/run/a:b", "/run/a\\b", "/run/a'b"])
def test_directories_that_mount_or_ssh_would_take_apart_are_refused(monkeypatch, variable, path):
    monkeypatch.setenv(variable, path)
    with pytest.raises(SandboxError, match=variable):
        settings.from_environment()
