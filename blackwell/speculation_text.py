"""The text of ``host_vars/<host>/speculation.yml``: where its setting comes from, a digest, and the variables."""

import hashlib
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields

import yaml

from blackwell.speculation_setting import Setting

HEAD = (
    "# Written by fab, which keeps the one before: fab -H {host} threshold --undo puts that back. What is changed here"
)
HEAD_ENDS = "# by hand is written over with --force only."
DIGEST = "# sha256: "
# The tree's limit for YAML is 160.
WIDTH = 150
_ENTRY = re.compile(r"# (\w+): (.*)")
_MORE = "#   "


@dataclass(frozen=True)
class Origin:
    """Where a setting comes from. ``date``: ISO 8601 with its zone. What no measurement stands behind is empty.

    ``run``: the sweep that measured it; ``fingerprint``: the digest of what it is valid for; ``crossover``: a sentence.
    """

    command: str
    date: str
    run: str = ""
    fingerprint: str = ""
    crossover: str = ""


def render(host: str, setting: Setting, origin: Origin) -> str:
    """The text for a host."""
    entries = [line for name, value in asdict(origin).items() if value for line in _entry(name, value)]
    head, body = ["---", HEAD.format(host=host), HEAD_ENDS, *entries], [*_lines(setting.variables), ""]
    return "\n".join([*head, DIGEST + digest("\n".join([*head, *body])), *body])


def _entry(name: str, value: str) -> list[str]:
    return textwrap.wrap(
        f"{name}: {value}",
        WIDTH,
        initial_indent="# ",
        subsequent_indent=_MORE,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _lines(variables: Mapping[str, object], indent: str = "") -> Iterable[str]:
    for name, value in variables.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            yield from _lines(value, f"{indent}  ")
        elif isinstance(value, list) and value:
            yield f"{indent}{name}:"
            yield from (f"{indent}  - {_flow(item)}" for item in value)
        else:
            yield f"{indent}{name}: {_flow(value)}"


def _flow(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6)
    return text.removesuffix("...\n").strip()


def digest(text: str) -> str:
    """SHA-256 in hexadecimal of a text, without the line that holds it."""
    kept = [line for line in text.split("\n") if not line.startswith(DIGEST)]
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()


def by_hand(text: str) -> bool:
    """Whether somebody else wrote the text, or changed it since it was written."""
    return f"{DIGEST}{digest(text)}" not in text.split("\n")


def origin(text: str) -> Origin | None:
    """Where the setting of a text comes from; None if that is not said."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        entry = _ENTRY.fullmatch(line)
        if entry:
            found[entry[1]] = entry[2]
        elif line.startswith(_MORE) and found:
            last = next(reversed(found))
            found[last] += f" {line.removeprefix(_MORE)}"
        elif line.startswith("#"):
            continue
        elif line != "---":
            break
    known = {field.name: found[field.name] for field in fields(Origin) if field.name in found}
    return Origin(**known) if {"command", "date"} <= known.keys() else None
