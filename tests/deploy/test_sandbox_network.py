"""Reachable from this machine only, and forwarding put back.

In a network namespace that plays the machine, so that no real one changes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from blackwell import paths
from blackwell.sandbox.commands import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

HOST, GATEWAY, OUTSIDE, OTHER_SIDE = "10.213.3.2", "10.213.3.1", "192.0.2.2", "198.51.100.2"

SETUP = """
mount -t tmpfs tmpfs /run
ip link set lo up
for side in outside:192.0.2 other:198.51.100; do
  name=${side%:*} net=${side#*:}
  ip netns add $name
  ip link add $name type veth peer name eth0 netns $name
  ip address add $net.1/24 dev $name
  ip link set $name up
  ip -n $name address add $net.2/24 dev eth0
  ip -n $name link set eth0 up
  ip -n $name route add default via $net.1
done
ip route add default via 192.0.2.2
echo 0 >/proc/sys/net/ipv4/ip_forward
echo 0 >/proc/sys/net/ipv4/conf/all/accept_redirects
"""

# Answers each connection with the address that it comes from.
SERVER = """
import socket
with socket.create_server(("", 7000)) as server:
    while True:
        connection, peer = server.accept()
        with connection:
            connection.sendall(peer[0].encode())
"""

CLIENT = """
import socket, sys
try:
    with socket.create_connection((sys.argv[1], 7000), 0.5) as connection:
        print(connection.recv(99).decode())
except OSError:
    print("unreachable")
"""

SANDBOX = """
import sys
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from blackwell.sandbox import firewall, network, settings
from blackwell.sandbox.records import Record
one = settings.Settings(Path("/run/one"), Path("/nowhere"), IPv4Network("10.213.3.0/24"))
two = settings.Settings(Path("/run/two"), Path("/nowhere"), IPv4Network("10.213.4.0/24"))
host = Record("t-host", "10.213.3.2", "bookworm", "/nowhere")
"""


class Machine:
    """A network and mount namespace with two neighbours, ``outside`` (the way out) and ``other``."""

    def __init__(self, pid):
        self.enter = ["nsenter", f"--target={pid}", "--net", "--mount"]

    def run(self, *command):
        return subprocess.run(
            [*self.enter, *command], cwd=paths.ROOT, check=True, capture_output=True, text=True
        ).stdout.strip()

    def sandbox(self, code):
        self.run("env", f"PYTHONPATH={paths.ROOT}", sys.executable, "-c", SANDBOX + code)

    def inside(self, place):
        """The command prefix that enters the machine itself, a neighbour, or the sandbox's host."""
        where = {"machine": [], "host": ["nsenter", "--net=/run/one/hosts/t-host/network"]}
        return [*self.enter, *where.get(place, ["ip", "netns", "exec", place])]

    def reach(self, place, address):
        """What a server at the address says to a client at the place."""
        return subprocess.run(
            [*self.inside(place), "python3", "-c", CLIENT, address], check=True, capture_output=True, text=True
        ).stdout.strip()

    def switches(self):
        return self.run("cat", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/all/accept_redirects").split()

    def tables(self):
        listing = json.loads(self.run("nft", "--json", "list", "tables"))["nftables"]
        return [entry["table"]["name"] for entry in listing if "table" in entry]


@pytest.fixture
def machine():
    command = ["setpriv", "--pdeathsig=KILL", "unshare", "--net", "--mount", "sleep", "infinity"]
    with subprocess.Popen(command) as process:
        try:
            own = Path("/proc/self/ns/net").readlink()
            assert wait_until(lambda: Path(f"/proc/{process.pid}/ns/net").readlink() != own, 5)
            found = Machine(process.pid)
            found.run("sh", "-ec", SETUP)
            yield found
        finally:
            process.kill()


@pytest.fixture
def neighbourhood(machine):
    """The machine with the sandbox's network up, and a server at every place."""
    machine.sandbox("one.host('t-host').mkdir(parents=True); network.ensure(one); network.ensure_host(one, host)")
    servers = [
        subprocess.Popen(["setpriv", "--pdeathsig=KILL", *machine.inside(place), "python3", "-c", SERVER])
        for place in ("host", "outside", "other")
    ]
    try:
        for address in (HOST, OUTSIDE, OTHER_SIDE):
            assert wait_until(lambda address=address: machine.reach("machine", address) != "unreachable", 10)
        yield machine
    finally:
        for server in servers:
            server.kill()
            server.wait()


def test_who_reaches_whom(neighbourhood):
    allowed = {("machine", HOST): GATEWAY, ("host", OUTSIDE): "192.0.2.1", ("host", OTHER_SIDE): "198.51.100.1"}
    refused = [("outside", HOST), ("other", HOST), ("outside", OTHER_SIDE), ("other", OUTSIDE)]
    assert {way: neighbourhood.reach(*way) for way in allowed} == allowed
    assert {way: neighbourhood.reach(*way) for way in refused} == dict.fromkeys(refused, "unreachable")
    # Without the rules the same ways are open: it is they that close them.
    neighbourhood.run("nft", "flush", "ruleset")
    assert "unreachable" not in [neighbourhood.reach(*way) for way in refused]


def test_forwarding_is_put_back_by_the_last_sandbox(machine):
    assert machine.switches() == ["0", "0"]
    machine.sandbox("network.ensure(one); network.ensure(one); network.ensure(two)")
    assert machine.switches()[0] == "1"
    machine.sandbox("network.remove(one)")
    assert machine.switches()[0] == "1"
    assert len(machine.tables()) == 2
    machine.sandbox("network.remove(two)")
    assert machine.switches() == ["0", "0"]
    assert machine.tables() == []
    assert machine.run("ls", "/run") == "netns"


def test_forwarding_that_was_on_stays_on_and_unguarded(machine):
    machine.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    machine.sandbox("network.ensure(one)")
    assert machine.tables() == machine.run("ip", "-o", "link", "show", "type", "bridge").split()[1].rstrip(":").split()
    machine.sandbox("network.remove(one)")
    assert machine.switches()[0] == "1"


@pytest.mark.parametrize("lost", ["echo 0 >/proc/sys/net/ipv4/ip_forward", "nft flush ruleset"])
def test_what_a_crash_or_another_program_undid_is_put_in_place_again_and_put_back(machine, lost):
    machine.sandbox("network.ensure(one)")
    machine.run("sh", "-c", lost)
    machine.sandbox("network.ensure(one)")
    assert machine.switches()[0] == "1"
    assert len(machine.tables()) == 2
    machine.sandbox("network.remove(one)")
    assert machine.switches() == ["0", "0"]
