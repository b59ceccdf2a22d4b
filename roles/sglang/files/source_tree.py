"""Makes the source tree of a release: the stock source, the patch series, and proof that the result is the right one.

Runs on the host while a release is built, and on the maintainer's machine. Needs Python >= 3.10 and git, nothing else.
The stock source comes by one of three roads: the package (a wheel), a tag of a git repository, the tag of a checkout.
By each of them the tree is the same or is refused: the wheel, whose hash is in the manifest, says what it must be.

The tree hash is git's (``git write-tree``) over the ``sglang/`` directory without the manifest's generated files, with
every file taken as plain bytes of mode 100644: the same whether the files came from the package or from the tag.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from git_command import RAW_BYTES, SourceTreeError, git, names
from source_repository import check_is_package, open_checkout, open_tag, some

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from source_repository import Tag

PACKAGE = "sglang"
PATCH_TREE = "sglang/_patch_tree"
"""File of the finished tree that holds the tree's hash, for the server to read."""

MANIFEST_KEYS = {"base", "generated", "patches", "files", "tree"}


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_series(patches: Path) -> list[str]:
    """Names in quilt's ``series`` file, in order; comments and empty lines are skipped.

    Raises:
        SourceTreeError: there is no such file.
    """
    try:
        text = (patches / "series").read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise SourceTreeError(f"{patches / 'series'} is missing") from error
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def read_manifest(patches: Path) -> dict:
    """The manifest of a patch directory.

    Raises:
        SourceTreeError: it is missing, is not JSON, or lacks a key that a build needs.
    """
    path = patches / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SourceTreeError(f"{path} is missing") from error
    except ValueError as error:
        raise SourceTreeError(f"{path} is not JSON: {error}") from error
    if lacking := sorted(MANIFEST_KEYS - manifest.keys()):
        raise SourceTreeError(f"{path} lacks {', '.join(lacking)}")
    if PATCH_TREE not in manifest["generated"]:
        raise SourceTreeError(f"{path} does not list {PATCH_TREE}, which every build writes, under generated")
    return manifest


def check_series(patches: Path, manifest: dict) -> list[Path]:
    """The patch files in order, each proven to be the one that the manifest names.

    Raises:
        SourceTreeError: a patch is missing, edited, reordered, or not in the manifest.
    """
    series = read_series(patches)
    expected = [entry["file"] for entry in manifest["patches"]]
    if series != expected:
        raise SourceTreeError(f"{patches / 'series'} lists {series}, the manifest has {expected}")
    for entry in manifest["patches"]:
        path = patches / entry["file"]
        if not path.is_file():
            raise SourceTreeError(f"{path} is in the series but not there")
        if (found := sha256(path)) != entry["sha256"]:
            raise SourceTreeError(f"{path} was edited: its sha256 is {found}, the manifest has {entry['sha256']}")
    return [patches / name for name in series]


def unpack_wheel(wheel: Path, expected: str, out: Path) -> None:
    """Unpacks a wheel whose SHA-256 is known into a directory.

    Raises:
        SourceTreeError: the wheel is missing, is another one, or would write outside the directory.
    """
    if not wheel.is_file():
        raise SourceTreeError(f"{wheel} is missing: it is the base of the release")
    if (found := sha256(wheel)) != expected:
        raise SourceTreeError(
            f"{wheel} is not the base of the series: its sha256 is {found}, the manifest has {expected}"
        )
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not (out / name).resolve().is_relative_to(out.resolve()):
                raise SourceTreeError(f"{wheel} holds a path outside of the tree: {name}")
        archive.extractall(out)


def apply_patch(patch: Path, tree: Path) -> None:
    """Applies one patch, whole or not at all.

    Raises:
        SourceTreeError: the tree has it already, or it does not apply; the message holds what git says.
    """
    # Outside of a repository `git apply` is strict about context and writes nothing unless everything applies.
    words = ["apply", "--whitespace=nowarn", str(patch.resolve())]
    if is_applied(patch, tree):
        raise SourceTreeError(f"{patch} is applied already: the tree below it in the series holds what it adds")
    try:
        git(*words, cwd=tree)
    except SourceTreeError as error:
        raise SourceTreeError(f"{patch} does not apply to the tree below it in the series: {error}") from error


def is_applied(patch: Path, tree: Path) -> bool:
    """Whether a patch could be taken out of a tree."""
    try:
        git("apply", "--whitespace=nowarn", "--reverse", "--check", str(patch.resolve()), cwd=tree)
    except SourceTreeError:
        return False
    return True


def touched_files(patch: Path) -> list[str]:
    """Paths that a patch changes, adds or deletes; raises SourceTreeError if git cannot read it."""
    # Each is <added>TAB<deleted>TAB<path>.
    listed = git("apply", "--numstat", "-z", str(patch.resolve()), cwd=patch.resolve().parent)
    return [entry.split("\t", 2)[2] for entry in names(listed)]


def file_hashes(tree: Path, paths: Collection[str]) -> dict[str, str | None]:
    """SHA-256 of files of a tree by their sorted paths; None for one that is not there."""
    return {path: sha256(tree / path) if (tree / path).is_file() else None for path in sorted(paths)}


def check_files(tree: Path, series: Collection[Path], manifest: Mapping) -> None:
    """Compares the files that a series touches with the manifest's ``files``.

    Raises:
        SourceTreeError: one is not in the manifest, is there without being touched, or differs; the message names it.
    """
    found = file_hashes(tree, {path for patch in series for path in touched_files(patch)})
    expected = manifest["files"]
    reasons = (
        ("touches what the manifest does not list under files", [path for path in found if path not in expected]),
        ("does not touch what the manifest lists under files", [path for path in expected if path not in found]),
        ("makes other files than the manifest has", [p for p in found if p in expected and found[p] != expected[p]]),
    )
    for reason, paths in reasons:
        if paths:
            raise SourceTreeError(f"the series {reason}: {some(paths)}")


def tree_hash(tree: Path, generated: list[str]) -> str:
    """Hash of ``tree/sglang`` as git would store it, without the generated files (paths relative to ``tree``).

    Raises:
        SourceTreeError: git is missing or failed.
    """
    with tempfile.TemporaryDirectory(prefix="source-tree-") as scratch:
        repository = Path(scratch) / "repository"
        git("init", "--quiet", "--bare", "--template=", str(repository), cwd=tree)
        (repository / "info").mkdir(exist_ok=True)
        (repository / "info" / "attributes").write_text(RAW_BYTES, encoding="utf-8")
        store = [f"--git-dir={repository}", f"--work-tree={tree.resolve()}"]
        plain = ["-c", "core.fileMode=false", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false"]
        excluded = [f":(exclude,literal){name}" for name in generated]
        git(*store, *plain, "add", "--force", "--", PACKAGE, *excluded, cwd=tree)
        return git(*store, "write-tree", f"--prefix={PACKAGE}/", cwd=tree).decode().strip()


def package_of(tree: Path, generated: Collection[str]) -> dict[str, bytes]:
    """What the package holds below ``tree/sglang`` and a tag must hold as well: path to content."""
    files = (path for path in sorted((tree / PACKAGE).rglob("*")) if path.is_file())
    relative = {str(path.relative_to(tree)): path for path in files}
    return {name: path.read_bytes() for name, path in relative.items() if name not in generated}


def open_source(road: Mapping, generated: Collection[str], scratch: Path) -> Tag:
    """The tag that a road leads to: ``tag`` with ``repository`` (path or URL) or with ``checkout`` (path)."""
    if "checkout" in road:
        return open_checkout(Path(road["checkout"]), road["tag"], generated, scratch)
    return open_tag(road["repository"], road["tag"], scratch)


def check_source(road: Mapping, tree: Path, generated: Collection[str]) -> str:
    """Proves that a tag holds the stock tree; returns the commit that it names.

    Raises:
        SourceTreeError: it cannot be read, differs from the stock tree, or a checkout of it was changed.
    """
    with tempfile.TemporaryDirectory(prefix="source-tree-") as scratch:
        tag = open_source(road, generated, Path(scratch))
        check_is_package(tag, package_of(tree, generated))
        return tag.commit


def build(patches: Path, wheels: Path, out: Path, road: Mapping | None = None) -> tuple[str, str]:
    """Makes ``out`` as a patch directory describes; returns its tree hash, and the commit that it was made from.

    By every road ``out`` begins with the files of the wheel in ``wheels``: a tag that was proven to hold the same
    bytes has nothing to add to them. ``road`` names the tag (see ``open_source``); without one there is no commit ("").
    ``out`` appears whole or not at all.

    Raises:
        SourceTreeError: anything differs from the manifest, or ``out`` exists.
    """
    if out.exists():
        raise SourceTreeError(f"{out} is there already, and a source tree is never changed")
    manifest = read_manifest(patches)
    series = check_series(patches, manifest)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir(mode=0o755)
        unpack_wheel(wheels / manifest["base"]["wheel"], manifest["base"]["sha256"], tree)
        commit = check_source(road, tree, manifest["generated"]) if road else ""
        for patch in series:
            apply_patch(patch, tree)
        check_files(tree, series, manifest)
        found = tree_hash(tree, manifest["generated"])
        if found != manifest["tree"]:
            raise SourceTreeError(f"the patched tree is {found}, the manifest of {patches} has {manifest['tree']}")
        (tree / PATCH_TREE).write_text(f"{found}\n", encoding="ascii")
        shutil.move(tree, out)
    return found, commit


def main() -> int:
    """Command line; prints the tree hash and the commit as JSON, or one sentence to standard error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--patches", type=Path, required=True, help="directory with manifest.json, series and the patches"
    )
    parser.add_argument("--wheels", type=Path, required=True, help="directory with the stock wheel")
    parser.add_argument("--out", type=Path, required=True, help="source tree to make")
    parser.add_argument("--tag", help="tag that must hold the stock source")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--repository", help="git repository with the tag: a path on this host, or a URL")
    where.add_argument("--checkout", help="checkout of the tag on this host, which must not differ from it")
    options = parser.parse_args()
    if bool(options.tag) != bool(options.repository or options.checkout):
        parser.error("--tag goes with --repository or --checkout")
    os.umask(0o022)
    named = {"tag": options.tag, "repository": options.repository, "checkout": options.checkout}
    road = {name: value for name, value in named.items() if value}
    try:
        tree, commit = build(options.patches, options.wheels, options.out, road)
    except SourceTreeError as error:
        print(f"source_tree: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(json.dumps({"tree": tree, "commit": commit}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
