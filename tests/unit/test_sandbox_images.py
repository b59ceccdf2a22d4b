"""Images: when one is built again, and what is left when a build fails."""

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from blackwell.sandbox import images, recipe
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.recipe import File, Recipe
from blackwell.sandbox.settings import Settings

PLAIN = Recipe("bookworm", ())


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "trixie"},
        {"certificates": (File("/usr/local/share/ca-certificates/a.crt", "PEM"),)},
        {"packages": ("systemd",)},
        {"files": (File("/etc/pip.conf", "other"),)},
        {"masked": ()},
        {"commands": ()},
        {"options": ()},
        {"architecture": "aarch64"},
    ],
)
def test_an_image_is_another_when_anything_in_its_recipe_is(change):
    assert replace(PLAIN, **change).name != PLAIN.name
    assert replace(PLAIN).name == PLAIN.name


def test_certificates_added_to_this_machine_are_part_of_the_recipe(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b/own.crt").write_bytes(b"# caf\xe9\nPEM")
    (tmp_path / "notes.txt").write_text("no certificate")
    found = recipe.recipe("bookworm", tmp_path).certificates
    assert [file.path for file in found] == [str(tmp_path / "b/own.crt")]
    images.write(tmp_path / "copy", found[0])
    assert (tmp_path / "copy").read_bytes() == b"# caf\xe9\nPEM"


def test_an_unknown_suite_is_answered_with_the_known_ones():
    with pytest.raises(SandboxError, match="unknown suite 'sid': choose bookworm or trixie"):
        recipe.recipe("sid")


def test_a_deployment_needs_no_package_beyond_the_image():
    assert {"python3-venv", "python3-packaging", "python3-apt", "git", "sudo"} <= set(recipe.PACKAGES)


def test_writing_a_file_follows_no_link(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    (tmp_path / "link").symlink_to(victim)
    images.write(tmp_path / "link", File("/etc/x", "text", 0o600))
    assert victim.read_text() == "untouched"
    assert (tmp_path / "link").stat().st_mode & 0o777 == 0o600


# Stands for mmdebstrap: the last argument is the root, and the sync-in hook names the files to copy into it.
BUILDER = """\
#!/bin/sh
for last; do case $last in --customize-hook=sync-in*) files=${{last#*sync-in }}; files=${{files% /}};; esac; done
mkdir -p "$last/var/lib/apt/lists"
cp -a "$files/." "$last/"
echo "I: installing things..."
{end}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "ENCLOSED", ())
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Settings(tmp_path / "run", tmp_path / "cache", IPv4Network("10.213.0.0/24"))


def builder(here, end):
    path = here.run.parent / "mmdebstrap"
    path.write_text(BUILDER.format(end=end))
    path.chmod(0o755)


def test_an_image_is_built_once_with_its_files_and_stale_apt_lists(here):
    builder(here, f"echo once >>{here.run.parent}/builds")
    said = []
    image = images.ensure(here, PLAIN, said.append)
    assert images.ensure(here, PLAIN, said.append) == image
    assert (here.run.parent / "builds").read_text() == "once\n"
    assert (image / "etc/machine-id").read_text() == ""
    assert str((image / "etc/systemd/system/apt-daily.timer").readlink()) == "/dev/null"
    assert (image / "etc/sudoers.d/operator").stat().st_mode & 0o777 == 0o440
    assert (image / "var/lib/apt/lists").stat().st_mtime == 0
    assert "image bookworm: installing things..." in said


def test_a_failed_build_leaves_no_image_and_shows_the_logs_end(here):
    builder(here, "echo E: no mirror; exit 3")
    with pytest.raises(SandboxError, match="E: no mirror"):
        images.ensure(here, PLAIN, print)
    assert list(here.images.iterdir()) == []


def test_what_a_killed_build_left_is_removed_by_the_next(here):
    (here.images / f"trixie-0{images.UNFINISHED}/root").mkdir(parents=True)
    builder(here, "true")
    image = images.ensure(here, PLAIN, print)
    assert list(here.images.iterdir()) == [image]


def test_an_image_of_an_older_recipe_goes_but_another_suites_stays(here):
    (here.images / "bookworm-old").mkdir(parents=True)
    (here.images / "trixie-old").mkdir()
    builder(here, "true")
    image = images.ensure(here, PLAIN, print)
    assert set(here.images.iterdir()) == {image, here.images / "trixie-old"}


def test_an_image_that_a_host_stands_on_stays(here, monkeypatch):
    old = here.images / "bookworm-old"
    old.mkdir(parents=True)
    overlay = images.mounts.Mount("bwsbx1-web", "/r", "overlay", ("rw", f"lowerdir={old}"))
    monkeypatch.setattr(images.mounts, "current", lambda: (overlay,))
    builder(here, "true")
    images.ensure(here, PLAIN, print)
    assert old.is_dir()
