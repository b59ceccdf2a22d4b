"""A tiny release: a stock wheel, a series of two patches and their manifest, and the tag that the wheel is from."""

import hashlib
import json
import subprocess
import zipfile

GENERATED = ["sglang/_version.py", "sglang/_patch_tree"]
STOCK = {
    "sglang/__init__.py": "a = 1\n",
    "sglang/srt/args.py": "one\ntwo\nthree\nfour\n",
    "sglang/long.py": "".join(f"line = {number}\n" for number in range(20)),
    "sglang/_version.py": "version = '1'\n",
    "sglang-1.dist-info/METADATA": "Name: sglang\n",
}
FIRST = """--- a/sglang/srt/args.py
+++ b/sglang/srt/args.py
@@ -1,4 +1,5 @@
 one
 two
+two and a half
 three
 four
"""
SECOND = """--- a/sglang/srt/args.py
+++ b/sglang/srt/args.py
@@ -1,5 +1,5 @@
 one
 two
-two and a half
+two and two thirds
 three
 four
"""
PATCHED = "one\ntwo\ntwo and two thirds\nthree\nfour\n"


def make_release(root, source_tree):
    """Write a stock wheel and a series of two patches, the second of which changes what the first adds."""
    wheels, patches = root / "wheels", root / "patches"
    wheels.mkdir()
    patches.mkdir()
    wheel = wheels / "sglang-1.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in STOCK.items():
            archive.writestr(name, text)
    (patches / "first.patch").write_text(FIRST)
    (patches / "second.patch").write_text(SECOND)
    (patches / "series").write_text("# the series\nfirst.patch\n\nsecond.patch  # on top\n")
    manifest = {
        "base": {"wheel": wheel.name, "sha256": source_tree.sha256(wheel)},
        "generated": GENERATED,
        "patches": [{"file": n, "sha256": source_tree.sha256(patches / n)} for n in ("first.patch", "second.patch")],
        "files": {"sglang/srt/args.py": hashlib.sha256(PATCHED.encode()).hexdigest()},
        # From git itself, so that the program is not its own judge.
        "tree": expected_tree(root),
    }
    (patches / "manifest.json").write_text(json.dumps(manifest))
    return root


def expected_tree(scratch):
    """The tree that git itself makes of the patched files, in an ordinary repository."""
    repository = scratch / "reference"
    (repository / "srt").mkdir(parents=True)
    (repository / "__init__.py").write_text("a = 1\n")
    (repository / "long.py").write_text(STOCK["sglang/long.py"])
    (repository / "srt/args.py").write_text(PATCHED)
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    return subprocess.run(
        ["git", "write-tree"], cwd=repository, check=True, capture_output=True, text=True
    ).stdout.strip()


def git(repository, *words):
    """Output of git in a repository, as its owner would call it."""
    identity = ["-c", "user.name=Owner", "-c", "user.email=owner@example.org"]
    run = subprocess.run(["git", *identity, *words], cwd=repository, check=True, capture_output=True, text=True)
    return run.stdout.strip()


def make_repository(root):
    """Make a repository with the package in the layout of a tag, and files that only the tag has; return its path."""
    repository = root / "repository"
    for name, text in STOCK.items():
        if name.startswith("sglang/") and name not in GENERATED:
            path = repository / "python" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
    (repository / "python/sglang/tag_only.py").write_text("x = 1\n")
    (repository / "python/pyproject.toml").write_text("[project]\n")
    (repository / ".gitignore").write_text("__pycache__/\n")
    git(repository, "init", "--quiet")
    commit(repository, "the tag")
    git(repository, "tag", "v1")
    return repository


def commit(repository, message):
    """Commit everything in a repository's working tree, byte by byte."""
    git(repository, "-c", "core.autocrlf=false", "add", "--all")
    git(repository, "commit", "--quiet", "--message", message)
