"""The Ansible inventory: its content, and the script's answer when no host is up."""

import os
import shlex
import subprocess
import sys
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from blackwell import paths
from blackwell.sandbox import inventory
from blackwell.sandbox.records import Record
from blackwell.sandbox.settings import Settings

SCRIPT = paths.ROOT / "inventory/sandbox/hosts.py"
HERE = Settings(Path("/run/one"), Path("/cache"), IPv4Network("10.213.0.0/24"))


def test_hosts_are_in_the_group_that_the_deployment_targets():
    hosts = [Record(name, f"10.213.0.{last}", "bookworm", "/i", made=True) for name, last in (("a", 2), ("b", 3))]
    answer = inventory.inventory(HERE, hosts, Path("/wheels.tar"))
    assert answer["sglang_hosts"] == {"hosts": ["a", "b"], "vars": {"sglang_wheelhouse": "/wheels.tar"}}
    assert set(answer["_meta"]["hostvars"]) == {"a", "b"}


def test_ansible_takes_the_pinned_host_key_and_nothing_of_the_users_configuration():
    found = inventory.host_variables(HERE, Record("a", "10.213.0.2", "bookworm", "/i", made=True))
    assert found["ansible_host"] == "10.213.0.2"
    assert found["ansible_user"] == "root"
    assert found["ansible_ssh_private_key_file"] == "/run/one/id_ed25519"
    assert shlex.split(found["ansible_ssh_common_args"]) == [
        "-F", "none",
        "-o", "UserKnownHostsFile=/run/one/known_hosts",
        "-o", "StrictHostKeyChecking=yes",
        "-o", "IdentitiesOnly=yes",
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [["--list"], ["--host", "a"]])
def test_without_a_host_the_script_fails_with_one_sentence(tmp_path, arguments):
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        env=os.environ | {"BLACKWELL_SANDBOX_RUN": str(tmp_path / "none")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "no sandbox host is up: run scripts/sandbox up\n")


def test_the_script_is_executable_as_ansible_requires():
    assert os.access(SCRIPT, os.X_OK)


def test_ansible_cannot_take_the_failed_scripts_text_for_hosts():
    # Ansible's ini plugin splits each line like this and gives up at the first that it cannot.
    lines = [line for line in SCRIPT.read_text().splitlines() if line and not line.startswith("#")]
    with pytest.raises(ValueError, match="No closing quotation"):
        shlex.split(lines[0], comments=True)
