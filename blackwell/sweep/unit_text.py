"""The text of a unit file: the command in it, and another unit made from it. Pure functions.

Quoting is that of systemd.service(5), "Command lines", and systemd.syntax(7), as templates/sglang.service.j2 writes it.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from blackwell.bench.errors import BenchError

PLAIN = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
WORD = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))(?=\s|$)')
ESCAPED = re.compile(r"\\(.)")
SPECIFIER, VARIABLE = "%", "$"


def command(text: str) -> list[str]:
    """The words of ExecStart; raises BenchError if there is none, or one that is quoted in another way."""
    for name, value in _lines(text):
        if name == "ExecStart":
            return split(value)
    raise BenchError("the unit file has no ExecStart")


def split(line: str) -> list[str]:
    """The words of a command line; raises BenchError for what this way of quoting does not have."""
    words, at = [], 0
    line = line.strip()
    while at < len(line):
        found = WORD.match(line, at)
        if not found:
            raise BenchError(f"the unit file has a command line that cannot be read: {line[at : at + 60]!r}")
        quoted, bare = found.groups()
        word = bare if quoted is None else ESCAPED.sub(r"\1", quoted)
        words.append(_undoubled(word))
        at = found.end()
    return words


def _undoubled(word: str) -> str:
    plain = word.replace("%%", "").replace("$$", "")
    if SPECIFIER in plain or VARIABLE in plain:
        raise BenchError(f"the unit file has {word!r}, which systemd expands, in its command line")
    return word.replace("%%", "%").replace("$$", "$")


def quoted(word: str) -> str:
    """A word as a unit file has it."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if PLAIN.fullmatch(escaped) else f'"{escaped}"'


def joined(words: Sequence[str]) -> str:
    """Words as a unit file has them."""
    return " ".join(map(quoted, words))


def _lines(text: str) -> list[tuple[str, str]]:
    """Names and values of the assignments, continued lines joined; sections have the name ``[``."""
    joined_lines = re.sub(r"\\\n(?:[ \t]*[#;][^\n]*\n)*", " ", text).splitlines()
    found = []
    for line in map(str.strip, joined_lines):
        if line.startswith("["):
            found.append(("[", line))
        elif line and line[0] not in "#;":
            name, _, value = line.partition("=")
            found.append((name.strip(), value.strip()))
    return found


def rewritten(
    text: str, change: Callable[[str, str, str], list[str] | None], added: Mapping[str, Sequence[str]]
) -> str:
    """A unit file with other assignments, without its comments.

    ``change`` gets section, name and value, and returns the lines in its place, or None to keep it. ``added``: lines at
    the end of a section, by its name. A section without lines is left out.
    """
    sections: dict[str, list[str]] = {}
    section = ""
    for name, value in _lines(text):
        if name == "[":
            section = value.strip("[]")
            sections.setdefault(section, [])
            continue
        lines = change(section, name, value)
        sections.setdefault(section, []).extend([f"{name}={value}"] if lines is None else lines)
    for name, lines in added.items():
        sections.setdefault(name, []).extend(lines)
    return "\n".join("\n".join([f"[{name}]", *lines]) + "\n" for name, lines in sections.items() if name and lines)
