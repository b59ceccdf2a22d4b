"""Names of sandbox hosts."""

import re

from blackwell.sandbox.errors import SandboxError

# A host name label (RFC 1123), lower case, short enough that the machine name stays under the 64 characters of
# sethostname(2).
LABEL = re.compile(r"[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?")
RULE = "use up to 32 lower-case letters, digits and dashes, a letter first and no dash last"


def checked(names: list[str]) -> list[str]:
    """The names, in order, each once.

    Raises SandboxError for a name that cannot be a host name.
    """
    for name in names:
        if not LABEL.fullmatch(name):
            raise SandboxError(f"bad host name {name!r}: {RULE}")
    return list(dict.fromkeys(names))


def numbered(count: int) -> list[str]:
    """The default names: sandbox1 .. sandboxN."""
    return [f"sandbox{number}" for number in range(1, count + 1)]
