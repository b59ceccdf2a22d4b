"""Compares a patch series with its manifest and with the stock source, and says everything that is wrong at once."""

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from blackwell.patches import header
from blackwell.patches.host_programs import SourceTreeError, source_tree

MOVES = re.compile(rb"^(?:rename|copy) (?:from|to) .*$", re.M)


@dataclass(frozen=True)
class Patch:
    """One patch of a series and what is wrong with it."""

    name: str
    header: str
    """Its header's text; empty if it is not there."""

    files: tuple[str, ...]
    """Paths that it touches."""

    problems: tuple[str, ...]
    """Words that complete "the patch ..."."""

    @property
    def title(self) -> str:
        """One line that says what it does."""
        return header.title(self.header)


@dataclass(frozen=True)
class Report:
    """What a check found."""

    patches: tuple[Patch, ...]
    problems: tuple[str, ...]
    """Sentences about the series as a whole."""

    tree: str
    """Hash of the tree that the series makes; empty if it makes none."""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and not any(patch.problems for patch in self.patches)


def check(directory: Path, wheel: Path) -> Report:
    """Checks each patch, applies the series to the stock source, and compares everything that the manifest says.

    Raises SourceTreeError if the manifest or the series cannot be read, or the wheel is not the base.
    """
    manifest = source_tree.read_manifest(directory)
    names = source_tree.read_series(directory)
    patches = [look(directory / name, manifest) for name in names]
    tree, problems = "", series_problems(directory, names, manifest)
    with tempfile.TemporaryDirectory(prefix="patches-check-") as scratch:
        stock = Path(scratch)
        source_tree.unpack_wheel(wheel, manifest["base"]["sha256"], stock)
        stopped = apply_all([directory / name for name in names], stock)
        if stopped:
            name, reason = stopped
            patches = [with_problem(patch, reason) if patch.name == name else patch for patch in patches]
        else:
            tree = source_tree.tree_hash(stock, manifest["generated"])
            problems += tree_problems(stock, [directory / name for name in names], manifest, tree)
    return Report(tuple(patches), tuple(problems), tree)


def look(path: Path, manifest: dict) -> Patch:
    """Examines one patch by itself."""
    if not path.is_file():
        return Patch(path.name, "", (), ("is in the series but not there",))
    content = path.read_bytes()
    text = header.text_of(header.split(content)[0])
    try:
        files, unreadable = tuple(source_tree.touched_files(path)), ()
    except SourceTreeError as error:
        files, unreadable = (), (f"cannot be read by git: {one_line(error)}",)
    problems = [*header.problems(text), *unreadable, *file_problems(files, manifest["generated"])]
    if moved := MOVES.search(header.split(content)[1]):
        problems.append(f"moves a file, which must be a deletion and an addition: {moved[0].decode(errors='replace')}")
    expected = {entry["file"]: entry["sha256"] for entry in manifest["patches"]}.get(path.name)
    if expected is None:
        problems.append("is not in the manifest")
    elif (found := source_tree.sha256(path)) != expected:
        problems.append(f"was edited: its sha256 is {found}, the manifest has {expected}")
    return Patch(path.name, text, files, tuple(problems))


def file_problems(files: tuple[str, ...], generated: list[str]) -> list[str]:
    """What is wrong with the paths that a patch touches."""
    outside = [path for path in files if not path.startswith(f"{source_tree.PACKAGE}/")]
    made = [path for path in files if path in generated]
    return [f"touches a file outside of {source_tree.PACKAGE}/: {path}" for path in outside] + [
        f"touches a generated file: {path}" for path in made
    ]


def series_problems(directory: Path, names: list[str], manifest: dict) -> list[str]:
    """What is wrong with ``series`` as a list."""
    found = [f"{name} is in the series twice" for name in sorted(set(names)) if names.count(name) > 1]
    strays = sorted({path.name for path in directory.glob("*.patch")} - set(names))
    found += [f"{name} is in the directory but not in the series" for name in strays]
    known = [entry["file"] for entry in manifest["patches"]]
    gone = [name for name in known if name not in names]
    found += [f"{name} is in the manifest but not in the series" for name in gone]
    if sorted(names) == sorted(known) and names != known:
        found.append(f"the series is in another order than the manifest: {', '.join(names)}")
    return found


def apply_all(paths: list[Path], tree: Path) -> tuple[str, str] | None:
    """Applies patches in order; name and reason of the first that does not apply, None if all do."""
    for path in paths:
        try:
            source_tree.apply_patch(path, tree)
        except SourceTreeError as error:
            return path.name, one_line(error)
    return None


def with_problem(patch: Patch, problem: str) -> Patch:
    """A patch with one more problem; one that is not there has been said to be missing."""
    missing = patch.problems[:1] == ("is in the series but not there",)
    return patch if missing else replace(patch, problems=(*patch.problems, problem))


def tree_problems(tree: Path, paths: list[Path], manifest: dict, found: str) -> list[str]:
    """What differs between the patched tree and the manifest."""
    problems = []
    try:
        source_tree.check_files(tree, paths, manifest)
    except SourceTreeError as error:
        problems.append(str(error))
    if found != manifest["tree"]:
        problems.append(f"the patched tree is {found}, the manifest has {manifest['tree'] or 'none'}")
    return problems


def one_line(error: Exception) -> str:
    """An error's message without its line breaks."""
    return " ".join(str(error).split())
