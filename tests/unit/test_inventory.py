import re
from pathlib import Path

import pytest

from blackwell import inventory
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory

# As ansible-inventory --list prints it; a host without variables is not under hostvars.
LISTING = {
    "_meta": {
        "hostvars": {
            "gpu1": {
                "ansible_host": "10.0.0.1",
                "ansible_port": 2222,
                "ansible_user": "ops",
                "ansible_ssh_private_key_file": "/keys/ops",
                "ansible_ssh_common_args": "-F none -o UserKnownHostsFile=/keys/known_hosts",
                "ansible_ssh_extra_args": '-o "ProxyJump bastion"',
                "ansible_become": "yes",
            },
            "gpu2": {"ansible_host": "10.0.0.2"},
            "twin1": {"ansible_host": "10.0.0.3", "ansible_port": 1001},
            "twin2": {"ansible_host": "10.0.0.3", "ansible_port": 1002},
        },
        "profile": "inventory_legacy",
    },
    "all": {"children": ["ungrouped", "boxes"]},
    "boxes": {"children": ["sglang_hosts"], "hosts": ["twin1", "twin2"]},
    "sglang_hosts": {"hosts": ["gpu1", "gpu2", "bare"]},
}
READ = inventory.parse("/inv", LISTING)


def nobody(_name):
    return False


def with_variable(name, value):
    return Inventory("/inv", {"gpu1": {name: value}}, {})


def test_everything_of_a_host():
    assert inventory.resolve("gpu1", READ, nobody) == Host(
        name="gpu1",
        address="10.0.0.1",
        port=2222,
        user="ops",
        identity=Path("/keys/ops"),
        ssh_args=("-F", "none", "-o", "UserKnownHostsFile=/keys/known_hosts", "-o", "ProxyJump bastion"),
        become=True,
        inventory="/inv",
    )


def test_a_host_without_variables_is_its_own_address():
    assert inventory.resolve("bare", READ, nobody) == Host("bare", "bare", inventory="/inv")


@pytest.mark.parametrize("typed", ["gpu2", "10.0.0.2"])
def test_found_by_name_and_by_address(typed):
    assert inventory.resolve(typed, READ, nobody).name == "gpu2"


def test_what_was_typed_wins_over_the_inventory():
    host = inventory.resolve("root@gpu1:22", READ, nobody)
    assert (host.user, host.port, host.identity) == ("root", 22, Path("/keys/ops"))


def test_a_port_tells_hosts_at_one_address_apart():
    assert inventory.resolve("10.0.0.3:1002", READ, nobody).name == "twin2"


def test_an_address_of_several_hosts_is_refused():
    with pytest.raises(HostError, match=r"10.0.0.3 is the address of twin1, twin2 in /inv: name one"):
        inventory.resolve("10.0.0.3", READ, nobody)


def test_a_group_is_no_host():
    with pytest.raises(HostError, match=r"boxes is a group of /inv, not a host; its hosts: bare, gpu1, gpu2"):
        inventory.resolve("boxes", READ, nobody)


def test_an_unknown_name_gets_close_matches():
    with pytest.raises(HostError, match=r"gpv1 is not in /inv and does not resolve; did you mean gpu1"):
        inventory.resolve("gpv1", READ, nobody)


def test_without_any_inventory_it_says_how_to_name_one():
    with pytest.raises(HostError, match=r"gpu1 does not resolve.*--inventory or BLACKWELL_INVENTORY"):
        inventory.resolve("gpu1", Inventory("none", {}, {}), nobody)


def test_a_host_outside_the_inventory_takes_nothing_from_it():
    assert inventory.resolve("ops@other.example.com:23", READ, lambda name: name == "other.example.com") == Host(
        "other.example.com", "other.example.com", 23, "ops", inventory="none"
    )


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("ansible_host", "{{ address }}", "gpu1: ansible_host in /inv is a template"),
        ("ansible_user", {"__ansible_vault": "$ANSIBLE_VAULT"}, "gpu1: ansible_user in /inv is a template or a secret"),
        ("ansible_port", "ssh", "gpu1: ansible_port in /inv is 'ssh', not a port"),
        ("ansible_connection", "local", "gpu1: ansible_connection in /inv is local"),
        ("ansible_ssh_common_args", "-F 'none", "gpu1: ansible_ssh_common_args in /inv has a quote that stays open"),
    ],
)
def test_a_variable_that_leaves_it_open_is_named(variable, value, complaint):
    with pytest.raises(HostError, match=re.escape(complaint)):
        inventory.resolve("gpu1", with_variable(variable, value), nobody)


@pytest.mark.parametrize(("value", "become"), [(True, True), ("yes", True), ("False", False), (False, False)])
def test_become_as_ansible_takes_it(value, become):
    assert inventory.resolve("gpu1", with_variable("ansible_become", value), nobody).become is become


def test_groups_that_hold_each_other_end():
    looped = inventory.parse("/inv", {"a": {"children": ["b"]}, "b": {"children": ["a"], "hosts": ["h"]}})
    assert looped.groups["a"] == ("h",)


def test_the_option_wins_over_the_environment(tmp_path):
    option, variable = tmp_path / "option", tmp_path / "variable"
    option.touch()
    variable.touch()
    environment = {"BLACKWELL_INVENTORY": str(variable)}
    assert inventory.chosen(str(option), environment) == ("--inventory", option)
    assert inventory.chosen("", environment) == ("BLACKWELL_INVENTORY", variable)
    assert inventory.chosen("", {}) is None


def test_an_inventory_that_is_not_there_is_named_with_who_named_it(tmp_path):
    with pytest.raises(HostError, match=f"BLACKWELL_INVENTORY names {tmp_path}/none, which is not there"):
        inventory.chosen("", {"BLACKWELL_INVENTORY": f"{tmp_path}/none"})


def test_the_sentence_of_an_inventory_script_is_the_reason():
    stderr = """\
[WARNING]: Failed to parse inventory with 'script' plugin: Inventory script returned non-zero exit code 1.

Standard error from inventory script:
no sandbox host is up: run scripts/sandbox up

[ERROR]: Completely failed to parse inventory source /inv
"""
    assert inventory.reason(stderr) == "no sandbox host is up: run scripts/sandbox up"


def test_otherwise_the_error_is_the_reason():
    assert inventory.reason("[WARNING]: odd\n[ERROR]: broken\n") == "broken"


def test_ansible_reads_group_variables(tmp_path):
    (tmp_path / "hosts").write_text("[boxes]\ngpu1 ansible_host=10.0.0.1\n")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/boxes.yml").write_text("ansible_user: ops\n")
    found = inventory.available(str(tmp_path), {})
    assert inventory.resolve("gpu1", found, nobody) == Host("gpu1", "10.0.0.1", user="ops", inventory=str(tmp_path))


def test_an_inventory_that_ansible_cannot_read_is_an_error_when_named_and_none_as_the_default(tmp_path):
    broken = tmp_path / "hosts.yml"
    broken.write_text("not: [an")
    with pytest.raises(HostError, match=f"{broken} is not an inventory that Ansible can read"):
        inventory.available(str(broken), {})
    assert inventory.available("", {}, default=broken) == Inventory("none", {}, {})
