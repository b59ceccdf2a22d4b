"""The store of wheels and the archive."""

import stat
import subprocess
import tarfile

import pytest
from wheelhouse_fixtures import make_checkout, make_wheel

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.pack import checksums, write_tar
from blackwell.wheelhouse.pins import Pin
from blackwell.wheelhouse.standin import build_standin, standin_sources
from blackwell.wheelhouse.store import put, sha256_of, stored


def test_a_wheel_that_was_put_is_found_by_its_pin(tmp_path):
    pin = make_wheel(tmp_path, "alpha", "1.0")
    path = put(tmp_path / "store", pin, tmp_path / pin.wheel)
    assert stored(tmp_path / "store", pin) == path
    assert not (tmp_path / pin.wheel).exists()
    assert stored(tmp_path / "store", Pin("alpha", "1.0", "0" * 64)) is None


def test_a_wheel_that_changed_in_the_store_is_refused_with_both_digests(tmp_path):
    pin = make_wheel(tmp_path, "alpha", "1.0")
    path = put(tmp_path / "store", pin, tmp_path / pin.wheel)
    path.write_bytes(b"other")
    with pytest.raises(WheelhouseError) as error:
        stored(tmp_path / "store", pin)
    assert str(path) in str(error.value)
    assert sha256_of(path) in str(error.value)
    assert pin.sha256 in str(error.value)


def test_a_wheel_of_another_name_is_refused(tmp_path):
    pin = make_wheel(tmp_path, "alpha", "1.0")
    other = (tmp_path / pin.wheel).rename(tmp_path / "beta-1.0-py3-none-any.whl")
    with pytest.raises(WheelhouseError, match=r"called beta-1\.0-py3-none-any\.whl, not alpha-1\.0"):
        put(tmp_path / "store", pin, other)
    assert stored(tmp_path / "store", pin) is None


def test_half_a_put_is_replaced(tmp_path):
    pin = make_wheel(tmp_path, "alpha", "1.0")
    (tmp_path / "store" / pin.sha256).mkdir(parents=True)
    assert put(tmp_path / "store", pin, tmp_path / pin.wheel) == stored(tmp_path / "store", pin)


@pytest.fixture
def content(tmp_path):
    (tmp_path / "b.whl").write_bytes(b"bytes of b")
    files = {f"wheels/{'long-' * 40}b.whl": tmp_path / "b.whl"}
    texts = {"lock.txt": b"text of the lock\n"}
    sums = checksums(texts, {name: sha256_of(path) for name, path in files.items()})
    return {**files, **texts, "SHA256SUMS": sums}


def test_checksums_are_written_as_sha256sum_does():
    assert checksums({"b": b""}, {"a": "12"}) == (
        b"12  a\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
    )


def test_the_same_content_gives_the_same_bytes(tmp_path, content):
    (tmp_path / "scratch").mkdir()
    first = write_tar(tmp_path / "one.tar", content, tmp_path / "scratch")
    (tmp_path / "b.whl").touch()
    (tmp_path / "b.whl").chmod(0o600)
    assert write_tar(tmp_path / "two.tar", dict(reversed(content.items())), tmp_path / "scratch") == first
    assert sha256_of(tmp_path / "two.tar") == first == sha256_of(tmp_path / "one.tar")


def test_sha256sum_checks_what_tar_unpacks(tmp_path, content):
    (tmp_path / "scratch").mkdir()
    write_tar(tmp_path / "one.tar", content, tmp_path / "scratch")
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "--extract", "--file", tmp_path / "one.tar", "--directory", tmp_path / "out"], check=True)
    check = ["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=tmp_path / "out", check=True)
    assert stat.S_IMODE((tmp_path / "out/lock.txt").stat().st_mode) == 0o644
    (tmp_path / "out/lock.txt").write_text("other")
    assert subprocess.run(check, cwd=tmp_path / "out", check=False, capture_output=True).returncode == 1


def test_an_archive_that_cannot_be_made_leaves_the_old_one(tmp_path, content):
    (tmp_path / "scratch").mkdir()
    digest = write_tar(tmp_path / "one.tar", content, tmp_path / "scratch")
    with pytest.raises(FileNotFoundError, match=r"gone\.whl"):
        write_tar(tmp_path / "one.tar", {**content, "wheels/gone.whl": tmp_path / "gone.whl"}, tmp_path / "scratch")
    assert sha256_of(tmp_path / "one.tar") == digest


def test_entries_carry_neither_times_nor_owners(tmp_path, content):
    (tmp_path / "scratch").mkdir()
    write_tar(tmp_path / "one.tar", content, tmp_path / "scratch")
    with tarfile.open(tmp_path / "one.tar") as archive:
        entries = archive.getmembers()
    assert [entry.name for entry in entries] == sorted(content)
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname) for entry in entries} == {(0, 0, 0, "")}


def test_the_standin_is_built_twice_the_same(tmp_path):
    root = make_checkout(tmp_path / "checkout", tmp_path / "offered").root
    builds = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        builds.append(build_standin(root, tmp_path / name))
    (first, path), (second, _) = builds
    assert first == second == Pin("sglang-cpu-standin", first.version, sha256_of(path), path.name)
    assert root / "standin/src/standin_package/__init__.py" in standin_sources(root)
