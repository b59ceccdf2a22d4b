"""A checkout of the project with one release, whose series is complete: headers, manifest and all."""

import hashlib
import json

from release_fixtures import FIRST, GENERATED, SECOND, make_release

from blackwell.patches import cli
from blackwell.patches.series import manifest_text

HEADER = """Description: {what}
 With a second line.
Author: Ann Author <ann@example.org>
Forwarded: not-needed
Last-Update: 2026-01-0{day}
"""
NAMED = "diff --git a/sglang/srt/args.py b/sglang/srt/args.py\n"
FIRST_PATCH = HEADER.format(what="Count to two and a half", day=1) + "\n" + NAMED + FIRST
# As another tool writes it: no line that names the tool, and three dashes under the header.
SECOND_PATCH = HEADER.format(what="Count more exactly", day=2) + "---\n" + SECOND


def make_project(root, source_tree):
    """Make a project with SGLang 1, whose series has two patches; return the directory of the series."""
    make_release(root, source_tree)
    directory = root / "patches/sglang-1"
    directory.mkdir()
    for name, text in (("first.patch", FIRST_PATCH), ("second.patch", SECOND_PATCH)):
        (directory / name).write_text(text)
        (root / "patches" / name).unlink()
    (root / "patches/series").rename(directory / "series")
    old = root / "patches/manifest.json"
    manifest = json.loads(old.read_text())
    old.unlink()
    manifest["base"] = {"package": "sglang", "version": "1"} | manifest["base"]
    record(directory, manifest)
    return directory


def record(directory, manifest=None):
    """Write the manifest, with the hashes of the patches as they are now."""
    manifest = manifest or json.loads((directory / "manifest.json").read_text())
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in directory.glob("*.patch")}
    known = [entry["file"] for entry in manifest["patches"]]
    manifest["patches"] = [{"file": name, "sha256": hashes[name]} for name in known if name in hashes]
    (directory / "manifest.json").write_text(manifest_text(manifest | {"generated": GENERATED}))


def wheel_of(root):
    """Return the stock wheel."""
    return root / "wheels/sglang-1.whl"


def patches(root, command, *words, version="1", status=0, capsys):
    """Run scripts/patches on a project; return what it printed, both streams."""
    wheel = [] if command == "status" else ["--wheel", str(wheel_of(root))]
    found = cli.main([command, version, *map(str, words), *wheel], root)
    said = capsys.readouterr()
    assert found == status, said
    return said.out + said.err
