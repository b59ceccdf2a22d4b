"""Calls of git that neither this user's, nor the system's, nor another repository's settings can change.

Runs on the host while a release is built, and on the maintainer's machine. Needs Python >= 3.10 and git, nothing else.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Nothing that a user or a system configured for git may change what is hashed or applied. No locks: asking must not
# write, and what an incomplete repository lacks must not be fetched from where that repository says.
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
RAW_BYTES = "* -text -eol -ident -filter -working-tree-encoding\n"
"""Attributes (gitattributes(5)) under which git stores and writes files as they are."""


class SourceTreeError(Exception):
    """The tree cannot be made as asked; the message is one sentence that names the file."""


@dataclass(frozen=True)
class Said:
    """What a git command that succeeded wrote."""

    out: bytes
    errors: str


def run(*arguments: str, cwd: Path, more: Mapping[str, str] | None = None, stdin: bytes = b"") -> Said:
    """Runs a git command to its end; ``more`` is added to its environment.

    Raises:
        SourceTreeError: git is missing or failed; the message holds its whole error text.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Without the ceiling, git would look for a repository above, and apply patches relative to that.
    ceiling = {"GIT_CEILING_DIRECTORIES": str(cwd.resolve().parent)}
    environment = inherited | ENVIRONMENT | ceiling | dict(more or {})
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=environment, input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        raise SourceTreeError("git is not installed") from error
    errors = done.stderr.decode(errors="replace").strip()
    if done.returncode:
        raise SourceTreeError(f"git {' '.join(arguments)}: {errors}")
    return Said(done.stdout, errors)


def git(*arguments: str, cwd: Path, more: Mapping[str, str] | None = None, stdin: bytes = b"") -> bytes:
    """Output of a git command; see ``run``."""
    return run(*arguments, cwd=cwd, more=more, stdin=stdin).out


def names(output: bytes) -> list[str]:
    """The names in what a git command printed with ``-z``."""
    return [os.fsdecode(name) for name in output.split(b"\0") if name]
