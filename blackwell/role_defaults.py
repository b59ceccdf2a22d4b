"""What a variable is where the inventory does not say it: the defaults of the roles."""

from collections.abc import Mapping
from functools import cache

import yaml

from blackwell import paths


@cache
def _written(path: str) -> Mapping[str, object]:
    """A YAML file of the checkout; empty if it is not there."""
    file = paths.ROOT / path
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}


def defaults(role: str, variables: Mapping[str, object]) -> Mapping[str, object]:
    """The defaults of a role as they are written; where it has profiles, those of the one that a host's variables name.

    A profile that is not known has no values.
    """
    own, data = _written(f"roles/{role}/defaults/main.yml"), _written(f"roles/{role}/vars/main/profiles.yml")
    if not data:
        return own
    chosen = variables.get(f"{role}_profile", own[f"{role}_profile"])
    profile = data[f"_{role}_profiles"].get(chosen) if chosen else {"machine": "any", "settings": {}}
    if profile is None:
        return own
    return {**own, **data[f"_{role}_standard"], **data[f"_{role}_machines"][profile["machine"]], **profile["settings"]}


def value(variables: Mapping[str, object], role: str, name: str) -> object:
    """A host's variable as it is written, or else the role's default; None if neither is there."""
    return variables.get(name, defaults(role, variables).get(name))


def number(variables: Mapping[str, object], role: str, name: str) -> int | None:
    """A whole number from a host's variables, or else from a role's defaults; None if only a play can resolve it."""
    written = str(value(variables, role, name))
    return int(written) if written.isdecimal() else None
