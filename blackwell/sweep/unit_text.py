"""The text of a unit file: its assignments, and the words of a command in it. Pure functions.

The syntax is that of systemd.syntax(7), and for commands systemd.service(5), "Command lines".
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from blackwell.bench.errors import BenchError

PLAIN = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
TOKEN = re.compile(r"""(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+""")
PIECE = re.compile(r"""(?P<quote>["'])|\\(?P<escape>x[0-9a-fA-F]{2}|[0-7]{3}|.)|(?P<text>.)""")
CONTROL = re.compile("[\x00-\x1f\x7f\udc80-\udcff]")
"""What a unit file cannot hold as it is: control characters, and bytes that are no UTF-8, as Python decodes them."""

ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
LITERAL = "\\\"'"
DOUBLED = re.compile(r"([%$])(\1?)")


class Assignment(NamedTuple):
    """A setting of a unit, its value in one line."""

    section: str
    name: str
    value: str


def assignments(text: str) -> list[Assignment]:
    """The settings of a unit file in their order, continued lines joined; comments are left out."""
    found: list[Assignment] = []
    section = ""
    for line in _lines(text):
        if line.startswith("["):
            section = line.strip("[]")
            continue
        name, equals, value = line.partition("=")
        # What stands before the first section is no setting.
        if section and equals:
            found.append(Assignment(section, name.strip(), value.strip()))
    return found


def _lines(text: str) -> Iterable[str]:
    begun = ""
    for line in text.split("\n"):
        bare = line.strip()
        # A comment ends no line that goes on, and goes on in none.
        if bare.startswith(("#", ";")):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun += f"{line[:-1]} "
            continue
        if whole := (begun + line).strip():
            yield whole
        begun = ""
    if begun.strip():
        yield begun.strip()


def rendered(settings: Iterable[Assignment]) -> str:
    """The text of a unit file; the settings of a section keep their order."""
    ordered = list(settings)
    sections = list(dict.fromkeys(one.section for one in ordered))
    ordered.sort(key=lambda one: sections.index(one.section))
    parts = [
        "\n".join([f"[{section}]", *(f"{one.name}={one.value}" for one in group)])
        for section, group in groupby(ordered, key=lambda one: one.section)
    ]
    return "\n\n".join(parts) + "\n"


def values(settings: Iterable[Assignment], name: str) -> list[str]:
    """What a list of [Service] holds: an empty value forgets those before it."""
    found: list[str] = []
    for one in settings:
        if (one.section, one.name) == ("Service", name):
            found = [*found, one.value] if one.value else []
    return found


def command(settings: Iterable[Assignment]) -> list[str]:
    """The words of ExecStart; raises BenchError if there is not one command, or one that cannot be read."""
    found = values(settings, "ExecStart")
    if len(found) != 1:
        raise BenchError(f"the unit has {len(found)} commands in ExecStart, not one")
    return split(found[0])


def tokens(line: str) -> list[str]:
    """The words of a command as they stand there, with their quotes; raises BenchError if a quote is left open."""
    found, at = [], 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        token = TOKEN.match(line, at)
        if not token:
            raise BenchError(f"the unit has a command that cannot be read: {line[at : at + 60]}")
        found.append(token[0])
        at = token.end()
    return found


def split(line: str) -> list[str]:
    """The words of a command as the program gets them.

    Raises BenchError for what systemd would replace (specifiers, variables): the text alone does not tell by what.
    """
    return [_undoubled(_unquoted(token)) for token in tokens(line)]


def _unquoted(token: str) -> str:
    """A word without its quotes and escapes."""
    # As bytes: an escape may be a part of a character.
    found, quote = bytearray(), ""
    for piece in PIECE.finditer(token):
        if piece["quote"] and quote in ("", piece["quote"]):
            quote = "" if quote else piece["quote"]
        elif piece["escape"]:
            found += _escaped(piece["escape"])
        else:
            found += (piece["quote"] or piece["text"]).encode("utf-8", "surrogateescape")
    return found.decode("utf-8", "surrogateescape")


def _escaped(escape: str) -> bytes:
    if len(escape) == 3:
        return bytes([int(escape[1:], 16) if escape[0] == "x" else int(escape, 8)])
    if escape in ESCAPES or escape in LITERAL:
        return ESCAPES.get(escape, escape).encode()
    raise BenchError(f"the unit has \\{escape} in a command, which cannot be read")


def _undoubled(word: str) -> str:
    if any(not second for _, second in DOUBLED.findall(word)):
        raise BenchError(f"the unit has {word} in a command, which systemd replaces by something else")
    return DOUBLED.sub(r"\1", word)


def quoted(word: str) -> str:
    """A word as a unit file has it, by the rules of templates/sglang.service.j2."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    if PLAIN.fullmatch(escaped):
        return escaped
    return f'"{CONTROL.sub(_byte, escaped)}"'


def _byte(found: re.Match) -> str:
    return f"\\x{ord(found[0]) & 0xFF:02x}"


def joined(words: Sequence[str]) -> str:
    """A command as a unit file has it."""
    return " ".join(map(quoted, words))
