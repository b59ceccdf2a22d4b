"""scripts/patches check and status: one line a patch, everything that is wrong at once, and a verdict."""

import json

import pytest
from patches_fixtures import make_project, patches, record, wheel_of

from blackwell import paths
from blackwell.patches import cli
from blackwell.wheelhouse.pins import Pin
from blackwell.wheelhouse.store import stored


@pytest.fixture
def series(tmp_path, source_tree):
    return make_project(tmp_path, source_tree)


def edit(path, *change):
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))


def test_a_good_series(series, tmp_path, capsys):
    said = patches(tmp_path, "check", capsys=capsys).splitlines()
    tree = json.loads((series / "manifest.json").read_text())["tree"]
    assert said == [
        "ok     first.patch: Count to two and a half (1 file)",
        "ok     second.patch: Count more exactly (1 file)",
        f"SGLang 1, 2 patches: good, the tree is {tree}",
    ]


def manifest(series, **values):
    path = series / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def outside(series):
    edit(series / "second.patch", "sglang/srt/args.py", "setup.py")


def generated(series):
    edit(series / "second.patch", "sglang/srt/args.py", "sglang/_version.py")


def renamed(series):
    text = (series / "first.patch").read_text()
    moved = "similarity index 100%\nrename from sglang/__init__.py\nrename to sglang/a.py\n"
    (series / "first.patch").write_text(f"{text}diff --git a/sglang/__init__.py b/sglang/a.py\n{moved}")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: (s / "first.patch").unlink(), "FAILED first.patch: it is in the series but not there\n"),
        (lambda s: edit(s / "first.patch", "half", "third"), "FAILED first.patch: it was edited: its sha256 is "),
        (lambda s: edit(s / "first.patch", "Forwarded:", "X:"), "has no Forwarded or Origin in its header"),
        (lambda s: edit(s / "first.patch", "@@ -1,4", "@@ -x,4"), "first.patch: it cannot be read by git"),
        (lambda s: edit(s / "second.patch", " two\n", " zwei\n"), "second.patch does not apply to the tree below it"),
        (outside, "it touches a file outside of sglang/: setup.py"),
        (generated, "it touches a generated file: sglang/_version.py"),
        (renamed, "it moves a file, which must be a deletion and an addition: rename from sglang/__init__.py"),
        (lambda s: (s / "stray.patch").write_text(""), "FAILED stray.patch is in the directory but not in the series"),
        (lambda s: edit(s / "series", "second.patch", ""), "FAILED second.patch is in the manifest but not in the s"),
        (lambda s: edit(s / "series", "second.patch", "first.patch"), "FAILED first.patch is in the series twice"),
        (lambda s: (s / "series").write_text("second.patch\nfirst.patch\n"), "the series is in another order than"),
        (lambda s: manifest(s, patches=[]), "first.patch: it is not in the manifest"),
        (lambda s: manifest(s, tree="0" * 40), f", the manifest has {'0' * 40}"),
        (lambda s: manifest(s, tree=""), ", the manifest has none"),
        (lambda s: manifest(s, files={}), "does not list under files: sglang/srt/args.py"),
    ],
)
def test_what_is_wrong_is_said(series, tmp_path, capsys, change, reason):
    change(series)
    said = patches(tmp_path, "check", status=1, capsys=capsys)
    assert reason in said
    assert said.endswith(": not as the manifest says\n")


def test_everything_is_said_at_once(series, tmp_path, capsys):
    edit(series / "first.patch", "Author:", "By:")
    edit(series / "second.patch", "Last-Update:", "Updated:")
    (series / "stray.patch").write_text("")
    said = patches(tmp_path, "check", status=1, capsys=capsys)
    for reason in ("first.patch: it has no Author", "second.patch: it has no Last-Update", "stray.patch is in the dir"):
        assert reason in said


def test_another_wheel_is_refused(series, tmp_path, capsys):
    wheel_of(tmp_path).write_bytes(b"x")
    said = patches(tmp_path, "check", status=1, capsys=capsys)
    assert said.startswith(f"patches: {wheel_of(tmp_path)} is not the base of the series")
    assert series.is_dir()


def test_the_status_needs_no_wheel(series, tmp_path, capsys):
    wheel_of(tmp_path).unlink()
    assert "first.patch: 2026-01-01, 1 file, Count to two and a half\n" in patches(tmp_path, "status", capsys=capsys)
    edit(series / "first.patch", "half", "third")
    (series / "second.patch").unlink()
    said = patches(tmp_path, "status", status=1, capsys=capsys)
    assert "  it was edited" in said
    assert "second.patch:\n  it is in the series but not there\n" in said
    record(series)
    assert "was edited" not in patches(tmp_path, "status", status=1, capsys=capsys)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check"], "VERSION"),
        (["mend", "1"], "invalid choice: 'mend'"),
        (["apply", "1", "x", "--series", "0", "--continue"], "not allowed with argument --series"),
    ],
)
def test_a_wrong_command_line(tmp_path, capsys, words, said):
    with pytest.raises(SystemExit) as ended:
        cli.main(words, tmp_path)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_release_without_a_series_is_named(series, tmp_path, capsys):
    said = patches(tmp_path, "check", version="9", status=1, capsys=capsys)
    assert said == f"patches: there is no {series.parent}/sglang-9/manifest.json; known releases: 1\n"


def test_the_series_of_this_checkout_is_good(source_tree, capsys):
    base = source_tree.read_manifest(paths.ROOT / "patches/sglang-0.5.9")["base"]
    pin = Pin(base["package"], base["version"], base["sha256"], base["wheel"])
    if not stored(paths.cache() / "wheelhouse/wheels", pin):
        pytest.skip(f"the wheelhouse has no {base['wheel']}: run scripts/wheelhouse fetch")
    found = cli.main(["check", "0.5.9"])
    assert found == 0, capsys.readouterr().out
