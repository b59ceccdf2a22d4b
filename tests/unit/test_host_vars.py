"""Where variables of a host lie, and which of them win: as Ansible has it."""

import re

import pytest

from blackwell import host_vars, inventory
from blackwell.host_errors import HostError

# For each host: its files, each of which sets `said` to its own number.
LAYOUTS = {
    "none": [],
    "alone": ["alone.yml"],
    "plain": ["plain"],
    "both": ["both.yml", "both/main.yml"],
    "order": ["order/b.yml", "order/a.yml", "order/speculation.yml"],
    "later": ["later/speculation.yml", "later/zz.yml"],
    "below": ["below/speculation.yml", "below/t/a.yml", "below/a.yml"],
    "kinds": ["kinds/a.yaml", "kinds/b.json", "kinds/c", "kinds/d.txt", "kinds/e.yml~"],
    "dotted": ["dotted/a.yml", "dotted/t.d/b.yml"],
    "hidden": ["hidden/a.yml", "hidden/.speculation.yml.before", "hidden/.z.yml"],
    "two": ["two.yml", "two.yaml", "two.json"],
}


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    root = tmp_path_factory.mktemp("inventory")
    (root / "hosts.yml").write_text(f"boxes: {{hosts: {{{', '.join(f'{name}: {{}}' for name in LAYOUTS)}}}}}")
    for files in LAYOUTS.values():
        for number, name in enumerate(files):
            (root / "host_vars" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "host_vars" / name).write_text(f'{{"said": {number}}}')
    (root / "group_vars/boxes").mkdir(parents=True)
    (root / "group_vars/boxes/main.yml").write_text("{said: group, other: group}")
    (root / "group_vars/all.yml").write_text("{other: all}")
    return inventory.read(root)


@pytest.mark.parametrize("host", LAYOUTS)
def test_the_last_file_is_the_one_that_ansible_heeds(known, host):
    found = host_vars.files(host_vars.base(known) / "host_vars", host)
    said = host_vars.variables(found[-1])["said"] if found else "group"
    assert said == known.hosts[host]["said"]


def test_hidden_files_are_no_variables(known):
    names = [file.name for file in host_vars.files(host_vars.base(known) / "host_vars", "hidden")]
    assert names == ["a.yml"]


def test_who_sets_a_variable_with_the_host_last(known):
    at = host_vars.base(known)
    assert host_vars.setting(known, "both", frozenset({"said"})) == [
        at / "group_vars/boxes/main.yml",
        at / "host_vars/both/main.yml",
    ]
    assert host_vars.setting(known, "none", frozenset({"other"})) == [
        at / "group_vars/all.yml",
        at / "group_vars/boxes/main.yml",
    ]


def test_variables_lie_beside_an_inventory_that_is_a_file(known):
    root = host_vars.base(known)
    assert host_vars.base(inventory.read(root / "hosts.yml")) == root


def test_no_inventory_has_no_place():
    with pytest.raises(HostError, match="there is no inventory that variables could be written beside"):
        host_vars.base(inventory.Inventory("none", {}, {}))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("---\n", {}),
        ("a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\nb: 1", {"a": None, "b": 1}),
        ("$ANSIBLE_VAULT;1.1;AES256\n6162\n", {}),
    ],
)
def test_what_a_file_sets(tmp_path, text, found):
    (tmp_path / "main.yml").write_text(text)
    assert host_vars.variables(tmp_path / "main.yml") == found


@pytest.mark.parametrize(("text", "said"), [("a: [", "expected the node content"), ("- a", "it holds no variables")])
def test_a_file_without_variables_is_named(tmp_path, text, said):
    (tmp_path / "main.yml").write_text(text)
    with pytest.raises(HostError, match=f"{re.escape(str(tmp_path))}/main.yml cannot be read: .*{said}"):
        host_vars.variables(tmp_path / "main.yml")
