"""Every role declares the variables that it has, and no two places disagree about them."""

import re

import pytest
import yaml

from blackwell import paths

ROLES = sorted(path.name for path in (paths.ROOT / "roles").iterdir() if path.is_dir())
TEXTS = [
    path.read_text(encoding="utf-8")
    for top in ("roles", "playbooks", "templates", "inventory")
    for path in (paths.ROOT / top).rglob("*")
    if path.suffix in {".yml", ".j2"} and path.name != "argument_specs.yml"
]


def read(path):
    return yaml.safe_load((paths.ROOT / path).read_text(encoding="utf-8")) or {}


def standard(role):
    """What the defaults of a role are without a profile, where it has profiles."""
    path = f"roles/{role}/vars/main/profiles.yml"
    return read(path)[f"_{role}_standard"] if (paths.ROOT / path).is_file() else {}


def options(role):
    return read(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]


@pytest.mark.parametrize("role", ROLES)
def test_every_default_is_declared_and_every_declared_variable_has_a_default(role):
    required = {name for name, option in options(role).items() if option.get("required")}
    assert set(read(f"roles/{role}/defaults/main.yml")) | required == set(options(role))


@pytest.mark.parametrize("role", ROLES)
def test_a_default_that_is_a_value_is_the_declared_one(role):
    values = {
        name: value
        for name, value in read(f"roles/{role}/defaults/main.yml").items()
        if not (isinstance(value, str) and "{{" in value)
    }
    required = {name for name, option in options(role).items() if option.get("required")}
    declared = {name: options(role)[name]["default"] for name in values if name not in required}
    assert {name: value for name, value in values.items() if name not in required} == declared


@pytest.mark.parametrize("role", ROLES)
def test_a_standard_setting_is_the_declared_default_and_taken_as_it_is(role):
    # Where there is no draft there is no algorithm, whatever the profile says.
    unless = {"sglang_server_speculative_algorithm"}
    taken = standard(role).keys() - unless
    written = read(f"roles/{role}/defaults/main.yml")
    assert {name: written[name] for name in taken} == {name: f"{{{{ _{role}_profile.{name} }}}}" for name in taken}
    assert {name: standard(role)[name] for name in taken} == {name: options(role)[name]["default"] for name in taken}


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_carries_the_roles_name(role):
    assert [name for name in options(role) if not name.startswith(f"{role}_")] == []


@pytest.mark.parametrize("role", ROLES)
def test_every_variable_is_used_outside_of_its_default(role):
    lines = [line for text in TEXTS for line in text.splitlines()]
    for name in options(role):
        uses = [line for line in lines if re.search(rf"\b{name}\b", line) and not re.match(rf"\s*{name}:", line)]
        assert uses, f"{name} is declared and never used"


def test_preflight_checks_every_role():
    assert sorted(read("roles/preflight/defaults/main.yml")["preflight_roles"]) == ROLES


@pytest.mark.parametrize(
    "path", sorted((paths.ROOT / "inventory").rglob("group_vars/*.yml")), ids=lambda p: p.parts[-3]
)
def test_inventories_set_declared_variables_only(path):
    declared = {name for role in ROLES for name in options(role)}
    assert [name for name in yaml.safe_load(path.read_text(encoding="utf-8")) if name not in declared] == []
