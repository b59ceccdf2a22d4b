"""Where the project keeps things on the control machine."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout: the directory that holds ``site.yml``."""


def cache() -> Path:
    """Downloads and built images, safe to delete at any time.

    ``$BLACKWELL_CACHE`` if set, else ``blackwell`` under the user's XDG cache directory
    (https://specifications.freedesktop.org/basedir-spec/latest/).
    """
    explicit = os.environ.get("BLACKWELL_CACHE")
    if explicit:
        return Path(explicit).resolve()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path.home() / ".cache") / "blackwell"


def sandbox_run() -> Path:
    """State of the sandbox hosts that are up; on a tmpfs, so it does not outlive a reboot of this machine."""
    return Path(os.environ.get("BLACKWELL_SANDBOX_RUN", "/run/blackwell-sandbox"))
