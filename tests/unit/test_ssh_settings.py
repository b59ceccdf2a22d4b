from pathlib import Path

import pytest

from blackwell import ssh_settings
from blackwell.host_errors import HostError
from blackwell.inventory import Host


def settings(*ssh_args, **fields):
    host = Host("gpu1", "gpu1.example.com", ssh_args=("-F", "none", *ssh_args), **fields)
    return ssh_settings.effective("gpu1", ssh_settings.arguments(host))


def test_where_and_as_whom(tmp_path):
    # ssh leaves out a key that is not there.
    identity = tmp_path / "ops"
    identity.touch()
    found = settings(port=2222, user="ops", identity=identity)
    assert (found.host, found.port, found.user, found.identities) == (
        "gpu1.example.com",
        2222,
        "ops",
        (identity,),
    )


def test_known_hosts_of_the_inventory_replace_the_users():
    files = settings("-o", "UserKnownHostsFile=/keys/a /keys/b", "-oGlobalKnownHostsFile=none").known_hosts
    assert files == (Path("/keys/a"), Path("/keys/b"))


def test_ways_through_other_hosts():
    assert settings("-J", "ops@bastion:23,inner").jumps == ("ops@bastion:23", "inner")
    assert settings("-o", "ProxyCommand=nc %h %p").proxy_command == "nc %h %p"
    direct = settings()
    assert (direct.jumps, direct.proxy_command) == ((), None)


def test_only_the_keys_that_are_named():
    assert settings("-o", "IdentitiesOnly=yes").identities_only
    assert not settings().identities_only


def test_time_to_connect():
    assert settings("-o", "ConnectTimeout=3").timeout == 3
    assert settings().timeout == ssh_settings.CONNECT_SECONDS


@pytest.mark.parametrize(
    ("ssh_args", "port", "name"),
    [
        ((), None, "gpu1.example.com"),
        ((), 2222, "[gpu1.example.com]:2222"),
        (("-o", "HostKeyAlias=box"), 2222, "box"),
    ],
)
def test_name_in_known_hosts(ssh_args, port, name):
    assert settings(*ssh_args, port=port).host_key_name == name


def test_a_jump_host_has_the_configuration_file_and_no_option_of_the_host(tmp_path):
    configuration = tmp_path / "config"
    configuration.write_text("Host bastion\n  HostName 10.0.0.9\n  UserKnownHostsFile /keys/bastion\n")
    words = ssh_settings.hop_arguments("ops@bastion:23", ("-F", str(configuration), "-o", "UserKnownHostsFile=/keys/a"))
    found = ssh_settings.effective("bastion", words)
    assert (found.host, found.port, found.user, found.known_hosts[0]) == ("10.0.0.9", 23, "ops", Path("/keys/bastion"))


def test_what_ssh_does_not_take_is_told():
    with pytest.raises(HostError, match=r"gpu1: ssh does not take its settings: .*Bad configuration option: wrong"):
        settings("-o", "Wrong=yes")


def test_a_name_is_configured_if_the_users_file_has_a_way_to_it(tmp_path, monkeypatch):
    fake = tmp_path / "ssh"
    fake.write_text('#!/bin/sh\nexec /usr/bin/ssh -F %s "$@"\n' % (tmp_path / "config"))
    fake.chmod(0o755)
    (tmp_path / "config").write_text("Host gpu9\n  HostName 10.0.0.9\nHost gpu8\n  ProxyJump bastion\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert ssh_settings.configured("gpu9")
    assert ssh_settings.configured("gpu8")
    assert not ssh_settings.configured("gpu7")
