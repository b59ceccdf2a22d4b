"""Making an archive: from nothing, again, after a change, after a kill, and from two processes at once."""

import json
import shutil
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace

import pytest
from wheelhouse_fixtures import CPU, configure_pip, make_checkout, make_toolkit, make_wheel

from blackwell import paths
from blackwell.wheelhouse import fetch as module
from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.fetch import batches, fetch, is_fresh, locked
from blackwell.wheelhouse.lock import write_lock
from blackwell.wheelhouse.pins import Pin, parse_lock
from blackwell.wheelhouse.pip import NotOfferedError, download, pip_python


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A checkout whose wheels are copied from a directory, without starting pip."""
    offered = tmp_path / "offered"

    def copy(pins, directory, _kind):
        for pin in pins:
            wheel = offered / f"{pin.name}-{pin.version}-py3-none-any.whl"
            if not wheel.exists():
                raise NotOfferedError(f"cannot get {', '.join(map(str, pins))}")
            shutil.copy(wheel, directory)

    monkeypatch.setattr(module, "download", copy)
    configure_pip(monkeypatch, offered)
    return make_checkout(tmp_path / "checkout", offered)


@pytest.fixture
def said():
    return []


def content(house):
    with tarfile.open(house.tar) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive}


def left(house):
    return {path.name for path in house.directory.iterdir()} - {".lock", "wheels", house.tar.name, house.stamp.name}


def test_the_archive_holds_what_a_host_needs(house, said):
    assert fetch(house, said.append)
    found = content(house)
    wheels = {f"wheels/{name}-1.0-py3-none-any.whl" for name in ("alpha", "beta", "gamma")}
    wheels |= {"wheels/sglang-0.5.9-py3-none-any.whl", "wheels/sglang_cpu_standin-0.1.0-py3-none-any.whl"}
    assert set(found) == wheels | {"SHA256SUMS", "local.txt", "lock.txt"}
    assert found["lock.txt"] == house.lock.read_bytes()
    (local,) = parse_lock(found["local.txt"].decode(), house.tar)
    assert local.name == "sglang-cpu-standin"
    assert len(found["SHA256SUMS"].splitlines()) == len(found) - 1
    assert said[0] == "0 of 4 wheels are here, 4 to download"
    assert "4/4 sglang-0.5.9-py3-none-any.whl 0.0 MB" in said
    assert left(house) == set()


@pytest.mark.usefixtures("house")
def test_the_archive_of_a_toolkit_holds_its_wheels_and_nothing_of_sglang(said, tmp_path):
    toolkit = make_toolkit(tmp_path / "toolkit", tmp_path / "offered")
    assert fetch(toolkit, said.append)
    assert set(content(toolkit)) == {
        *(f"wheels/{name}-1.0-py3-none-any.whl" for name in ("alpha", "beta")),
        *("SHA256SUMS", "lock.txt"),
    }
    assert not fetch(toolkit, said.append)


def test_pip_downloads_the_wheels_and_installs_the_archive_without_an_index(house, said, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "download", download)
    fetch(house, said.append)
    (tmp_path / "host").mkdir()
    subprocess.run(["tar", "--extract", "--file", house.tar, "--directory", tmp_path / "host"], check=True)
    monkeypatch.delenv("PIP_FIND_LINKS")
    options = ["--no-index", "--find-links=wheels", "--no-deps", "--require-hashes", f"--target={tmp_path / 'site'}"]
    command = [pip_python(), "-m", "pip", "install", *options, "-rlock.txt", "-rlocal.txt"]
    done = subprocess.run(command, cwd=tmp_path / "host", check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/standin_package/__init__.py").is_file()


def test_a_second_run_does_nothing(house, said):
    fetch(house, said.append)
    before = house.tar.stat().st_mtime_ns
    said.clear()
    assert not fetch(house, said.append)
    assert (house.tar.stat().st_mtime_ns, said) == (before, [])


def test_two_checkouts_make_the_same_bytes(house, said, tmp_path):
    fetch(house, said.append)
    other = replace(house, directory=tmp_path / "other")
    fetch(other, said.append)
    assert other.tar.read_bytes() == house.tar.read_bytes()


def test_a_changed_standin_is_built_again_and_nothing_is_downloaded(house, said):
    fetch(house, said.append)
    before = content(house)["local.txt"]
    (house.root / "standin/src/standin_package/__init__.py").write_text("value = 2\n")
    assert not is_fresh(house)
    said.clear()
    assert fetch(house, said.append)
    assert content(house)["local.txt"] != before
    assert said[0] == "4 of 4 wheels are here, 0 to download"


@pytest.mark.parametrize("damage", ["truncated", "other bytes", "no archive", "no stamp", "half a stamp"])
def test_an_archive_that_is_not_whole_is_made_again(house, said, damage):
    fetch(house, said.append)
    whole = house.tar.read_bytes()
    {
        "truncated": lambda: house.tar.write_bytes(whole[:-1000]),
        "other bytes": lambda: house.tar.write_bytes(whole[:-1] + b"x"),
        "no archive": house.tar.unlink,
        "no stamp": house.stamp.unlink,
        "half a stamp": lambda: house.stamp.write_text(house.stamp.read_text()[:20]),
    }[damage]()
    assert fetch(house, said.append)
    assert house.tar.read_bytes() == whole


def test_what_was_downloaded_before_a_kill_is_kept(house, said, monkeypatch):
    def put_then_die(store, pin, wheel, real=module.put):
        if pin.name == "gamma":
            raise KeyboardInterrupt
        return real(store, pin, wheel)

    with monkeypatch.context() as patch:
        patch.setattr(module, "put", put_then_die)
        with pytest.raises(KeyboardInterrupt):
            fetch(house, said.append)
    assert not house.tar.exists()
    said.clear()
    assert fetch(house, said.append)
    assert said[0] == "2 of 4 wheels are here, 2 to download"


def test_the_leftovers_of_a_killed_run_are_removed(house, said):
    (house.directory / f"{module.SCRATCH}old/into").mkdir(parents=True)
    fetch(house, said.append)
    assert left(house) == set()


def test_a_run_that_is_killed_while_packing_leaves_no_stamp_for_the_old_archive(house, said, monkeypatch):
    fetch(house, said.append)
    (house.root / "standin/src/standin_package/__init__.py").write_text("value = 2\n")
    with monkeypatch.context() as patch:
        patch.setattr(module.json, "dumps", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            fetch(house, said.append)
    assert not house.stamp.exists()
    assert fetch(house, said.append)


def test_the_error_of_a_batch_names_the_one_package(house, said, tmp_path):
    (tmp_path / "offered/beta-1.0-py3-none-any.whl").unlink()
    with pytest.raises(WheelhouseError, match=r"cannot get beta==1\.0$"):
        fetch(house, said.append)
    assert left(house) == set()


def test_a_second_process_waits_for_the_first(house, said):
    house.directory.mkdir(parents=True)
    waits = threading.Event()

    def second():
        fetch(house, lambda line: (said.append(line), waits.set()))

    with locked(house.directory / ".lock", said.append):
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(30)
        assert said == ["another run is at work here; waiting for it"]
        thread.join(0.5)
        assert thread.is_alive()
        assert not house.tar.exists()
    thread.join(60)
    assert is_fresh(house)


def test_batches_hold_every_pin_once_and_torch_alone():
    pins = [Pin(f"p{number}", "1", "0" * 64) for number in range(30)] + [Pin("torch", "1+cpu", "0" * 64)]
    made = batches(pins, CPU)
    assert [len(batch) for batch in made] == [1, 12, 12, 6]
    assert made[0][0].name == "torch"
    assert sorted(pin.name for batch in made for pin in batch) == sorted(pin.name for pin in pins)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="a lock is made with the hosts' Python")
def test_a_lock_keeps_its_versions_until_it_is_upgraded(house, tmp_path):
    offered = tmp_path / "offered"
    make_wheel(offered, "alpha", "2.0", requires=("delta>=1", 'epsilon; python_version < "3.11"'))
    delta = make_wheel(offered, "delta", "1.5")
    assert write_lock(house, upgrade=False) == 3
    assert "alpha==1.0 " in house.lock.read_text()
    assert write_lock(house, upgrade=True) == 4
    pins = {pin.name: pin for pin in parse_lock(house.lock.read_text(), house.lock)}
    assert (pins["alpha"].version, pins["delta"].sha256) == ("2.0", delta.sha256)
    assert house.lock.read_text().startswith("# Third-party packages of SGLang 0.5.9, cpu")


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="a lock is made with the hosts' Python")
def test_a_package_that_comes_alone_brings_none_of_its_requirements(house, tmp_path):
    make_wheel(tmp_path / "offered", "xgrammar", "0.1.27", requires=("triton", "delta"))
    with house.requirements.open("a") as file:
        file.write("xgrammar==0.1.27\n")
    assert write_lock(house, upgrade=False) == 4
    assert [pin.name for pin in parse_lock(house.lock.read_text(), house.lock)][-1] == "xgrammar"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="a lock is made with the hosts' Python")
def test_a_lock_that_would_break_a_rule_is_not_written(house, tmp_path):
    before = house.lock.read_text()
    make_wheel(tmp_path / "offered", "gamma", "2.0", requires=("triton",))
    make_wheel(tmp_path / "offered", "triton", "3.5")
    with pytest.raises(WheelhouseError, match="pins triton, which must not be"):
        write_lock(house, upgrade=True)
    assert house.lock.read_text() == before


def test_the_command_is_one_file_and_says_what_it_can_do():
    done = subprocess.run([paths.ROOT / "scripts/wheelhouse", "--help"], capture_output=True, text=True, check=True)
    assert all(word in done.stdout for word in ("fetch", "lock", "path", "list", "BLACKWELL_TORCH_INDEX"))


def test_the_command_prints_the_path_and_the_state(tmp_path, monkeypatch):
    monkeypatch.setenv("BLACKWELL_CACHE", str(tmp_path))
    command = paths.ROOT / "scripts/wheelhouse"
    said = {
        name: subprocess.run([command, name], capture_output=True, text=True, check=True).stdout
        for name in ("path", "list")
    }
    tar = tmp_path / "wheelhouse/sglang-0.5.9-cpu.tar"
    assert said["path"] == f"{tar}\n"
    lines = [line.split() for line in said["list"].splitlines()]
    assert [line[0] for line in lines] == [
        "sglang-0.5.9-cpu",
        "sglang-0.5.9-cuda",
        "cuda-13.0-compiler",
        "cuda-13.0-libraries",
    ]
    assert lines[0][1:] == ["not", "fetched", "-", str(tar)]


def test_the_command_fails_with_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("BLACKWELL_CACHE", str(tmp_path))
    command = [paths.ROOT / "scripts/wheelhouse", "fetch", "--release", "9.9"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        1,
        "wheelhouse: no packages are listed for SGLang 9.9 cpu; known: 0.5.9 cpu, 0.5.9 cuda\n",
    )


def test_a_stamp_says_what_the_archive_is(house, said):
    fetch(house, said.append)
    stamp = json.loads(house.stamp.read_text())
    assert set(stamp) == {"key", "sha256"}
