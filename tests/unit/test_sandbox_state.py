"""What is on disk: records, known_hosts, mounts, and the name servers that hosts get."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from blackwell.sandbox import api, mounts, records, resolver, ssh
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.settings import Settings

WEB = records.Record("web", "10.213.0.2", "bookworm", "/image", "ssh-ed25519 AAAA", made=True)


@pytest.fixture
def here(tmp_path):
    return Settings(tmp_path / "run", tmp_path / "cache", IPv4Network("10.213.0.0/24"))


def test_records_come_back_as_they_were_written_in_natural_order(here):
    numbered = [records.Record(f"sandbox{number}", f"10.213.0.{number}", "trixie", "/i") for number in (1, 2, 10)]
    for record in reversed(numbered):
        records.write(here, record)
    assert records.read(here) == numbered


def test_a_host_directory_without_a_record_is_no_host(here):
    here.host("half").mkdir(parents=True)
    assert records.read(here) == []


def test_without_any_state_there_are_no_hosts(here):
    assert api.hosts(settings=here) == ()


def test_states_tell_made_from_half_made(here):
    records.write(here, WEB)
    records.write(here, records.Record("half", "10.213.0.3", "bookworm", "/image"))
    assert {host.name: host.state for host in api.hosts(settings=here)} == {"web": api.STOPPED, "half": api.HALF_MADE}


def test_ssh_to_a_host_that_is_not_up_says_what_to_do(here):
    records.write(here, WEB)
    with pytest.raises(SandboxError, match="web is stopped: run scripts/sandbox up web"):
        api.ssh_command("web", settings=here)


def test_an_unknown_host_is_answered_with_those_that_exist(here):
    records.write(here, WEB)
    with pytest.raises(SandboxError, match="unknown host 'wbe': there is web"):
        api.host("wbe", settings=here)


def test_known_hosts_pins_hosts_whose_key_is_made_and_no_others():
    unmade = records.Record("half", "10.213.0.3", "bookworm", "/image")
    assert ssh.known_hosts([WEB, unmade]) == "10.213.0.2 ssh-ed25519 AAAA\n"


def test_mounts_are_read_with_their_escapes():
    found = mounts.parse("bwsbx1-web /run/a\\040b overlay rw,lowerdir=/x 0 0\n")
    assert found == (mounts.Mount("bwsbx1-web", "/run/a b", "overlay", ("rw", "lowerdir=/x")),)


def test_mounts_below_a_path_do_not_include_its_namesakes(monkeypatch):
    text = "a /x/y a rw 0 0\nb /x/yz b rw 0 0\nc /x/y/z c rw 0 0\n"
    monkeypatch.setattr(mounts, "current", lambda: mounts.parse(text))
    assert [mount.target for mount in mounts.at(Path("/x/y"))] == ["/x/y/z", "/x/y"]


@pytest.mark.parametrize(
    ("text", "usable"),
    [
        ("nameserver 192.0.2.53\nsearch example\n", True),
        ("nameserver fe80::1%eth0\n", True),
        ("nameserver 127.0.0.53\noptions edns0\n", False),
        ("nameserver ::1\n", False),
        ("# nameserver 192.0.2.53\n", False),
        ("", False),
    ],
)
def test_name_servers_on_loopback_are_no_use_to_a_host(text, usable):
    assert resolver.reachable(text) is usable


def test_behind_a_loopback_server_systemds_own_list_is_taken(tmp_path, monkeypatch):
    (tmp_path / "stub").write_text("nameserver 127.0.0.53\n")
    (tmp_path / "real").write_text("nameserver 192.0.2.53\n")
    monkeypatch.setattr(resolver, "CANDIDATES", (tmp_path / "stub", tmp_path / "real"))
    assert resolver.configuration() == "nameserver 192.0.2.53\n"
    (tmp_path / "real").unlink()
    with pytest.raises(SandboxError, match="no name server"):
        resolver.configuration()
