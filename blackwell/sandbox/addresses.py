"""Addresses of the sandbox: which network, and which host has which address."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network

from blackwell.sandbox.errors import SandboxError

DEFAULT = "10.213.0.0/24"


def network(text: str) -> IPv4Network:
    """The network that a text such as ``10.213.0.0/24`` names.

    Raises SandboxError unless it is a private IPv4 network of 8 to 256 addresses: interface names carry the last octet.
    """
    try:
        found = IPv4Network(text)
    except ValueError as error:
        raise SandboxError(f"BLACKWELL_SANDBOX_NET is not an IPv4 network: {error}") from error
    if not found.is_private or not 24 <= found.prefixlen <= 29:
        raise SandboxError(f"BLACKWELL_SANDBOX_NET must be a private network from /24 to /29, not {found}")
    return found


def gateway(net: IPv4Network) -> IPv4Address:
    """This machine's address on the sandbox's bridge: the first of the network."""
    return net.network_address + 1


def free(net: IPv4Network, taken: Iterable[IPv4Address]) -> IPv4Address:
    """The lowest address that no host has.

    Raises SandboxError when the network is full.
    """
    unavailable = {gateway(net), *taken}
    for address in net.hosts():
        if address not in unavailable:
            return address
    raise SandboxError(f"no address is left in {net}: take hosts down or set BLACKWELL_SANDBOX_NET to a larger network")


def conflict(net: IPv4Network, routes: list[dict], bridge: str) -> str | None:
    """The first route of this machine that overlaps the network, as a short text, or None.

    ``routes`` is what ``ip -json -4 route show table main`` prints. Default routes do not count, nor their two halves
    (0.0.0.0/1 and 128.0.0.0/1), which VPN clients set instead.
    """
    for route in routes:
        if route["dst"] == "default" or route.get("dev") == bridge:
            continue
        other = IPv4Network(route["dst"])
        if other.prefixlen > 1 and other.overlaps(net):
            return f"{other} on {route.get('dev', 'another route')}"
    return None
