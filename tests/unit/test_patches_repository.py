"""scripts/patches apply and refresh: a series becomes commits, and the commits become the series."""

import json
import zipfile

import pytest
from patches_fixtures import HEADER, make_project, patches, record, wheel_of
from release_fixtures import STOCK, git

NEW_HEADER = HEADER.format(what="Something new", day=3)


@pytest.fixture
def series(tmp_path, source_tree):
    return make_project(tmp_path, source_tree)


@pytest.fixture
def run(tmp_path, capsys):
    """Runs scripts/patches on the project."""

    def run(command, *words, **more):
        return patches(tmp_path, command, *words, capsys=capsys, **more)

    return run


@pytest.fixture
def out(tmp_path, run, series):
    """The repository of the series."""
    assert series.is_dir()
    run("apply", tmp_path / "out")
    return tmp_path / "out"


def snapshot(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def commit(out, subject, body=NEW_HEADER, date="2026-11-05T23:30:00-0800"):
    git(out, "add", "--all")
    git(out, "commit", "--quiet", "--allow-empty", f"--date={date}", "--message", f"{subject}\n\n{body}")


def amend(out, date="2026-11-05T23:30:00-0800"):
    git(out, "commit", "--quiet", "--amend", "--no-edit", "--all", f"--date={date}")


def args(out):
    return out / "sglang/srt/args.py"


def test_one_commit_for_each_patch_on_the_stock_source(series, out, source_tree):
    assert git(out, "log", "--reverse", "--format=%s|%an|%ae|%as").splitlines() == [
        "sglang 1|The stock source|stock@invalid|2000-01-01",
        "first.patch|Ann Author|ann@example.org|2026-01-01",
        "second.patch|Ann Author|ann@example.org|2026-01-02",
    ]
    assert git(out, "show", "--no-patch", "--format=%b") == HEADER.format(what="Count more exactly", day=2).strip()
    stock = git(out, "ls-tree", "--name-only", "-r", "HEAD~2").splitlines()
    assert stock == ["sglang/__init__.py", "sglang/long.py", "sglang/srt/args.py"]
    assert git(out, "rev-parse", "HEAD:sglang") == source_tree.read_manifest(series)["tree"]
    assert (out / "sglang/_version.py").read_text() == STOCK["sglang/_version.py"]
    assert git(out, "status", "--porcelain") == ""


def test_the_same_series_makes_the_same_commits(out, tmp_path, run):
    run("apply", tmp_path / "again")
    assert git(out, "rev-parse", "HEAD") == git(tmp_path / "again", "rev-parse", "HEAD")


def test_applied_and_refreshed_not_a_byte_changes(series, out, run):
    manifest = json.loads((series / "manifest.json").read_text())
    (series / "manifest.json").write_text(json.dumps(manifest, indent=4))
    before = snapshot(series)
    assert run("refresh", out).splitlines() == [
        "first.patch: unchanged",
        "second.patch: unchanged",
        f"{series}: unchanged",
    ]
    assert snapshot(series) == before


def test_a_changed_patch_is_written_anew_and_is_good(series, out, run, source_tree):
    before = snapshot(series)
    args(out).write_text(args(out).read_text().replace("two thirds", "three quarters"))
    amend(out)
    assert run("refresh", out).splitlines() == [
        "first.patch: unchanged",
        "second.patch: changed",
        f"{series}: written: manifest.json, second.patch",
    ]
    after = snapshot(series)
    assert {name for name in before if before[name] != after[name]} == {"manifest.json", "second.patch"}
    assert after["second.patch"].decode() == HEADER.format(what="Count more exactly", day=2).replace(
        "2026-01-02", "2026-11-05"
    ) + (
        "---\n"
        "diff --git a/sglang/srt/args.py b/sglang/srt/args.py\n--- a/sglang/srt/args.py\n+++ b/sglang/srt/args.py\n"
        "@@ -1,5 +1,5 @@\n one\n two\n-two and a half\n+two and three quarters\n three\n four\n"
    )
    assert run("check").count("ok ") == 2
    assert source_tree.read_manifest(series)["tree"] == git(out, "rev-parse", "HEAD:sglang")
    assert run("refresh", out).endswith(f"{series}: unchanged\n")
    run("apply", out.parent / "again")
    assert run("refresh", out.parent / "again").endswith(f"{series}: unchanged\n")
    assert snapshot(series) == after


def test_a_dry_run_writes_nothing(series, out, run):
    before = snapshot(series)
    args(out).write_text("another\n")
    amend(out)
    said = run("refresh", out, "--dry-run")
    assert "second.patch: would be changed\n" in said
    assert f"{series}: would be written: manifest.json, second.patch\n" in said
    assert snapshot(series) == before


def test_a_patch_that_only_moved_keeps_its_date(series, out, run):
    path = out / "sglang/long.py"
    path.write_text(path.read_text().replace("line = 15\n", "line = 'fifteen'\n"))
    commit(out, "third.patch")
    run("refresh", out)
    before = (series / "third.patch").read_text()
    # The first patch gets a line more, as by rebase -i.
    third = git(out, "rev-parse", "HEAD")
    git(out, "reset", "--quiet", "--hard", "HEAD~2")
    path.write_text("line = -1\n" + path.read_text())
    amend(out)
    git(out, "cherry-pick", f"{third}~1", third)
    assert "first.patch: changed\nsecond.patch: unchanged\nthird.patch: moved\n" in run("refresh", out)
    assert "@@ -13,7 +13,7 @@" in before
    assert (series / "third.patch").read_text() == before.replace("@@ -13,7 +13,7 @@", "@@ -14,7 +14,7 @@")
    assert run("check").count("ok ") == 3
    assert run("refresh", out).endswith(f"{series}: unchanged\n")


def test_a_changed_header_is_a_change(series, out, run):
    body = git(out, "show", "--no-patch", "--format=%b").replace("more exactly", "better")
    git(out, "commit", "--quiet", "--amend", "--date=2026-11-05T12:00:00Z", "--message", f"second.patch\n\n{body}")
    assert "second.patch: changed" in run("refresh", out)
    text = (series / "second.patch").read_text()
    assert text.startswith("Description: Count better\n With a second line.\n")
    assert "Last-Update: 2026-11-05\n" in text
    assert run("refresh", out).endswith(f"{series}: unchanged\n")


def test_patches_come_go_and_change_places(series, out, run, source_tree):
    (out / "sglang/new.py").write_text("new = 1\n")
    (out / "sglang/empty.py").write_text("")
    (out / "sglang/__init__.py").unlink()
    commit(out, "third.patch")
    third = git(out, "rev-parse", "HEAD")
    git(out, "reset", "--quiet", "--hard", "HEAD~3")
    git(out, "cherry-pick", third, "series@{2}~1")
    assert run("refresh", out).splitlines() == [
        "third.patch: new",
        "first.patch: unchanged",
        "second.patch: removed",
        f"{series}: written: manifest.json, second.patch, series, third.patch",
    ]
    assert (series / "series").read_text() == "# the series\nthird.patch\nfirst.patch\n"
    assert not (series / "second.patch").exists()
    assert source_tree.read_manifest(series)["files"]["sglang/__init__.py"] is None
    assert "Last-Update: 2026-11-05\n\ndiff --git a/sglang/__init__.py" in (series / "third.patch").read_text()
    assert run("check").count("ok ") == 2
    run("apply", out.parent / "again")
    assert run("refresh", out.parent / "again").endswith(f"{series}: unchanged\n")


def test_a_rename_becomes_a_deletion_and_an_addition(series, tmp_path, run):
    path = series / "first.patch"
    moved = "similarity index 100%\nrename from sglang/__init__.py\nrename to sglang/a.py\n"
    path.write_text(f"{path.read_text()}diff --git a/sglang/__init__.py b/sglang/a.py\n{moved}")
    run("apply", tmp_path / "out")
    assert "first.patch: changed" in run("refresh", tmp_path / "out")
    assert "\ndeleted file mode 100644\n--- a/sglang/__init__.py\n+++ /dev/null\n" in path.read_text()
    assert run("check").count("ok ") == 2


def test_a_header_that_was_spoilt_meanwhile_is_not_written(series, out, run):
    path = series / "second.patch"
    path.write_text(path.read_text().replace("2026-01-02", "soon"))
    assert "would not be good: second.patch has a Last-Update that is not a date" in run("refresh", out, status=1)


def test_this_users_git_does_not_matter(series, out, run, tmp_path, monkeypatch):
    (tmp_path / ".gitconfig").write_text(
        "[diff]\n noprefix = true\n context = 1\n algorithm = patience\n external = false\n mnemonicPrefix = true\n"
        "[core]\n autocrlf = true\n abbrev = 5\n quotePath = false\n[color]\n ui = always\n[commit]\n gpgSign = true\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIFF_OPTS", "--unified=0")
    before = snapshot(series)
    run("refresh", out)
    run("apply", tmp_path / "again")
    assert git(out, "rev-parse", "HEAD") == git(tmp_path / "again", "rev-parse", "HEAD")
    assert snapshot(series) == before


def test_line_ends_and_odd_bytes_are_kept(series, out, run):
    odd = "sglang/odd name [1].py"
    (out / odd).write_bytes(b"a\r\nb\xff\nc without end")
    git(out, "config", "core.autocrlf", "true")
    commit(out, "third.patch")
    assert "third.patch: new" in run("refresh", out)
    run("apply", out.parent / "again")
    assert (out.parent / "again" / odd).read_bytes() == b"a\r\nb\xff\nc without end"
    assert run("check").count("ok ") == 3
    assert series.is_dir()


def dirty(out):
    args(out).write_text("x\n")


def merge(out):
    git(out, "checkout", "--quiet", "-b", "side", "HEAD~1")
    (out / "sglang/side.py").write_text("x\n")
    commit(out, "side.patch")
    git(out, "checkout", "--quiet", "series")
    git(out, "merge", "--quiet", "--no-edit", "side")


def nothing(out):
    commit(out, "third.patch")


def headless(out):
    args(out).write_text("x\n")
    commit(out, "third.patch", "Some words.")


def fixup(out):
    args(out).write_text("x\n")
    commit(out, "fixup! second.patch")


def twice(out):
    args(out).write_text("x\n")
    commit(out, "first.patch")


def outside(out):
    (out / "setup.py").write_text("x\n")
    commit(out, "third.patch")


def program(out):
    git(out, "config", "core.fileMode", "true")
    args(out).chmod(0o755)
    commit(out, "third.patch")


def link(out):
    (out / "sglang/link.py").symlink_to("/etc/passwd")
    commit(out, "third.patch")


def binary(out):
    (out / "sglang/x.bin").write_bytes(b"\0\1\2")
    commit(out, "third.patch")


def generated(out):
    git(out, "add", "--force", "sglang/_version.py")
    commit(out, "third.patch")


def another_base(out):
    git(out, "checkout", "--quiet", "--orphan", "other")
    commit(out, "sglang 1")


def no_repository(out):
    (out / ".git").rename(out.parent / "aside")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (dirty, "/out has changes that are not committed: sglang/srt/args.py"),
        (merge, "/out has a merge commit, "),
        (nothing, " (third.patch) changes nothing"),
        (headless, " (third.patch) has no Description or Subject in its header and has no Author or From in its"),
        (fixup, " (fixup! second.patch): its subject must be the file name of a patch, such as batch-limit.patch"),
        (twice, "/out has more than one commit that is called first.patch"),
        (outside, " (third.patch) touches a file outside of sglang/: setup.py"),
        (program, " (third.patch) makes sglang/srt/args.py something else than a plain file (mode 100755)"),
        (link, " (third.patch) makes sglang/link.py something else than a plain file (mode 120000)"),
        (binary, " (third.patch): Binary files /dev/null and b/sglang/x.bin differ; a series holds text only"),
        (generated, " (third.patch) touches a generated file: sglang/_version.py"),
        (another_base, "/out does not begin with the stock source of the series"),
        (no_repository, "/out is not a repository that `apply` made"),
    ],
)
def test_what_cannot_be_a_series_is_refused_and_nothing_is_written(series, out, run, change, reason):
    before = snapshot(series)
    change(out)
    said = run("refresh", out, status=1)
    assert said.startswith("patches: ")
    assert said.count("\n") == 1
    assert reason in said
    assert snapshot(series) == before


def test_a_directory_that_is_there_is_not_touched(out, run):
    before = git(out, "rev-parse", "HEAD")
    assert "/out is there already" in run("apply", out, status=1)
    assert git(out, "rev-parse", "HEAD") == before


def test_a_repository_that_is_not_there_is_named(series, tmp_path, run):
    assert f"{tmp_path}/none is not a repository that `apply` made" in run("refresh", tmp_path / "none", status=1)
    assert series.is_dir()


def test_a_patch_without_a_header_is_not_made_a_commit(series, tmp_path, run):
    path = series / "second.patch"
    path.write_text(path.read_text().replace("Author:", "By:"))
    assert "second.patch has no Author or From in its header: mend" in run("apply", tmp_path / "out", status=1)


@pytest.fixture
def newer(series, tmp_path, source_tree):
    """A newer release, in which the first patch still applies and the second does not."""
    wheel = wheel_of(tmp_path)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in STOCK.items():
            archive.writestr(name, text.replace("four", "four and a half"))
    directory = series.parent / "sglang-2"
    directory.mkdir()
    manifest = json.loads((series / "manifest.json").read_text()) | {"patches": [], "files": {}, "tree": ""}
    manifest["base"] = manifest["base"] | {"version": "2", "sha256": source_tree.sha256(wheel)}
    record(directory, manifest)
    first = series / "first.patch"
    first.write_text(
        first.read_text().replace("@@ -1,4 +1,5 @@", "@@ -1,3 +1,4 @@").replace(" three\n four\n", " three\n")
    )
    return directory


def test_a_series_moves_to_a_newer_release(newer, tmp_path, run, source_tree):
    out = tmp_path / "out"
    said = run("apply", out, "--series", "1", version="2", status=1)
    assert "second.patch does not apply: " in said
    assert f"The patches before it are commits in {out}. To go on: cd {out}; git apply --reject " in said
    assert git(out, "log", "--format=%s").splitlines() == ["first.patch", "sglang 2"]
    assert "is unfinished: patches wait in" in run("refresh", out, version="2", status=1)
    # By hand, as the sentence says.
    args(out).write_text(args(out).read_text().replace("two and a half", "two and two thirds"))
    assert "has changes that are not committed: sglang/srt/args.py" in run(
        "apply", out, "--continue", version="2", status=1
    )
    git(out, "add", "--all")
    git(out, "commit", "--quiet", "--file=.git/patches-to-come/second.patch.message")
    assert "2 patches on the stock source of SGLang 2" in run("apply", out, "--continue", version="2")
    assert "no patches wait in" in run("apply", out, "--continue", version="2", status=1)
    run("refresh", out, version="2")
    assert source_tree.read_series(newer) == ["first.patch", "second.patch"]
    assert run("check", version="2").count("ok ") == 2
