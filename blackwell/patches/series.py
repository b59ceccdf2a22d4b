"""The directory of a release's patch series, and the texts of its ``series`` and ``manifest.json``."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from blackwell.patches.errors import PatchesError


def series_directory(root: Path, version: str) -> Path:
    """The directory of a release's series in a checkout of the project; raises PatchesError if there is none."""
    directory = root / "patches" / f"sglang-{version}"
    if not (directory / "manifest.json").is_file():
        known = sorted(path.parent.name.removeprefix("sglang-") for path in root.glob("patches/sglang-*/manifest.json"))
        raise PatchesError(f"there is no {directory / 'manifest.json'}; known releases: {', '.join(known) or 'none'}")
    return directory


def series_text(before: str, names: Iterable[str]) -> str:
    """The text of ``series`` for some patches, under the comment that it begins with."""
    comment = []
    for line in before.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        comment.append(line)
    return "".join(f"{line}\n" for line in [*comment, *names])


def manifest_text(manifest: dict[str, Any]) -> str:
    """The text of ``manifest.json``: one line for each patch, file and variant, as a reviewer reads a change to it."""
    members = ",\n".join(f"  {json.dumps(key)}: {_member(value)}" for key, value in manifest.items())
    return f"{{\n{members}\n}}\n"


def _member(value: object) -> str:
    if isinstance(value, dict) and value:
        lines = [f"    {json.dumps(key)}: {json.dumps(item)}" for key, item in value.items()]
        return "{\n" + ",\n".join(lines) + "\n  }"
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(f"    {json.dumps(item)}" for item in value) + "\n  ]"
    return json.dumps(value)
