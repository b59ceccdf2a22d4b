"""Makes the source tree of a release: the stock package, the patch series, and proof that the result is the right one.

Runs on the host while a release is built, and on the maintainer's machine. Needs Python >= 3.10 and git, nothing else.

The tree hash is git's (``git write-tree``) over the ``sglang/`` directory without the manifest's generated files, with
every file taken as plain bytes of mode 100644: the same whether the files came from the package or from the tag.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Nothing that a user or a system configured for git may change what is hashed or applied.
GIT_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
RAW_BYTES = "* -text -eol -ident -filter -working-tree-encoding\n"
PACKAGE = "sglang"


class SourceTreeError(Exception):
    """The tree cannot be made as the manifest says; the message is one sentence that names the file."""


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_series(patches: Path) -> list[str]:
    """Names in quilt's ``series`` file, in order; comments and empty lines are skipped."""
    lines = (line.split("#")[0].strip() for line in (patches / "series").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


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


def git(*arguments: str, cwd: Path) -> str:
    """Output of a git command, with its whole error text in the exception if it fails.

    Raises:
        SourceTreeError: git is missing or failed.
    """
    try:
        # Without the ceiling, git would look for a repository above, and apply patches relative to that.
        environment = {**os.environ, **GIT_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(cwd.resolve().parent)}
        run = subprocess.run(["git", *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise SourceTreeError("git is not installed") from error
    if run.returncode:
        raise SourceTreeError(f"git {' '.join(arguments)}: {run.stderr.strip()}")
    return run.stdout


def apply_patch(patch: Path, tree: Path) -> None:
    """Applies one patch, whole or not at all.

    Raises:
        SourceTreeError: it does not apply; the message holds what git says.
    """
    try:
        # Outside of a repository `git apply` is strict about context and writes nothing unless everything applies.
        git("apply", "--whitespace=nowarn", str(patch.resolve()), cwd=tree)
    except SourceTreeError as error:
        raise SourceTreeError(f"{patch} does not apply to the tree below it in the series: {error}") from error


def tree_hash(tree: Path, generated: list[str]) -> str:
    """Hash of ``tree/sglang`` as git would store it, without the generated files (paths relative to ``tree``).

    Raises:
        SourceTreeError: git is missing or failed.
    """
    with tempfile.TemporaryDirectory(prefix="source-tree-") as scratch:
        repository = Path(scratch) / "repository"
        git("init", "--quiet", "--bare", str(repository), cwd=tree)
        (repository / "info").mkdir(exist_ok=True)
        (repository / "info" / "attributes").write_text(RAW_BYTES, encoding="utf-8")
        store = [f"--git-dir={repository}", f"--work-tree={tree}"]
        plain = ["-c", "core.fileMode=false", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false"]
        excluded = [f":(exclude,literal){name}" for name in generated]
        git(*store, *plain, "add", "--force", "--", PACKAGE, *excluded, cwd=tree)
        return git(*store, "write-tree", f"--prefix={PACKAGE}/", cwd=tree).strip()


def build(patches: Path, wheels: Path, out: Path) -> str:
    """Makes ``out`` from the wheel and the series that a patch directory describes; returns its tree hash.

    ``out`` appears whole or not at all.

    Raises:
        SourceTreeError: anything differs from the manifest, or ``out`` exists.
    """
    if out.exists():
        raise SourceTreeError(f"{out} is there already, and a source tree is never changed")
    manifest = json.loads((patches / "manifest.json").read_text(encoding="utf-8"))
    series = check_series(patches, manifest)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as scratch:
        tree = Path(scratch) / "tree"
        tree.mkdir(mode=0o755)
        unpack_wheel(wheels / manifest["base"]["wheel"], manifest["base"]["sha256"], tree)
        for patch in series:
            apply_patch(patch, tree)
        found = tree_hash(tree, manifest["generated"])
        if found != manifest["tree"]:
            raise SourceTreeError(f"the patched tree is {found}, the manifest of {patches} has {manifest['tree']}")
        shutil.move(tree, out)
    return found


def main() -> int:
    """Command line; prints the tree hash, or one sentence to standard error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--patches", type=Path, required=True, help="directory with manifest.json, series and the patches"
    )
    parser.add_argument("--wheels", type=Path, required=True, help="directory with the stock wheel")
    parser.add_argument("--out", type=Path, required=True, help="source tree to make")
    options = parser.parse_args()
    os.umask(0o022)
    try:
        print(build(options.patches, options.wheels, options.out))
    except SourceTreeError as error:
        print(f"source_tree: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
