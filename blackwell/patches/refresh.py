"""Writes a patch series back from the repository that its maintainer edited."""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from blackwell.patches import header
from blackwell.patches.check import MOVES, check
from blackwell.patches.errors import PatchesError
from blackwell.patches.host_programs import SourceTreeError, git_command, source_repository, source_tree
from blackwell.patches.repository import Commit, changes, commits
from blackwell.patches.series import manifest_text, series_text

UNCHANGED, MOVED, CHANGED, NEW, REMOVED = "unchanged", "moved", "changed", "new", "removed"


@dataclass(frozen=True)
class Refreshed:
    """What a series becomes."""

    states: Mapping[str, str]
    """Patch to what became of it."""

    files: Mapping[str, bytes | None]
    """Files of the directory that differ from what is there: name to content, None for one that goes."""


def refresh(directory: Path, wheel: Path, out: Path) -> Refreshed:
    """What the series in a directory becomes when it is written from a repository; writes nothing.

    A patch that still does what its commit does keeps every byte. One that does it at other lines only gets new line
    numbers, and any other is written anew and gets its commit's author date as Last-Update.

    Raises PatchesError if the repository is not a series, or SourceTreeError.
    """
    manifest = source_tree.read_manifest(directory)
    with tempfile.TemporaryDirectory(prefix="patches-refresh-") as name:
        scratch = Path(name)
        stock = scratch / "stock"
        stock.mkdir()
        source_tree.unpack_wheel(wheel, manifest["base"]["sha256"], stock)
        found = commits(out, source_tree.tree_hash(stock, manifest["generated"]), manifest["generated"])
        objects = git_command.git("rev-parse", "--path-format=absolute", "--git-path", "objects", cwd=out)
        reader = source_repository.make_reader(scratch, Path(objects.decode().strip()))
        written = {commit.name: write(commit, directory / commit.name, reader) for commit in found}
        contents = {patch: content for patch, (_, content) in written.items()}
        new = texts(directory, contents, manifest, prove(contents, stock, out, manifest, scratch))
        check_written(new, wheel, scratch)
    before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    listed = source_tree.read_series(directory) if (directory / "series").is_file() else []
    gone = [patch for patch in listed if patch not in new and patch in before]
    states = {patch: state for patch, (state, _) in written.items()} | dict.fromkeys(gone, REMOVED)
    changed = {name: content for name, content in new.items() if before.get(name) != content}
    return Refreshed(states, {**changed, **dict.fromkeys(gone)})


def write(commit: Commit, path: Path, reader: Path) -> tuple[str, bytes]:
    """What becomes of a commit's patch, and its content."""
    before = path.read_bytes() if path.is_file() else b""
    words, diff = header.split(before)
    same_header = header.comparable(header.text_of(words)) == header.comparable(commit.text)
    effect = CHANGED if not before or MOVES.search(diff) else same_effect(commit, path, reader)
    if same_header and effect == UNCHANGED:
        return UNCHANGED, before
    if same_header and effect == MOVED:
        return MOVED, words + changes(reader, commit)
    text = header.updated(commit.text, commit.day)
    body = diff if effect == UNCHANGED else changes(reader, commit)
    return CHANGED if before else NEW, (text + header.separator(words)).encode() + body


def same_effect(commit: Commit, path: Path, reader: Path) -> str:
    """Whether a patch turns a commit's parent into the commit: UNCHANGED, at other lines MOVED, otherwise CHANGED."""
    more = {"GIT_INDEX_FILE": str(reader / "index-of-patch")}
    git_command.git("read-tree", commit.parent, cwd=reader, more=more)
    apply = ["apply", "--cached", "--verbose", "--whitespace=nowarn", str(path.resolve())]
    try:
        said = git_command.run(*apply, cwd=reader, more=more)
    except SourceTreeError:
        return CHANGED
    made = git_command.git("write-tree", cwd=reader, more=more)
    wanted = git_command.git("rev-parse", f"{commit.id}^{{tree}}", cwd=reader)
    if made != wanted:
        return CHANGED
    return MOVED if "(offset " in said.errors else UNCHANGED


def prove(contents: Mapping[str, bytes], stock: Path, out: Path, manifest: dict, scratch: Path) -> dict:
    """Applies written patches to the stock source, which they change; returns the manifest's ``files`` and ``tree``.

    Raises PatchesError if the result is not the repository's.
    """
    directory = scratch / "proof"
    directory.mkdir()
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    paths = [directory / name for name in contents]
    for path in paths:
        source_tree.apply_patch(path, stock)
    files = source_tree.file_hashes(stock, {name for path in paths for name in source_tree.touched_files(path)})
    tree = source_tree.tree_hash(stock, manifest["generated"])
    asked = git_command.git("rev-parse", f"HEAD:{source_tree.PACKAGE}", cwd=out).decode().strip()
    if tree != asked:
        raise PatchesError(f"the series written from {out} makes the tree {tree}, and its last commit has {asked}")
    return {"files": files, "tree": tree}


def texts(directory: Path, contents: Mapping[str, bytes], manifest: dict, proven: dict) -> dict[str, bytes]:
    """Every file of the new series; ``series`` and ``manifest.json`` as they are if they say the same."""
    names = list(contents)
    series = directory / "series"
    listing = series.read_text(encoding="utf-8") if series.is_file() else ""
    if not series.is_file() or source_tree.read_series(directory) != names:
        listing = series_text(listing, names)
    patches = [{"file": name, "sha256": hashlib.sha256(content).hexdigest()} for name, content in contents.items()]
    made = manifest | {"patches": patches} | proven
    text = (directory / "manifest.json").read_text(encoding="utf-8") if made == manifest else manifest_text(made)
    return {**contents, "series": listing.encode(), "manifest.json": text.encode()}


def check_written(new: Mapping[str, bytes], wheel: Path, scratch: Path) -> None:
    """Checks a new series before it is written; raises PatchesError if something is wrong with it."""
    directory = scratch / "new"
    directory.mkdir()
    for name, content in new.items():
        (directory / name).write_bytes(content)
    report = check(directory, wheel)
    wrong = [f"{patch.name} {problem}" for patch in report.patches for problem in patch.problems]
    if problems := [*wrong, *report.problems]:
        raise PatchesError(f"the series would not be good: {'; '.join(problems)}")


def write_files(directory: Path, files: Mapping[str, bytes | None]) -> None:
    """Writes and removes files of a series, each whole or not at all; the manifest, which proves them, last."""
    for name in sorted(files, key=lambda name: (name == "manifest.json", name)):
        content = files[name]
        if content is None:
            (directory / name).unlink()
            continue
        partial = directory / f".{name}.partial"
        partial.write_bytes(content)
        partial.replace(directory / name)
