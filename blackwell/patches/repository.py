"""A patch series as a git repository that a maintainer edits: the stock source, then one commit for each patch."""

import re
import shutil
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from blackwell.patches import header
from blackwell.patches.check import file_problems, one_line
from blackwell.patches.errors import PatchesError
from blackwell.patches.host_programs import SourceTreeError, git_command, source_tree

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*\.patch")
PLAIN_FILE, NO_FILE = "100644", "000000"
PENDING = "patches-to-come"
"""Directory in .git with the patches that a stop left, in the form of a series."""

# Whatever this user's git is configured to do, the same commits give the same text.
DIFF = (
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--full-index",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)
INDEX_LINE = re.compile(rb"^index [0-9a-f]+\.\.[0-9a-f]+(?: [0-7]+)?\n", re.M)
"""Blob hashes, which change with every other patch to the same file, and which ``git apply`` has no use for."""


@dataclass(frozen=True)
class Commit:
    """A commit that is a patch."""

    id: str
    parent: str
    name: str
    """File name of the patch: the subject."""

    text: str
    """Header of the patch: the body."""

    day: str
    """The author's date, YYYY-MM-DD."""


def git(*words: str, out: Path, more: dict[str, str] | None = None, stdin: bytes = b"") -> str:
    """Output of git in a maintainer's repository, without this user's settings."""
    return git_command.git(*words, cwd=out, more=more, stdin=stdin).decode(errors="replace")


def make(directory: Path, wheel: Path, out: Path, manifest: dict) -> int:
    """Makes a repository of the stock source and of a series; returns the number of patches.

    ``directory`` holds the series, ``manifest`` is that of the release whose stock source the wheel holds. If a patch
    does not apply, the repository stays with those before it, and the others wait in it (``go_on``).

    Raises PatchesError or SourceTreeError.
    """
    if out.exists():
        raise PatchesError(f"{out} is there already: name a directory that is not")
    paths = [directory / name for name in source_tree.read_series(directory)]
    for path in paths:
        if not path.is_file():
            raise PatchesError(f"{path} is in the series but not there")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir(mode=0o755)
        source_tree.unpack_wheel(wheel, manifest["base"]["sha256"], tree)
        start(tree, manifest)
        put_aside(paths, tree)
        shutil.move(tree, out)
    return go_on(out)


def start(tree: Path, manifest: dict) -> None:
    """Makes an unpacked stock source a repository whose first commit it is."""
    git("init", "--quiet", "--template=", "--initial-branch=series", out=tree)
    for name, value in (("core.fileMode", "false"), ("core.autocrlf", "false")):
        git("config", name, value, out=tree)
    info = tree / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text(git_command.RAW_BYTES, encoding="ascii")
    ignored = [f"/{name}" for name in manifest["generated"]] + ["/*.dist-info/", "__pycache__/"]
    (info / "exclude").write_text("".join(f"{line}\n" for line in ignored), encoding="utf-8")
    base = manifest["base"]
    excluded = [f":(exclude,literal){name}" for name in manifest["generated"]]
    git("add", "--force", "--", source_tree.PACKAGE, *excluded, out=tree)
    message = f"{base['package']} {base['version']}\n\nThe stock source, from {base['wheel']}\n"
    commit(tree, message, ("The stock source", "stock@invalid"), "2000-01-01")


def commit(out: Path, message: str, author: tuple[str, str], day: str) -> None:
    """Commits what is staged; the same content gives the same commit."""
    name, mail = author
    when = f"{day}T12:00:00+0000"
    more = {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": mail,
        "GIT_AUTHOR_DATE": when,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": mail,
        "GIT_COMMITTER_DATE": when,
    }
    git("commit", "--quiet", "--file=-", out=out, more=more, stdin=message.encode())


def put_aside(paths: list[Path], out: Path) -> None:
    """Copies patches to where ``go_on`` takes them from."""
    pending = out / ".git" / PENDING
    pending.mkdir()
    for path in paths:
        shutil.copy(path, pending)
        message = pending / f"{path.name}.message"
        message.write_text(message_of(path), encoding="utf-8")
    (pending / "series").write_text("".join(f"{path.name}\n" for path in paths), encoding="utf-8")


def message_of(path: Path) -> str:
    """The commit message of a patch."""
    return f"{path.name}\n\n{header.text_of(header.split(path.read_bytes())[0])}\n"


def go_on(out: Path) -> int:
    """Commits the patches that wait in a repository; returns the number of patches that it has then.

    A patch whose name is a commit already was applied by hand. Raises PatchesError at the first that does not apply.
    """
    pending = out / ".git" / PENDING
    if not pending.is_dir():
        raise PatchesError(f"no patches wait in {out}")
    refuse_dirty(out)
    done = git("log", "--format=%s", "HEAD", out=out).splitlines()
    for name in source_tree.read_series(pending):
        if name not in done:
            commit_patch(pending / name, out)
    shutil.rmtree(pending)
    return len(git("log", "--format=%s", "HEAD", out=out).splitlines()) - 1


def commit_patch(path: Path, out: Path) -> None:
    """Applies a patch and commits it with its header; raises PatchesError, with how to go on, if it does not apply."""
    text = header.text_of(header.split(path.read_bytes())[0])
    if wrong := header.problems(text):
        raise PatchesError(f"{path.name} {' and '.join(wrong)}: mend the patch first")
    try:
        source_tree.apply_patch(path, out)
    except SourceTreeError as error:
        raise PatchesError(
            f"{path.name} does not apply: {one_line(error)}. The patches before it are commits in {out}. To go on: "
            f"cd {out}; git apply --reject .git/{PENDING}/{path.name}; mend what it left in *.rej files and remove "
            f"those; git add --all; git commit --file .git/{PENDING}/{path.name}.message (or change nothing and drop "
            f"the name from .git/{PENDING}/series); then call this command again with --continue"
        ) from error
    git("add", "--update", out=out)
    # By name, as the stock source's own .gitignore files may hide a new one.
    there = [name for name in source_tree.touched_files(path) if (out / name).exists()]
    git("add", "--force", "--", *there, out=out)
    commit(out, message_of(path), header.author(text), header.first_of(text, "Last-Update"))


def refuse_dirty(out: Path) -> None:
    """Raises PatchesError unless a directory is a repository without changes that are not committed."""
    try:
        # As the name of a mistake is better than that of a git command.
        dirty = git("status", "--porcelain", "-z", out=out).split("\0")
    except (SourceTreeError, NotADirectoryError, FileNotFoundError) as error:
        raise PatchesError(f"{out} is not a repository that `apply` made: {one_line(error)}") from error
    names = sorted(line[3:] for line in dirty if line)
    if names:
        raise PatchesError(f"{out} has changes that are not committed: {', '.join(names[:10])}")


def commits(out: Path, stock_tree: str, generated: list[str]) -> list[Commit]:
    """The commits of a repository that are patches, in order.

    ``stock_tree`` is the hash that the first commit's ``sglang/`` must have; no patch touches what is generated.
    Raises PatchesError for a repository that is dirty, not based on it, or not a line of commits that are patches.
    """
    refuse_dirty(out)
    if (out / ".git" / PENDING).is_dir():
        raise PatchesError(f"{out} is unfinished: patches wait in .git/{PENDING}; call `apply` with --continue first")
    roots = git("rev-list", "--max-parents=0", "HEAD", out=out).split()
    listed = [line.split() for line in git("ls-tree", roots[0], out=out).splitlines()]
    if len(roots) != 1 or [(line[2], line[3]) for line in listed] != [(stock_tree, source_tree.PACKAGE)]:
        raise PatchesError(f"{out} does not begin with the stock source of the series, whose tree is {stock_tree}")
    if merges := git("rev-list", "--merges", "--abbrev-commit", "HEAD", out=out).split():
        raise PatchesError(f"{out} has a merge commit, {merges[0]}: a series is one line of commits, so rebase it")
    ids = git("rev-list", "--reverse", "HEAD", out=out).split()
    found = [read_commit(out, parent, child, generated) for parent, child in pairwise(ids)]
    names = [commit.name for commit in found]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise PatchesError(f"{out} has more than one commit that is called {doubled[0]}")
    return found


def read_commit(out: Path, parent: str, child: str, generated: list[str]) -> Commit:
    """One commit as a patch; raises PatchesError if it cannot be one."""
    shown = git("show", "--no-patch", "--format=%ad%x00%s%x00%b", "--date=short", child, out=out)
    day, subject, body = shown.split("\0")
    text = body.strip("\n").removesuffix("\n---").rstrip()
    what = f"commit {child[:12]} ({subject})"
    if not NAME.fullmatch(subject):
        raise PatchesError(f"{what}: its subject must be the file name of a patch, such as batch-limit.patch")
    if wrong := header.problems(text):
        raise PatchesError(f"{what} {' and '.join(wrong)}: the body of its message is the patch's header")
    raw = git("diff-tree", "-r", "-z", "--raw", "--no-renames", parent, child, out=out).split("\0")
    for description, path in zip(raw[:-1:2], raw[1::2], strict=True):
        mode = description.split()[1]
        if mode not in (PLAIN_FILE, NO_FILE):
            raise PatchesError(f"{what} makes {path} something else than a plain file (mode {mode})")
        if wrong := file_problems((path,), generated):
            raise PatchesError(f"{what} {wrong[0]}")
    if len(raw) == 1:
        raise PatchesError(f"{what} changes nothing")
    return Commit(child, parent, subject, text, day)


def changes(reader: Path, commit: Commit) -> bytes:
    """What a commit changes, as text that is the same whichever git writes it.

    ``reader`` is a bare repository that borrows the commit's objects. Raises PatchesError for a binary file.
    """
    text = git_command.git("diff-tree", "-p", *DIFF, commit.parent, commit.id, cwd=reader)
    if binary := re.search(rb"^Binary files .* differ$", text, re.M):
        raise PatchesError(f"commit {commit.id[:12]} ({commit.name}): {binary[0].decode(errors='replace')}; "
                           "a series holds text only")  # fmt: skip
    return INDEX_LINE.sub(b"", text)
