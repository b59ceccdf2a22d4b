"""The stock source from a tag: the same tree as from the package, by a repository that may be anyone's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import closed_port
from release_fixtures import PATCHED, STOCK, commit, git, make_repository

from blackwell import paths

CRLF = "sglang/srt/crlf.py"


@pytest.fixture
def repository(release):
    return make_repository(release)


def by(source_tree, release, **road):
    """Builds by a road; returns the tree, the commit, and every file of the result."""
    out = release / f"src-{len(list(release.iterdir()))}"
    words = {name: str(value) for name, value in ({"tag": "v1"} | road).items()} if road else None
    tree, commit_id = source_tree.build(release / "patches", release / "wheels", out, words)
    files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    return tree, commit_id, files


def refusal(source_tree, release, **road):
    before = sorted(release.iterdir())
    with pytest.raises(source_tree.SourceTreeError) as error:
        by(source_tree, release, **road)
    assert sorted(release.iterdir()) == before
    return str(error.value)


def snapshot(directory):
    """Everything below a directory that a reader must leave as it is."""
    return {
        path: (path.lstat().st_mtime_ns, path.lstat().st_mode, path.is_file() and path.read_bytes())
        for path in sorted(directory.rglob("*"))
    }


@pytest.mark.parametrize("road", ["repository", "checkout"])
def test_the_tree_is_that_of_the_package(source_tree, release, repository, road):
    tree, no_commit, files = by(source_tree, release)
    assert no_commit == ""
    assert files["sglang/srt/args.py"] == PATCHED.encode()
    before = snapshot(repository)
    assert by(source_tree, release, **{road: repository}) == (tree, git(repository, "rev-parse", "HEAD"), files)
    assert snapshot(repository) == before


@pytest.mark.parametrize("form", ["file://{}", "{}/.git"])
def test_other_names_of_a_repository_on_the_host(source_tree, release, repository, form):
    assert by(source_tree, release, repository=form.format(repository))[0] == by(source_tree, release)[0]


def test_an_annotated_tag_is_the_commit_that_it_names(source_tree, release, repository):
    git(repository, "tag", "--annotate", "--message", "x", "v1-annotated")
    assert by(source_tree, release, repository=repository, tag="v1-annotated")[1] == git(repository, "rev-parse", "v1")


def test_a_tag_whose_commit_is_not_checked_out(source_tree, release, repository):
    (repository / "python/sglang/__init__.py").write_text("later = 1\n")
    commit(repository, "later")
    assert by(source_tree, release, repository=repository)[0] == by(source_tree, release)[0]


def test_links_and_modes_of_the_tag_do_not_matter(source_tree, release, repository):
    moved = repository / "python/sglang/elsewhere"
    (repository / "python/sglang/srt").rename(moved)
    (repository / "python/sglang/srt").symlink_to("elsewhere")
    (repository / "python/sglang/__init__.py").rename(repository / "init.py")
    (repository / "python/sglang/__init__.py").symlink_to("../../init.py")
    (repository / "init.py").chmod(0o755)
    commit(repository, "links")
    git(repository, "tag", "--force", "v1")
    assert by(source_tree, release, repository=repository) [0] == by(source_tree, release)[0]  # fmt: skip


def test_a_link_that_leads_out_of_the_tag_is_a_missing_file(source_tree, release, repository):
    (release / "init.py").write_text(STOCK["sglang/__init__.py"])
    (repository / "python/sglang/__init__.py").unlink()
    (repository / "python/sglang/__init__.py").symlink_to("../../../init.py")
    commit(repository, "link")
    git(repository, "tag", "--force", "v1")
    assert "it lacks sglang/__init__.py" in refusal(source_tree, release, repository=repository)


def test_attributes_of_the_repository_change_no_byte(source_tree, release, repository):
    (repository / ".gitattributes").write_text("*.py eol=crlf export-ignore export-subst ident filter=lower\n")
    git(repository, "config", "filter.lower.smudge", f"touch {release}/executed")
    git(repository, "config", "filter.lower.required", "true")
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/attributes").write_text("* -text -filter\n")
    commit(repository, "attributes")
    git(repository, "tag", "--force", "v1")
    (repository / ".git/info/attributes").unlink()
    for road in ("repository", "checkout"):
        assert by(source_tree, release, **{road: repository})[0] == by(source_tree, release)[0]
    assert not (release / "executed").exists()


def test_nothing_that_a_repository_configures_is_executed(source_tree, release, repository):
    script = release / "evil"
    script.write_text(f"#!/bin/sh\ntouch {release}/executed\n")
    script.chmod(0o755)
    hooks = repository / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction", "query-watchman"):
        shutil.copy(script, hooks / hook)
    for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.process", "diff.evil.command", "core.sshCommand",
                 "diff.evil.textconv", "uploadpack.packObjectsHook", "diff.external", "core.pager"):  # fmt: skip
        git(repository, "config", name, str(script))
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/attributes").write_text("*.py filter=evil diff=evil\n")
    # Of another time, so that files are read again.
    os.utime(repository / "python/sglang/__init__.py", (1, 1))
    for road in ("repository", "checkout"):
        by(source_tree, release, **{road: repository})
    assert not (release / "executed").exists()
    # The same repository does execute it for its owner.
    subprocess.run(["git", "status"], cwd=repository, capture_output=True, check=False)
    assert (release / "executed").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a repository to another user")
def test_a_repository_of_another_user(source_tree, release, repository):
    for path in [repository, *repository.rglob("*")]:
        os.lchown(path, 12345, 12345)
    owned = subprocess.run(["git", "status"], cwd=repository, capture_output=True, text=True, check=False)
    assert "dubious ownership" in owned.stderr
    for road in ("repository", "checkout"):
        assert by(source_tree, release, **{road: repository})[0] == by(source_tree, release)[0]


def test_a_linked_working_tree_and_a_path_with_strange_characters(source_tree, release, repository):
    linked = release / "linked 'tree' [1]"
    git(repository, "worktree", "add", "--quiet", str(linked), "v1")
    assert by(source_tree, release, checkout=linked)[0] == by(source_tree, release)[0]
    (linked / "python/sglang/__init__.py").write_text("patched = 1\n")
    git(linked, "add", "--all")
    assert "python/sglang/__init__.py (staged, modified)" in refusal(source_tree, release, checkout=linked)


def test_settings_of_the_caller_do_not_matter(source_tree, release, repository, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    for road in ("repository", "checkout"):
        assert by(source_tree, release, **{road: repository})[1]


def test_a_file_that_differs_from_the_package_is_named(source_tree, release, repository):
    (repository / "python/sglang/__init__.py").write_text(STOCK["sglang/__init__.py"].replace("\n", "\r\n"))
    (repository / "python/sglang/srt/args.py").unlink()
    commit(repository, "differs")
    git(repository, "tag", "--force", "v1")
    said = refusal(source_tree, release, repository=repository)
    assert f"tag v1 of {repository} is not the package that the series is made for" in said
    assert "it lacks sglang/srt/args.py; it differs in sglang/__init__.py" in said


def patched(checkout):
    """What people do to a checkout by hand, each in its own way."""
    package = checkout / "python/sglang"
    (package / "__init__.py").write_text("patched = 1\n")
    (package / "srt/args.py").unlink()
    (package / "new.py").write_text("")
    (package / "staged.py").write_text("")
    git(checkout, "add", "python/sglang/staged.py")


def test_a_patched_checkout_is_refused_with_what_differs_and_stays_as_it_is(source_tree, release, repository):
    patched(repository)
    before = snapshot(repository)
    said = refusal(source_tree, release, checkout=repository)
    assert f"{repository} differs from its tag v1 in 4 files: " in said
    assert (
        "python/sglang/__init__.py (modified), python/sglang/new.py (untracked), python/sglang/srt/args.py (deleted), "
        "python/sglang/staged.py (staged, untracked); turn"
    ) in said
    assert snapshot(repository) == before


def hidden(repository):
    (repository / "python/sglang/__init__.py").write_text("patched = 1\n")
    git(repository, "update-index", "--assume-unchanged", "python/sglang/__init__.py")


def reverted(repository):
    (repository / "python/sglang/__init__.py").write_text("patched = 1\n")
    commit(repository, "hand-patched")
    git(repository, "checkout", "--quiet", "v1", "--", ".")


def only_staged(repository):
    (repository / "python/sglang/__init__.py").write_text("patched = 1\n")
    git(repository, "add", "--all")
    (repository / "python/sglang/__init__.py").write_text(STOCK["sglang/__init__.py"])


def committed(repository):
    (repository / "python/sglang/__init__.py").write_text("patched = 1\n")
    commit(repository, "hand-patched")


def split(repository):
    git(repository, "update-index", "--split-index")
    only_staged(repository)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (hidden, "modified"),
        (reverted, "committed"),
        (only_staged, "staged"),
        (committed, "committed, staged, modified"),
        (split, "staged"),
    ],
)
def test_every_way_to_differ_is_found(source_tree, release, repository, change, what):
    change(repository)
    assert f"in 1 file: python/sglang/__init__.py ({what});" in refusal(source_tree, release, checkout=repository)


def test_a_long_list_is_cut_and_counted(source_tree, release, repository):
    for number in range(23):
        (repository / f"python/sglang/new{number:02}.py").write_text("")
    said = refusal(source_tree, release, checkout=repository)
    assert "in 23 files: python/sglang/new00.py (untracked), " in said
    assert "python/sglang/new09.py (untracked) and 13 more;" in said
    assert "new10" not in said


def test_what_does_not_reach_the_package_does_not_matter(source_tree, release, repository):
    (repository / "test.py").write_text("outside of the package\n")
    (repository / "python/sglang/__init__.py").chmod(0o755)
    (repository / "python/sglang/_version.py").write_text("version = 'generated'\n")
    (repository / "python/sglang/__pycache__").mkdir()
    (repository / "python/sglang/__pycache__/x.pyc").write_text("ignored")
    (repository / ".git/info").mkdir(exist_ok=True)
    (repository / ".git/info/exclude").write_text("notes.txt\n")
    (repository / "python/sglang/notes.txt").write_text("ignored")
    assert by(source_tree, release, checkout=repository)[0] == by(source_tree, release)[0]


@pytest.mark.parametrize(
    ("road", "reason"),
    [
        ({"repository": "/no/such"}, "/no/such is not there"),
        ({"checkout": "/no/such"}, "/no/such is not there"),
        ({"repository": "{root}/patches"}, "/patches is not a git repository"),
        ({"repository": "{root}/repository", "tag": "v9"}, "/repository has no tag v9"),
        ({"checkout": "{root}/repository", "tag": "v9"}, "/repository has no tag v9"),
        ({"repository": "{root}/repository", "tag": "v1-file"}, "names no commit that is there"),
        ({"checkout": "{root}/repository/.git"}, "is not a checkout: it has no working tree"),
        ({"repository": "ext::touch {root}/executed"}, "tag v1 cannot be fetched from ext::touch"),
        ({"repository": "http://127.0.0.1:1/x.git"}, "tag v1 cannot be fetched from http://127.0.0.1:1/x.git"),
    ],
)
def test_a_road_that_leads_nowhere_is_named(source_tree, release, repository, road, reason):
    git(repository, "tag", "v1-file", git(repository, "rev-parse", "HEAD:python/pyproject.toml"))
    where = {name: value.format(root=release) for name, value in road.items()}
    assert reason in refusal(source_tree, release, **where)
    assert not (release / "executed").exists()


def test_an_incomplete_clone_is_named_and_fetches_nothing(source_tree, release, repository):
    git(repository, "config", "uploadpack.allowFilter", "true")
    git(release, "clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{repository}", "partial")
    said = refusal(source_tree, release, repository=release / "partial")
    assert "it is an incomplete clone" in said


@pytest.fixture
def served(repository):
    """The URL of a repository that git's own server offers on loopback."""
    port = closed_port()
    words = ["--verbose", "--export-all", "--reuseaddr", "--listen=127.0.0.1", f"--port={port}"]
    command = ["git", "daemon", *words, f"--base-path={repository.parent}", str(repository.parent)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert any("Ready to rumble" in line for line in server.stderr)
        yield f"git://127.0.0.1:{port}/{repository.name}"
        server.terminate()


def test_a_repository_on_another_machine(source_tree, release, served, repository):
    assert by(source_tree, release, repository=served)[1] == git(repository, "rev-parse", "v1")
    said = refusal(source_tree, release, repository=served, tag="v9")
    assert f"tag v9 cannot be fetched from {served}" in said


def test_the_look_prints_nothing_or_one_sentence(repository):
    program = paths.ROOT / "roles/sglang/files/source_repository.py"

    def look(*words):
        done = subprocess.run(
            [sys.executable, program, "--tag=v1", *words], capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    assert look(f"--checkout={repository}") == (0, "")
    assert look(f"--repository={repository}") == (0, "")
    assert look("--repository=https://example.org/not/looked/at.git") == (0, "")
    (repository / "python/sglang/_version.py").write_text("")
    assert look(f"--checkout={repository}", "--generated=sglang/_version.py") == (0, "")
    status, said = look(f"--checkout={repository}")
    assert (status, said.count("\n")) == (1, 1)
    assert "in 1 file: python/sglang/_version.py (untracked);" in said
    assert look(f"--repository={Path('/no/such')}") == (1, "/no/such is not there\n")
