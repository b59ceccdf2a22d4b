"""The command that reads the service's journal."""

from blackwell.host_errors import HostError
from blackwell.on_host import UNIT

DEFAULT_LINES = 100


def command(lines: str, since: str, *, follow: bool) -> list[str]:
    """Words of a journalctl command; without ``lines``, the last hundred, or everything since ``since``.

    Raises HostError if ``lines`` is not a number of lines.
    """
    if lines and not (lines.isdecimal() and int(lines)):
        raise HostError(f"--lines is {lines!r}, not a number of lines")
    count = lines or ("" if since else str(DEFAULT_LINES))
    return [
        "journalctl",
        f"--unit={UNIT}",
        "--no-pager",
        "--output=short-iso",
        *([f"--lines={count}"] if count else ["--no-tail"] if follow else []),
        *([f"--since={since}"] if since else []),
        *(["--follow"] if follow else []),
    ]
