import os
import socket
from dataclasses import replace

import paramiko
import pytest
import ssh_server

from blackwell import remote, sweep_package
from blackwell.host_errors import HostError
from blackwell.inventory import Host


def generate(path, passphrase=None):
    key = paramiko.ECDSAKey.generate(bits=256)
    key.write_private_key_file(str(path), passphrase)
    return key


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A key that the server lets in, one that it does not, one with a passphrase, and the server's own."""
    directory = tmp_path_factory.mktemp("keys")
    for name in ("right", "wrong", "server", "other"):
        generate(directory / name)
    generate(directory / "locked", "secret")
    return directory


@pytest.fixture(scope="module")
def server(keys):
    host_key = paramiko.ECDSAKey.from_private_key_file(str(keys / "server"))
    accepted = paramiko.ECDSAKey.from_private_key_file(str(keys / "right"))
    with ssh_server.serving(host_key, accepted) as running:
        yield running


@pytest.fixture(autouse=True)
def _no_agent(monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def known_hosts_line(name, key):
    return f"{name} {key.get_name()} {key.get_base64()}\n"


@pytest.fixture
def host(server, keys, tmp_path):
    """The server as an inventory has it, with its host key pinned."""
    pinned = tmp_path / "known_hosts"
    pinned.write_text(known_hosts_line(f"[127.0.0.1]:{server.port}", server.key))
    return Host(
        "box",
        "127.0.0.1",
        server.port,
        "tester",
        keys / "right",
        ("-F", "none", "-o", f"UserKnownHostsFile={pinned}", "-o", "GlobalKnownHostsFile=none"),
    )


def refusal(host):
    with pytest.raises(HostError) as caught, remote.connect(host):
        pass
    return str(caught.value)


def test_the_function_runs_on_the_host_with_its_arguments(host):
    with remote.connect(host) as connection:
        answer = remote.call(connection, host, "bound", arguments=["--host", "0.0.0.0", "--port", "30000"])
    assert answer == {"host": "127.0.0.1", "port": 30000}


def test_arguments_longer_than_a_command_line_arrive(host):
    text = "ü" * 300_000
    with remote.connect(host) as connection:
        assert remote.call(connection, host, "message", entry={"MESSAGE": text}) == text


def test_what_fails_on_the_host_is_one_sentence(host):
    with (
        remote.connect(host) as connection,
        pytest.raises(HostError, match=r"^box: python3 failed on the host: KeyErr"),
    ):
        remote.call(connection, host, "nothing")


def test_output_is_handed_on_whole(host):
    pieces = []
    with remote.connect(host) as connection:
        remote.stream(connection, host, ["seq", "20000"], pieces.append)
    assert b"".join(pieces).split() == [str(number).encode() for number in range(1, 20001)]


def test_a_command_that_fails_says_why(host):
    with (
        remote.connect(host) as connection,
        pytest.raises(HostError, match=r"box: ls failed on the host: ls: .*nowhere"),
    ):
        remote.stream(connection, host, ["ls", "/nowhere"], print)


def test_an_unpinned_host_is_refused_with_its_fingerprint(host, server, tmp_path):
    (tmp_path / "known_hosts").write_text("")
    said = refusal(host)
    assert said.startswith(f"box: {tmp_path}/known_hosts pins no host key of [127.0.0.1]:{server.port}")
    assert server.key.fingerprint in said


def test_a_known_hosts_file_that_is_not_there_pins_nothing(host, tmp_path):
    (tmp_path / "known_hosts").unlink()
    assert "pins no host key" in refusal(host)


def test_strict_checking_cannot_be_turned_off(host, tmp_path):
    (tmp_path / "known_hosts").write_text("")
    assert "pins no host key" in refusal(replace(host, ssh_args=(*host.ssh_args, "-o", "StrictHostKeyChecking=no")))


def test_a_changed_host_key_is_refused_with_both_fingerprints(host, server, keys, tmp_path):
    other = paramiko.ECDSAKey.from_private_key_file(str(keys / "other"))
    (tmp_path / "known_hosts").write_text(known_hosts_line(f"[127.0.0.1]:{server.port}", other))
    said = refusal(host)
    assert said.startswith(f"box: the host key of [127.0.0.1]:{server.port} has changed: {tmp_path}/known_hosts pins")
    assert other.fingerprint in said
    assert server.key.fingerprint in said


def test_the_key_of_another_port_does_not_count(host, server, tmp_path):
    (tmp_path / "known_hosts").write_text(known_hosts_line("127.0.0.1", server.key))
    assert "pins no host key" in refusal(host)


def test_a_host_key_may_be_pinned_under_an_alias(host, server, tmp_path):
    (tmp_path / "known_hosts").write_text(known_hosts_line("alias", server.key))
    named = replace(host, ssh_args=(*host.ssh_args, "-o", "HostKeyAlias=alias"))
    with remote.connect(named) as connection:
        assert connection.is_connected


def test_a_key_that_the_host_does_not_know(host, keys):
    assert refusal(replace(host, identity=keys / "wrong")) == (
        f"box: 127.0.0.1 does not let tester in with {keys}/wrong"
    )


def test_a_user_that_the_host_does_not_know(host, keys):
    assert refusal(replace(host, user="nobody")) == f"box: 127.0.0.1 does not let nobody in with {keys}/right"


def test_a_key_with_a_passphrase(host, keys):
    assert refusal(replace(host, identity=keys / "locked")).endswith(
        f"; {keys}/locked has a passphrase: give it to the agent first (ssh-add)"
    )


def test_a_key_that_is_not_there(host, keys):
    assert refusal(replace(host, identity=keys / "none")) == (
        f"box: the SSH key to log in with, {keys}/none, cannot be read: No such file or directory"
    )


def test_a_file_that_is_no_key(host, tmp_path):
    assert refusal(replace(host, identity=tmp_path / "known_hosts")).endswith("known_hosts, is not a private key")


def test_nobody_listens(host):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert refusal(replace(host, port=port)) == f"box: 127.0.0.1 port {port} is not reachable: Connection refused"


def test_something_that_is_no_ssh_server(host):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        quiet = replace(host, port=port, ssh_args=(*host.ssh_args, "-o", "ConnectTimeout=1"))
        assert refusal(quiet).startswith(f"box: 127.0.0.1 port {port} does not talk SSH, or not within 1 s (")


def test_a_name_that_does_not_resolve(host):
    assert refusal(replace(host, address="box.invalid")).startswith(
        f"box: box.invalid port {host.port} is not reachable: the name does not resolve"
    )


def test_a_proxy_command_that_fails_is_named(host):
    through = replace(host, ssh_args=(*host.ssh_args, "-o", "ProxyCommand=false", "-o", "ConnectTimeout=1"))
    assert "'false'" in refusal(through)


def test_sudo_only_where_the_inventory_asks_for_another_user():
    asked = Host("box", "127.0.0.1", become=True)
    assert remote.elevated(asked, "ops", ["ls", "a b"]) == "sudo -n -u root -- ls 'a b'"
    assert remote.elevated(asked, "root", ["ls"]) == "ls"
    assert remote.elevated(replace(asked, become=False), "ops", ["ls"]) == "ls"


def test_a_refused_sudo_is_told(host, tmp_path, monkeypatch):
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    ops = replace(host, become=True)
    with remote.connect(ops) as connection, pytest.raises(HostError) as caught:
        remote.call(connection, ops, "unit")
    assert str(caught.value) == "box: tester cannot become root with sudo, without a password: a password is required"


def test_a_packed_program_runs_by_the_host_s_own_python(host):
    with remote.connect(host) as connection:
        answer = remote.call_packed(connection, host, sweep_package.packed(), "list")
    assert isinstance(answer["runs"], list)


def test_what_a_packed_program_refuses_is_one_sentence(host):
    with remote.connect(host) as connection, pytest.raises(remote.RefusedError) as caught:
        remote.call_packed(connection, host, sweep_package.packed(), "remove", run="none-of-these")
    assert str(caught.value).startswith("box: there is no run")
