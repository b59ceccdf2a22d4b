"""The source tree of a release: made from what the manifest names, and refused if anything differs."""

import hashlib
import json
import subprocess
import sys
import zipfile

import pytest
from release_fixtures import FIRST, GENERATED, PATCHED

from blackwell import paths

PROGRAM = "roles/sglang/files/source_tree.py"


def build(source_tree, release):
    return source_tree.build(release / "patches", release / "wheels", release / "src")[0]


def edit(path, change):
    path.write_text(change(path.read_text()))


def test_the_series_is_applied_in_order(source_tree, release):
    build(source_tree, release)
    assert (release / "src/sglang/srt/args.py").read_text() == PATCHED
    assert (release / "src/sglang-1.dist-info/METADATA").is_file()


def test_modes_line_ends_and_generated_files_are_not_in_the_hash(source_tree, release):
    tree = build(source_tree, release)
    (release / "src/sglang/srt/args.py").chmod(0o755)
    (release / "src/sglang/_version.py").write_text("version = '2'\n")
    (release / "src/.gitattributes").write_text("* text eol=crlf\n")
    assert source_tree.tree_hash(release / "src", GENERATED) == tree
    edit(release / "src/sglang/__init__.py", lambda text: text.replace("\n", "\r\n"))
    assert source_tree.tree_hash(release / "src", GENERATED) != tree


def test_the_server_can_read_which_tree_it_runs(source_tree, release):
    tree = build(source_tree, release)
    assert (release / "src/sglang/_patch_tree").read_text() == f"{tree}\n"


def test_a_repository_around_the_tree_does_not_matter(source_tree, release):
    subprocess.run(["git", "init", "-q"], cwd=release, check=True)
    (release / ".gitignore").write_text("*\n")
    build(source_tree, release)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: edit(r / "patches/first.patch", lambda t: t.replace("half", "third")), "first.patch was edited"),
        (lambda r: (r / "patches/second.patch").unlink(), "second.patch is in the series but not there"),
        (lambda r: (r / "patches/series").write_text("second.patch\nfirst.patch\n"), "lists ['second.patch', 'first"),
        (lambda r: (r / "patches/series").write_text("first.patch\n"), "lists ['first.patch'], the manifest has"),
        (lambda r: (r / "wheels/sglang-1.whl").unlink(), "sglang-1.whl is missing"),
        (lambda r: (r / "wheels/sglang-1.whl").write_bytes(b"x"), "sglang-1.whl is not the base of the series"),
        (lambda r: (r / "src").mkdir(), "is there already"),
    ],
)
def test_what_differs_from_the_manifest_is_refused(source_tree, release, change, reason):
    change(release)
    existed = (release / "src").exists()
    with pytest.raises(source_tree.SourceTreeError, match=r".") as error:
        build(source_tree, release)
    assert reason in str(error.value)
    assert (release / "src").exists() == existed
    assert not list(release.glob(".src-*"))


def manifest(release, change):
    path = release / "patches/manifest.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def test_a_tree_that_is_not_the_manifests_is_refused(source_tree, release):
    manifest(release, lambda data: data.update(tree="0" * 40))
    with pytest.raises(source_tree.SourceTreeError, match=r"the patched tree is .* has 0000"):
        build(source_tree, release)
    assert not (release / "src").exists()


def test_a_patch_that_does_not_apply_is_named(source_tree, release):
    (release / "patches/first.patch").write_text(FIRST.replace(" three", " drei"))
    digest = source_tree.sha256(release / "patches/first.patch")
    manifest(release, lambda data: data["patches"][0].update(sha256=digest))
    with pytest.raises(source_tree.SourceTreeError, match=r"first\.patch does not apply"):
        build(source_tree, release)


def test_a_patch_that_the_tree_has_already_is_named(source_tree, release):
    again = FIRST.replace("@@ -1,4 +1,5 @@", "@@ -1,4 +1,5 @@ again")
    (release / "patches/second.patch").write_text(again)
    digest = source_tree.sha256(release / "patches/second.patch")
    manifest(release, lambda data: data["patches"][1].update(sha256=digest))
    with pytest.raises(source_tree.SourceTreeError, match=r"second\.patch is applied already"):
        build(source_tree, release)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "touches what the manifest does not list under files: sglang/srt/args.py"),
        ({"sglang/srt/args.py": "0" * 64}, "makes other files than the manifest has: sglang/srt/args.py"),
        ({"sglang/srt/args.py": None}, "makes other files than the manifest has: sglang/srt/args.py"),
        (
            {"sglang/srt/args.py": hashlib.sha256(PATCHED.encode()).hexdigest(), "sglang/x.py": "0" * 64},
            "does not touch what the manifest lists under files: sglang/x.py",
        ),
    ],
)
def test_files_that_are_not_the_manifests_are_named(source_tree, release, files, reason):
    manifest(release, lambda data: data.update(files=files))
    with pytest.raises(source_tree.SourceTreeError) as error:
        build(source_tree, release)
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.unlink(), "manifest.json is missing"),
        (lambda path: path.write_text("{"), "manifest.json is not JSON"),
        (lambda path: path.write_text('{"base": {}, "tree": ""}'), "manifest.json lacks files, generated, patches"),
        (lambda path: edit(path, lambda t: t.replace("sglang/_patch_tree", "x")), "does not list sglang/_patch_tree"),
    ],
)
def test_a_manifest_that_cannot_be_used_is_named(source_tree, release, change, reason):
    change(release / "patches/manifest.json")
    with pytest.raises(source_tree.SourceTreeError, match=reason):
        build(source_tree, release)


def test_a_wheel_that_writes_outside_is_refused(source_tree, release):
    wheel = release / "wheels/sglang-1.whl"
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("../evil.py", "")
    manifest(release, lambda data: data["base"].update(sha256=source_tree.sha256(wheel)))
    with pytest.raises(source_tree.SourceTreeError, match=r"outside of the tree: \.\./evil\.py"):
        build(source_tree, release)


def test_the_command_line_says_one_sentence(release):
    (release / "wheels/sglang-1.whl").unlink()
    words = [f"--{name}={release / directory}" for name, directory in
             (("patches", "patches"), ("wheels", "wheels"), ("out", "src"))]  # fmt: skip
    run = subprocess.run([sys.executable, paths.ROOT / PROGRAM, *words], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1
    assert run.stderr.startswith("source_tree: ")


def test_the_shipped_series_agree_with_their_manifests(source_tree):
    shipped = sorted((paths.ROOT / "patches").glob("*/manifest.json"))
    assert shipped
    for path in shipped:
        source_tree.check_series(path.parent, source_tree.read_manifest(path.parent))
        assert {patch.name for patch in path.parent.glob("*.patch")} == set(source_tree.read_series(path.parent))
