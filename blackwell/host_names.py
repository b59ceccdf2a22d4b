"""Hosts as people type them: ``HOST``, ``USER@HOST``, ``HOST:PORT``, ``[IPV6]:PORT``."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from blackwell.host_errors import HostError

_WITH_PORT = re.compile(r"\[(?P<bracketed>[^\]]+)\](:(?P<port6>\d+))?|(?P<plain>[^:\[\]]+)(:(?P<port>\d+))?")


@dataclass(frozen=True)
class Asked:
    """What was typed; user and port are None where they were left out."""

    host: str
    user: str | None = None
    port: int | None = None


def parse(text: str) -> Asked:
    """Take apart what was typed.

    Raises HostError if there is no host in it, or a port that cannot be one.
    """
    user, at, rest = text.strip().rpartition("@")
    match = _WITH_PORT.fullmatch(rest)
    # Several colons without brackets: an IPv6 address, as ssh takes it.
    host = (match["bracketed"] or match["plain"]) if match else rest
    port = int(match["port6"] or match["port"] or 0) if match else 0
    if not host or host.startswith("-") or (at and (not user or user.startswith("-"))) or re.search(r"\s", host):
        raise HostError(f"{text!r} is not a host: write an inventory name, HOST, USER@HOST or USER@HOST:PORT")
    if port > 65535:
        raise HostError(f"{text!r} has port {port}; ports end at 65535")
    return Asked(host, user or None, port or None)


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to say of the hosts there are, after one was asked for that is not there; empty if there are none."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    return f"the inventory has {shown}" if names else ""
