"""The sandbox's bridge, and each host's network namespace with a link to it."""

from pathlib import Path

from blackwell.sandbox import addresses, firewall, mounts
from blackwell.sandbox.commands import run, run_json
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.records import Record
from blackwell.sandbox.settings import Settings


def links() -> set[str]:
    """Names of this machine's network links."""
    return {link["ifname"] for link in run_json("ip", "-json", "link", "show")}


def ensure(settings: Settings) -> None:
    """Make the bridge, its address and the packet filter rules, as far as they are missing.

    Raises SandboxError when this machine already reaches something else under the network's addresses.
    """
    routes = run_json("ip", "-json", "-4", "route", "show", "table", "main")
    conflict = addresses.conflict(settings.network, routes, settings.bridge)
    if conflict:
        taken = f"{settings.network} is in use on this machine ({conflict})"
        raise SandboxError(f"{taken}: set BLACKWELL_SANDBOX_NET to a free private network")
    bridge = settings.bridge
    if bridge not in links():
        run("ip", "link", "add", bridge, "mtu", str(_mtu(routes)), "type", "bridge")
    # Hosts could otherwise announce themselves to this machine as an IPv6 router.
    switch = Path(f"/proc/sys/net/ipv6/conf/{bridge}/disable_ipv6")
    if switch.exists():
        switch.write_text("1")
    own = f"{addresses.gateway(settings.network)}/{settings.network.prefixlen}"
    run("ip", "address", "replace", own, "dev", bridge)
    run("ip", "link", "set", bridge, "up")
    firewall.apply(settings)


def _mtu(routes: list[dict]) -> int:
    """The largest packet, in bytes, that the way out takes: a host that sends larger ones would wait for answers that
    never come.
    """
    outward = [route["dev"] for route in routes if route["dst"] == "default" and "dev" in route]
    return run_json("ip", "-json", "link", "show", "dev", outward[0])[0]["mtu"] if outward else 1500


def remove(settings: Settings) -> None:
    """Remove bridge, rules and the change to forwarding, and links that no host on record owns; safe when they are
    not there.
    """
    for link in links():
        if link.startswith(f"{settings.bridge}-"):
            run("ip", "link", "delete", link)
    if settings.bridge in links():
        run("ip", "link", "delete", settings.bridge)
    firewall.withdraw(settings)


def ensure_host(settings: Settings, record: Record) -> None:
    """Make the host's network namespace and its link to the bridge, unless both are there."""
    namespace, link = settings.namespace(record.name), settings.link(record.ip)
    if mounts.at(namespace) and link in links():
        return
    remove_host(settings, record.name, link)
    namespace.touch()
    # A file of ours instead of `ip netns add`, which would leave a mount on /run/netns behind for good.
    run("unshare", f"--net={namespace}", "true")
    mtu = run_json("ip", "-json", "link", "show", "dev", settings.bridge)[0]["mtu"]
    size = ("mtu", str(mtu))
    run("ip", "link", "add", link, *size, "type", "veth", "peer", "name", "eth0", *size, "netns", str(namespace))
    run("ip", "link", "set", link, "master", settings.bridge, "up")
    inside = f"""\
link set lo up
address add {record.address}/{settings.network.prefixlen} broadcast + dev eth0
link set eth0 up
route add default via {addresses.gateway(settings.network)}
"""
    run("nsenter", f"--net={namespace}", "ip", "-batch", "-", stdin=inside)


def remove_host(settings: Settings, name: str, link: str | None) -> None:
    """Remove the host's link and namespace; safe when they are not there."""
    if link in links():
        run("ip", "link", "delete", str(link))
    namespace = settings.namespace(name)
    for mount in mounts.at(namespace):
        run("umount", mount.target)
    namespace.unlink(missing_ok=True)
