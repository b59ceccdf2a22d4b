"""Which SGLang releases the stand-in knows, and the patches of each."""

import importlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from sglang_cpu_standin.hooks import Patch

RELEASES: Mapping[str, str] = {
    "0.5.9": "sglang_cpu_standin.releases.v0_5_9",
}
"""Release of SGLang -> the module whose ``PATCHES`` make it run on a CPU."""


def installed() -> str:
    """Return the version of the installed sglang distribution; raise ImportError if its metadata is not on the path."""
    try:
        return version("sglang")
    except PackageNotFoundError:
        raise ImportError(
            "sglang-cpu-standin finds no sglang distribution: its .dist-info directory must be beside the package"
        ) from None


def patches(release: str) -> Mapping[str, Patch]:
    """Return the patches of a release by module name; raise ImportError for a release that is not listed."""
    if release not in RELEASES:
        raise ImportError(f"sglang-cpu-standin has no patches for sglang {release}; it knows {', '.join(RELEASES)}")
    return importlib.import_module(RELEASES[release]).PATCHES
