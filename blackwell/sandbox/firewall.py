"""Packet filter rules: the sandbox is reachable from this machine only, and this machine routes for nothing but
sandboxes.

Each sandbox has an nft table named after its bridge. Address translation to the outside needs net.ipv4.ip_forward;
where that was off, a table shared by all sandboxes drops whatever else would be forwarded, and the last sandbox puts
back what was there before.
"""

import json
import os
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path

from blackwell import locks
from blackwell.sandbox.commands import run, run_json
from blackwell.sandbox.settings import PREFIX, Settings

GUARD = f"{PREFIX}_guard"

FORWARDING = Path("/run/blackwell-forwarding.json")
"""What was there before the first sandbox of this machine, while any sandbox has changed it; shared by sandboxes with
different state directories.
"""

IPV4 = Path("/proc/sys/net/ipv4")


def sandbox_rules(bridge: str, net: IPv4Network) -> str:
    """The nft input that puts one sandbox's table in place, whether or not it is there.

    The chain runs before the usual filter chains (priority 0), so that theirs see only what is allowed here.
    """
    return f"""\
table inet {bridge}
delete table inet {bridge}
table inet {bridge} {{
  chain forward {{
    type filter hook forward priority -10; policy accept;
    iifname "{bridge}" oifname "{bridge}" accept
    iifname "{bridge}" ip saddr {net} accept
    oifname "{bridge}" ct state established,related accept
    iifname "{bridge}" drop
    oifname "{bridge}" drop
  }}
  chain postrouting {{
    type nat hook postrouting priority 100; policy accept;
    ip saddr {net} oifname != "{bridge}" masquerade
  }}
}}
"""


def guard_rules() -> str:
    """The nft input that puts the shared table in place: forward for sandboxes only."""
    return f"""\
table inet {GUARD}
delete table inet {GUARD}
table inet {GUARD} {{
  chain forward {{
    type filter hook forward priority 0; policy accept;
    iifname "{PREFIX}*" accept
    oifname "{PREFIX}*" accept
    drop
  }}
}}
"""


def removal(table: str) -> str:
    """The nft input that removes a table, whether or not it is there."""
    return f"table inet {table}\ndelete table inet {table}\n"


@dataclass(frozen=True)
class Forwarding:
    """Kernel switches that turning on forwarding changes: the kernel rewrites the second when the first is written
    (inet_forward_change in devinet.c).
    """

    ip_forward: str
    accept_redirects: str


def _switches() -> Forwarding:
    return Forwarding(
        (IPV4 / "ip_forward").read_text().strip(), (IPV4 / "conf/all/accept_redirects").read_text().strip()
    )


def apply(settings: Settings) -> None:
    """Put this sandbox's rules and the shared guard in place, and turn on forwarding; safe to repeat."""
    run("nft", "-f", "-", stdin=sandbox_rules(settings.bridge, settings.network))
    with locks.held(FORWARDING) as handle:
        changed = FORWARDING.stat().st_size > 0
        before = _switches()
        if not changed and before.ip_forward == "1":
            FORWARDING.unlink()
            return
        if not changed:
            # On disk before the change, so that a crash between the two loses nothing.
            os.write(handle, json.dumps(asdict(before)).encode())
            os.fsync(handle)
        run("nft", "-f", "-", stdin=guard_rules())
        if before.ip_forward != "1":
            (IPV4 / "ip_forward").write_text("1")


def withdraw(settings: Settings) -> None:
    """Remove this sandbox's rules; with the last sandbox on this machine the guard and the change to forwarding too."""
    run("nft", "-f", "-", stdin=removal(settings.bridge))
    with locks.held(FORWARDING):
        text = FORWARDING.read_text()
        if not text:
            FORWARDING.unlink()
        elif not others(settings):
            before = Forwarding(**json.loads(text))
            (IPV4 / "ip_forward").write_text(before.ip_forward)
            (IPV4 / "conf/all/accept_redirects").write_text(before.accept_redirects)
            run("nft", "-f", "-", stdin=removal(GUARD))
            FORWARDING.unlink()


def dropping(listing: dict) -> list[str]:
    """Tables of others that drop forwarded packets by default, from what ``nft --json list chains`` prints."""
    chains = [entry["chain"] for entry in listing["nftables"] if "chain" in entry]
    return [
        f"{chain['family']} {chain['table']}"
        for chain in chains
        if chain.get("hook") == "forward" and chain.get("policy") == "drop"
    ]


def warning() -> str | None:
    """A sentence for the user when another packet filter may cut hosts off from the outside (Docker's and ufw's do),
    else None.
    """
    found = dropping(json.loads(run("nft", "--json", "list", "chains")))
    tables = ", ".join(found)
    return f"this machine's packet filter ({tables}) may keep hosts from reaching the outside" if found else None


def others(settings: Settings) -> list[str]:
    """Bridges of other sandboxes on this machine."""
    names = [link["ifname"] for link in run_json("ip", "-json", "link", "show", "type", "bridge")]
    return [name for name in names if name.startswith(PREFIX) and name != settings.bridge]
