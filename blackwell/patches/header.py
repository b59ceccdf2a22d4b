"""The header of a patch: what it does, who wrote it, where it was sent (https://dep-team.pages.debian.net/deps/dep3/)."""

import re
from datetime import date

BEGINS = re.compile(rb"^(?:diff --git |Index: |--- [^\n]+\n\+\+\+ )", re.M)
"""First line of the changes; what is above it is the header."""

FIELD = re.compile(r"^(?P<name>[A-Za-z][A-Za-z-]*):[ \t]*(?P<value>.*)$", re.M)
LAST_UPDATE = re.compile(r"^Last-Update:.*$", re.M | re.I)
AUTHOR = re.compile(r"(?P<name>[^<>]+?) <(?P<mail>[^<> ]+)>")
REQUIRED = (("Description", "Subject"), ("Author", "From"), ("Forwarded", "Origin"), ("Last-Update",))
"""Fields of which a header must have one each."""


def split(patch: bytes) -> tuple[bytes, bytes]:
    """Header and changes of a patch, which together are the patch."""
    found = BEGINS.search(patch)
    begin = found.start() if found else len(patch)
    return patch[:begin], patch[begin:]


def text_of(header: bytes) -> str:
    """The words of a header, without what separates it from the changes; bytes that are not UTF-8 are replaced."""
    return header.decode(errors="replace").rstrip().removesuffix("\n---").rstrip()


def separator(header: bytes) -> str:
    """What separates a header from the changes: what follows its words, or an empty line."""
    return header.decode(errors="replace")[len(text_of(header)) :] or "\n\n"


def fields(text: str) -> dict[str, str]:
    """The fields of a header by their names in lower case; of a repeated one, the first."""
    return {found["name"].lower(): found["value"].strip() for found in reversed(list(FIELD.finditer(text)))}


def first_of(text: str, *names: str) -> str:
    """The value of the first of some fields that a header has, or nothing."""
    known = fields(text)
    return next((known[name.lower()] for name in names if known.get(name.lower())), "")


def title(text: str) -> str:
    """One line that says what a patch does."""
    return first_of(text, *REQUIRED[0])


def author(text: str) -> tuple[str, str]:
    """Name and mail address of a patch's author; empty if the header has none."""
    found = AUTHOR.fullmatch(first_of(text, *REQUIRED[1]))
    return (found["name"], found["mail"]) if found else ("", "")


def problems(text: str) -> list[str]:
    """What a header lacks, each as words that complete "the patch ..."; empty if it has everything."""
    lacking = [f"has no {' or '.join(names)} in its header" for names in REQUIRED if not first_of(text, *names)]
    if first_of(text, *REQUIRED[1]) and not author(text)[0]:
        lacking.append("has an author that is not written as NAME <MAIL>")
    if (updated := first_of(text, "Last-Update")) and not is_date(updated):
        lacking.append(f"has a Last-Update that is not a date (YYYY-MM-DD): {updated}")
    return lacking


def is_date(value: str) -> bool:
    """Whether a value is a date as ISO 8601 writes it with hyphens."""
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def updated(text: str, day: str) -> str:
    """A header whose Last-Update is a day."""
    return LAST_UPDATE.sub(f"Last-Update: {day}", text, count=1)


def comparable(text: str) -> str:
    """What of a header says that it was changed: not its Last-Update, nor what git tidies in a commit's message."""
    lines = "\n".join(line.rstrip() for line in LAST_UPDATE.sub("", text).splitlines())
    return re.sub(r"\n{2,}", "\n", lines).strip()
