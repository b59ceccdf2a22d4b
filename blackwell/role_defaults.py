"""What a variable is where the inventory does not say it: the defaults of the roles."""

from collections.abc import Mapping
from functools import cache

import yaml

from blackwell import paths


@cache
def defaults(role: str) -> Mapping[str, object]:
    """The defaults of a role, as they are written."""
    return yaml.safe_load((paths.ROOT / "roles" / role / "defaults/main.yml").read_text(encoding="utf-8"))


def number(variables: Mapping[str, object], role: str, name: str) -> int | None:
    """A whole number from a host's variables, or else from a role's defaults; None if only a play can resolve it."""
    value = str(variables.get(name, defaults(role).get(name)))
    return int(value) if value.isdecimal() else None
