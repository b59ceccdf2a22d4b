"""Checks the variables of a deployment against what the roles declare in ``meta/argument_specs.yml``."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CLOSE = 0.85
"""Similarity (difflib's ratio, 0 to 1) from which a name without our prefixes is taken for a misspelling of ours."""

RULES = ("type", "elements", "choices", "required")
"""What of an option restricts its value."""


def unknown_variables(names: Iterable[str], declared: Iterable[str], prefixes: Iterable[str]) -> list[dict[str, str]]:
    """Names that carry one of our prefixes, or nearly spell a declared name, and that no role declares.

    Returns ``[{"name": ..., "meant": the closest declared name or ""}]``, sorted by name.
    """
    known = sorted(set(declared))
    ours = tuple(f"{prefix}_" for prefix in prefixes)

    def closest(name: str) -> str:
        cutoff = 0.6 if name.startswith(ours) else CLOSE
        return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=cutoff)), "")

    strangers = sorted(name for name in set(names) - set(known) if not name.startswith(("_", "ansible_")))
    found = [{"name": name, "meant": closest(name)} for name in strangers]
    return [item for item in found if item["meant"] or item["name"].startswith(ours)]


def type_errors(values: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """What Ansible's own validator says of values against the options of an argument spec; empty if all is well."""
    # As plain data: the validator copies its specification deeply, which takes seconds with Ansible's lazy containers.
    rules = {
        str(name): {key: json.loads(json.dumps(option[key])) for key in RULES if key in option}
        for name, option in options.items()
    }
    return list(ArgumentSpecValidator(rules).validate(dict(values)).error_messages)


class FilterModule:
    """Registers the filters with Ansible."""

    def filters(self) -> dict[str, Any]:
        """Filter name to function."""
        return {"unknown_variables": unknown_variables, "type_errors": type_errors}
