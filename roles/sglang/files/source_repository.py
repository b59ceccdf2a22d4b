"""Reads SGLang's package at a tag from a git repository that is not trusted, and compares a checkout with the tag.

Runs on the host, as root, on repositories that other users own. Such a repository is asked for its references and its
directories only. Everything else is read through an empty repository of our own that borrows its objects, so that
nothing which it configures (hooks, filters, fsmonitor, transports, attributes) is executed or changes a byte; and
nothing in it is written.

As a program it looks whether a repository or checkout can be built from, and prints one sentence if it cannot.
"""

from __future__ import annotations

import argparse
import os
import posixpath
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from git_command import SourceTreeError, git, names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

IN_TAG = "python/sglang"
"""Where a tag holds what the package holds as ``sglang``."""

TRANSPORTS = "https:http:ssh:git"
SYMLINK, BLOBS = "120000", ("100644", "100755")
SHOWN = 10
"""How many names a sentence gives before it counts the others."""


@dataclass(frozen=True)
class Tag:
    """A tag whose objects can be read."""

    name: str
    commit: str
    """Object id of the commit that it names."""

    reader: Path
    """The bare repository of our own that reads the objects."""

    origin: str
    """The repository that it is from, for sentences."""


def some(found: Collection[str]) -> str:
    """The first names of a list, and how many more there are."""
    first = sorted(found)[:SHOWN]
    return ", ".join(first) + (f" and {len(found) - len(first)} more" if len(found) > len(first) else "")


def local_path(repository: str) -> Path | None:
    """The directory that a repository's name means; None if it is the URL of another machine's."""
    plain = repository.removeprefix("file://")
    return Path(plain) if plain.startswith("/") else None


def make_reader(scratch: Path, objects: Path | None = None) -> Path:
    """Makes an empty bare repository in ``scratch`` that borrows the objects of a directory."""
    reader = scratch / "reader"
    git("init", "--quiet", "--bare", "--template=", str(reader), cwd=scratch)
    if objects:
        (reader / "objects" / "info").mkdir(exist_ok=True)
        (reader / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
    return reader


def ask(repository: Path, scratch: Path, *question: str) -> str:
    """What ``git rev-parse`` says in a repository, whoever owns it.

    Raises:
        SourceTreeError: git refuses; the message holds what it says.
    """
    # In a file, as older versions of git take safe.directory from nowhere else. rev-parse executes nothing.
    trusting = scratch / "gitconfig"
    trusting.write_text("[safe]\n\tdirectory = *\n", encoding="ascii")
    more = {"GIT_CONFIG_GLOBAL": str(trusting)}
    answer = git("rev-parse", "--path-format=absolute", *question, cwd=repository, more=more)
    return os.fsdecode(answer).removesuffix("\n")


def open_local(repository: Path, tag: str, scratch: Path) -> Tag:
    """A tag of a repository on this host, which stays as it is.

    Raises:
        SourceTreeError: there is no such repository or tag.
    """
    if not repository.is_dir():
        raise SourceTreeError(f"{repository} is not there")
    try:
        common = Path(ask(repository, scratch, "--git-common-dir"))
    except SourceTreeError as error:
        raise SourceTreeError(f"{repository} is not a git repository: {error}") from error
    try:
        named = ask(repository, scratch, "--verify", "--quiet", f"refs/tags/{tag}")
    except SourceTreeError as error:
        raise SourceTreeError(f"{repository} has no tag {tag}: fetch it there, or name another") from error
    reader = make_reader(scratch, common / "objects")
    return Tag(tag, peeled(named, reader, str(repository)), reader, str(repository))


def open_remote(url: str, tag: str, scratch: Path) -> Tag:
    """A tag of a repository on another machine, fetched without its history.

    Raises:
        SourceTreeError: it cannot be had; the message holds what git says.
    """
    reader = make_reader(scratch)
    more = {"GIT_ALLOW_PROTOCOL": TRANSPORTS, "GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
    patience = ["-c", "http.lowSpeedLimit=1000", "-c", "http.lowSpeedTime=60"]
    reference = f"refs/tags/{tag}"
    fetch = [*patience, "fetch", "--quiet", "--depth=1", "--no-tags", "--", url, f"{reference}:{reference}"]
    try:
        git(*fetch, cwd=reader, more=more)
    except SourceTreeError as error:
        raise SourceTreeError(f"tag {tag} cannot be fetched from {url}: {error}") from error
    return Tag(tag, peeled(reference, reader, url), reader, url)


def open_tag(repository: str, tag: str, scratch: Path) -> Tag:
    """A tag of a repository that is a path on this host or a URL; raises SourceTreeError if it cannot be had."""
    path = local_path(repository)
    return open_local(path, tag, scratch) if path else open_remote(repository, tag, scratch)


def peeled(name: str, reader: Path, origin: str) -> str:
    """Object id of the commit that a tag means; raises SourceTreeError if it is none or is not there."""
    try:
        return git("rev-parse", "--verify", f"{name}^{{commit}}", cwd=reader).decode().strip()
    except SourceTreeError as error:
        raise SourceTreeError(f"the tag in {origin} names no commit that is there: {error}") from error


def contents(ids: Iterable[str], tag: Tag) -> list[bytes]:
    """The bytes of objects, in order; raises SourceTreeError if the repository lacks one."""
    wanted = list(ids)
    output = git("cat-file", "--batch", cwd=tag.reader, stdin="".join(f"{name}\n" for name in wanted).encode())
    found, position = [], 0
    for name in wanted:
        end = output.index(b"\n", position)
        fields = output[position:end].split()
        if len(fields) != 3:
            raise SourceTreeError(f"{tag.origin} lacks the object {name} of {tag.name}: it is an incomplete clone")
        start = end + 1
        found.append(output[start : start + int(fields[2])])
        position = start + int(fields[2]) + 1
    return found


def resolved(path: str, links: Mapping[str, str]) -> str:
    """A path of a tree with the tree's symbolic links followed; it need not be there."""
    for _ in range(40):
        parts = path.split("/")
        prefixes = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        link = next((prefix for prefix in prefixes if prefix in links), None)
        if link is None:
            break
        beyond = path[len(link) :].lstrip("/")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link), links[link], beyond))
    return path


def package_files(tag: Tag, wanted: Collection[str]) -> dict[str, bytes]:
    """Those of some paths of the package (``sglang/...``) that the tag has, with what it has there.

    Modes do not matter, symbolic links are followed within the tag, and attributes are not applied.

    Raises:
        SourceTreeError: an object is missing.
    """
    lines = (line.partition("\t") for line in names(git("ls-tree", "-r", "-z", tag.commit, cwd=tag.reader)))
    entries = {path: (described.split()[0], described.split()[2]) for described, _, path in lines}
    linked = {path: name for path, (mode, name) in entries.items() if mode == SYMLINK}
    links = dict(zip(linked, map(os.fsdecode, contents(linked.values(), tag)), strict=True))
    meant = {path: entries.get(resolved(f"python/{path}", links), ("", "")) for path in wanted}
    there = {path: name for path, (mode, name) in meant.items() if mode in BLOBS}
    return dict(zip(there, contents(there.values(), tag), strict=True))


def check_is_package(tag: Tag, package: Mapping[str, bytes]) -> None:
    """Compares a tag with the files of the stock package, byte by byte; what only the tag has does not matter.

    Raises:
        SourceTreeError: the tag lacks files of the package, or they differ; the message names them.
    """
    files = package_files(tag, package.keys())
    missing = [path for path in package if path not in files]
    different = [path for path, content in files.items() if content != package[path]]
    said = [f"it lacks {some(missing)}"] if missing else []
    said += [f"it differs in {some(different)}"] if different else []
    if said:
        raise SourceTreeError(
            f"tag {tag.name} of {tag.origin} is not the package that the series is made for: {'; '.join(said)}"
        )


def index_differences(checkout: Path, tag: Tag, scratch: Path) -> list[str]:
    """Files that are staged in a checkout otherwise than in the tag, from a copy of the checkout's index."""
    index = Path(ask(checkout, scratch, "--git-path", "index"))
    if not index.is_file():
        return []
    copy = shutil.copyfile(index, scratch / "index-of-checkout")
    # A split index keeps most entries in a second file, looked for beside the repository's other files.
    for shared in index.parent.glob("sharedindex.*"):
        shutil.copyfile(shared, tag.reader / shared.name)
    comparing = ["diff-index", "--cached", "-z", "--name-only", "--no-renames", tag.commit, "--", IN_TAG]
    return names(git("-c", "core.fileMode=false", *comparing, cwd=tag.reader, more={"GIT_INDEX_FILE": str(copy)}))


def worktree_differences(checkout: Path, tag: Tag, scratch: Path) -> dict[str, str]:
    """Files that are in a checkout otherwise than in the tag: path to what became of them."""
    more = {"GIT_INDEX_FILE": str(scratch / "index-of-tag")}
    here = ["-c", "core.fileMode=false", f"--git-dir={tag.reader}", f"--work-tree={checkout}"]
    git(*here, "read-tree", f"--prefix={IN_TAG}/", f"{tag.commit}:{IN_TAG}", cwd=checkout, more=more)
    # The comparison is by content: an index of our own knows no file's time yet, nor what a checkout's index hides.
    git(*here, "update-index", "-q", "--really-refresh", cwd=checkout, more=more)
    changed = names(git(*here, "diff-files", "-z", "--name-status", "--no-renames", cwd=checkout, more=more))
    excluded = Path(ask(checkout, scratch, "--git-path", "info/exclude"))
    ignoring = ["--exclude-standard", *([f"--exclude-from={excluded}"] if excluded.is_file() else [])]
    others = names(git(*here, "ls-files", "-z", "--others", *ignoring, "--", IN_TAG, cwd=checkout, more=more))
    words = {"D": "deleted"}
    return dict.fromkeys(others, "untracked") | {
        path: words.get(letter, "modified") for letter, path in zip(changed[::2], changed[1::2], strict=True)
    }


def head_differences(checkout: Path, tag: Tag, scratch: Path) -> list[str]:
    """Files that the commit under a checkout has otherwise than the tag."""
    try:
        head = ask(checkout, scratch, "--verify", "--quiet", "HEAD")
    except SourceTreeError:  # A repository without a commit.
        return []
    return names(git("diff-tree", "-r", "-z", "--name-only", "--no-renames", tag.commit, head, "--", IN_TAG,
                     cwd=tag.reader))  # fmt: skip


def check_is_tag(checkout: Path, tag: Tag, generated: Collection[str], scratch: Path) -> None:
    """Compares the package's directory in a checkout with the tag: its files, its index and its commit.

    Raises:
        SourceTreeError: something differs; the message has the names.
    """
    if not (checkout / ".git").exists():
        raise SourceTreeError(f"{checkout} is not a checkout: it has no working tree")
    found: dict[str, list[str]] = {}
    for path in head_differences(checkout, tag, scratch):
        found.setdefault(path, []).append("committed")
    for path in index_differences(checkout, tag, scratch):
        found.setdefault(path, []).append("staged")
    for path, what in worktree_differences(checkout, tag, scratch).items():
        if what != "untracked" or path.removeprefix("python/") not in generated:
            found.setdefault(path, []).append(what)
    if found:
        listed = some([f"{path} ({', '.join(what)})" for path, what in found.items()])
        raise SourceTreeError(
            f"{checkout} differs from its tag {tag.name} in {len(found)} file{'s' * (len(found) > 1)}: {listed}; "
            "turn what you need of it into a patch of the series, and take a clean checkout"
        )


def open_checkout(checkout: Path, tag: str, generated: Collection[str], scratch: Path) -> Tag:
    """The tag of a checkout that holds nothing else; raises SourceTreeError if it does, or lacks the tag."""
    opened = open_local(checkout, tag, scratch)
    check_is_tag(checkout, opened, generated, scratch)
    return opened


def main() -> int:
    """Command line; prints nothing if a release can be built from what is named, else one sentence."""
    parser = argparse.ArgumentParser(description="Looks whether a repository or checkout on this host can be used.")
    parser.add_argument("--tag", required=True, help="the release's tag")
    parser.add_argument("--repository", help="repository whose tag is looked for; one of another machine is left alone")
    parser.add_argument("--checkout", type=Path, help="checkout that must hold the tag and nothing else")
    parser.add_argument("--generated", action="append", default=[], help="path of the package that a build makes")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="source-repository-") as scratch:
            if options.checkout:
                open_checkout(options.checkout, options.tag, options.generated, Path(scratch))
            elif path := local_path(options.repository or ""):
                open_local(path, options.tag, Path(scratch))
    except SourceTreeError as error:
        print(" ".join(str(error).split()))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
