"""Addresses: which networks are accepted, which address a host gets, and when the network is taken."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from blackwell.sandbox import addresses
from blackwell.sandbox.errors import SandboxError

NET = IPv4Network("10.213.0.0/29")


@pytest.mark.parametrize("text", ["8.8.8.0/24", "10.0.0.0/16", "10.0.0.0/30", "10.213.0.1/24", "fd00::/64", "nonsense"])
def test_networks_that_cannot_hold_the_sandbox_are_refused(text):
    with pytest.raises(SandboxError, match="BLACKWELL_SANDBOX_NET"):
        addresses.network(text)


def test_the_default_network_is_accepted():
    assert addresses.network(addresses.DEFAULT) == IPv4Network("10.213.0.0/24")


def test_the_lowest_free_address_is_given_and_never_the_gateway():
    assert addresses.free(NET, []) == IPv4Address("10.213.0.2")
    assert addresses.free(NET, [IPv4Address("10.213.0.2"), IPv4Address("10.213.0.4")]) == IPv4Address("10.213.0.3")


def test_a_full_network_is_an_error():
    with pytest.raises(SandboxError, match="no address is left"):
        addresses.free(NET, [IPv4Address(f"10.213.0.{last}") for last in range(2, 7)])


@pytest.mark.parametrize("taken", ["10.213.0.0/24", "10.213.0.4/32", "10.0.0.0/8"])
def test_a_route_that_overlaps_is_a_conflict(taken):
    assert addresses.conflict(NET, [{"dst": taken, "dev": "tun0"}], "bwsbx1") == f"{IPv4Network(taken)} on tun0"


def test_default_routes_other_networks_and_the_own_bridge_are_no_conflict():
    routes = [
        {"dst": "default", "dev": "eth0"},
        {"dst": "0.0.0.0/1", "dev": "tun0"},
        {"dst": "192.0.2.0/24", "dev": "eth0"},
        {"dst": "10.213.0.0/29", "dev": "bwsbx1"},
    ]
    assert addresses.conflict(NET, routes, "bwsbx1") is None
