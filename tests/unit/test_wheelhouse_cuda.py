"""The wheelhouse for hosts with cards: made-up wheels on loopback in the places of PyTorch, FlashInfer and SGLang."""

import functools
import http.server
import json
import subprocess
import threading

import pytest
from loopback import closed_port
from wheelhouse_fixtures import configure_pip, make_wheel

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.fetch import fetch
from blackwell.wheelhouse.house import Wheelhouse, third_party_pins
from blackwell.wheelhouse.lock import write_lock
from blackwell.wheelhouse.pins import Pin
from blackwell.wheelhouse.pip import pip_error, pip_python
from blackwell.wheelhouse.variants import check_pins, variant

CUDA = variant("cuda")
DIGEST = "ab" * 32
KERNEL = "sgl_kernel-0.3.21+cu130-cp310-abi3-manylinux2014_x86_64.whl"
VARIABLES = ("BLACKWELL_TORCH_CUDA_INDEX", "BLACKWELL_FLASHINFER_INDEX", "BLACKWELL_SGL_KERNEL_WHEEL")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def publish(index, name, version, **made):
    """Puts a wheel where an index lists it with its hash (PEP 503) and returns its pin."""
    pin = make_wheel(index / name, name, version, **made)
    (index / name / "index.html").write_text(f'<a href="{pin.wheel}#sha256={pin.sha256}">{pin.wheel}</a>\n')
    return pin


@pytest.fixture
def served(tmp_path):
    """A folder, and the address that it is served at."""
    (tmp_path / "served").mkdir()
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path / "served"))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield tmp_path / "served", f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def house(tmp_path, served, monkeypatch):
    """A checkout that requires one wheel of each place; the kernels' file has another version than their metadata."""
    folder, address = served
    house = Wheelhouse("0.5.9", CUDA, tmp_path / "checkout", tmp_path / "cache")
    house.requirements.parent.mkdir(parents=True)
    house.requirements.write_text("torch==2.9.1+cu130\nflashinfer-jit-cache==0.6.3+cu130\nsgl-kernel==0.3.21\nalpha\n")
    base = publish(folder / "pypi", "sglang", "0.5.9")
    house.manifest.parent.mkdir(parents=True)
    house.manifest.write_text(json.dumps({"base": {"package": base.name, "version": base.version, "wheel": base.wheel,
                                                   "sha256": base.sha256}}))  # fmt: skip
    publish(folder / "pypi", "alpha", "1.0")
    publish(folder / "pypi", "torch", "2.9.1")
    publish(folder / "pypi", "sgl-kernel", "0.3.21")
    publish(folder / "torch", "torch", "2.9.1+cu130", requires=("alpha",))
    publish(folder / "flashinfer", "flashinfer-jit-cache", "0.6.3+cu130")
    made = make_wheel(folder / "v0.3.21", "sgl-kernel", "0.3.21", tag="cp310-abi3-manylinux2014_x86_64")
    (folder / "v0.3.21" / made.wheel).rename(folder / "v0.3.21" / KERNEL)
    configure_pip(monkeypatch, tmp_path / "nothing")
    (tmp_path / "nothing").mkdir()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/pypi")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
    for name, path in zip(VARIABLES, ("torch", "flashinfer", f"v{{version}}/{KERNEL}"), strict=True):
        monkeypatch.setenv(name, f"{address}/{path}".replace("0.3.21", "{version}"))
    return house


def test_each_package_is_locked_from_its_place_and_the_kernels_by_what_their_metadata_say(house, served):
    assert write_lock(house, upgrade=False) == 4
    before = house.lock.read_bytes()
    assert write_lock(house, upgrade=False) == 4
    assert house.lock.read_bytes() == before
    pins = {pin.name: pin for pin in third_party_pins(house)}
    assert {name: pin.version for name, pin in pins.items()} == {
        "alpha": "1.0",
        "flashinfer-jit-cache": "0.6.3+cu130",
        "sgl-kernel": "0.3.21",
        "torch": "2.9.1+cu130",
    }
    folder, _ = served
    cuda_12 = make_wheel(folder / "other", "sgl-kernel", "0.3.21")
    assert pins["sgl-kernel"].sha256 != cuda_12.sha256


def test_the_archive_has_the_kernels_under_a_name_that_pip_installs_and_no_standin(house):
    write_lock(house, upgrade=False)
    said = []
    assert fetch(house, said.append)
    names = house.tar.read_bytes()
    assert b"wheels/sgl_kernel-0.3.21-cp310-abi3-manylinux2014_x86_64.whl" in names
    assert b"standin" not in names
    assert b"local.txt" not in names


def test_what_a_host_unpacks_is_installed_by_the_lock(house, tmp_path):
    write_lock(house, upgrade=False)
    fetch(house, [].append)
    here = tmp_path / "host"
    here.mkdir()
    subprocess.run(["tar", "--extract", "--file", house.tar, "--directory", here], check=True)
    options = ["--isolated", "--no-index", "--find-links=wheels", "--no-deps", "--require-hashes", "--target=site"]
    subprocess.run([pip_python(), "-m", "pip", "install", *options, "-rlock.txt"], cwd=here, check=True)
    found = {path.name for path in (here / "site").glob("*.dist-info")}
    assert {"sgl_kernel-0.3.21.dist-info", "torch-2.9.1+cu130.dist-info"} <= found


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (VARIABLES[0], "whl/torch-cu130"),
        (VARIABLES[1], "whl/flashinfer-cu130"),
        (VARIABLES[2], "sgl/v{version}/sgl_kernel-1-py3-none-any.whl"),
    ],
)
def test_a_place_that_cannot_be_reached_is_named_and_the_old_lock_stays(house, monkeypatch, name, path):
    write_lock(house, upgrade=False)
    before = house.lock.read_bytes()
    address = f"http://127.0.0.1:{closed_port()}/{path}"
    monkeypatch.setenv(name, address)
    with pytest.raises(WheelhouseError) as error:
        write_lock(house, upgrade=False)
    assert str(error.value) == f"cannot get the packages of {house.requirements}: {address} cannot be reached"
    assert house.lock.read_bytes() == before
    assert [path.name for path in house.lock.parent.glob(".*")] == []


def test_a_wheel_that_is_not_at_its_address_is_named(house, served, monkeypatch):
    _, address = served
    monkeypatch.setenv(VARIABLES[2], f"{address}/sgl_kernel-{{version}}-cp310-abi3-linux_x86_64.whl")
    with pytest.raises(WheelhouseError, match=r"sgl_kernel-0\.3\.21-cp310-abi3-linux_x86_64\.whl answers 404$"):
        write_lock(house, upgrade=False)
    assert not house.lock.exists()


def test_without_a_lock_the_command_that_makes_it_is_named(house):
    with pytest.raises(
        WheelhouseError,
        match=r"cuda\.txt is missing: make it with scripts/wheelhouse lock --release 0\.5\.9 --variant cuda$",
    ):
        third_party_pins(house)


@pytest.mark.parametrize(
    ("pin", "reason"),
    [
        (Pin("nvidia-cublas-cu12", "12.8", DIGEST), "pins nvidia-cublas-cu12, which must not be in a cuda wheelhouse"),
        (Pin("sglang-cpu-standin", "1", DIGEST), "pins sglang-cpu-standin, which must not be"),
        (Pin("torch", "2.9.1", DIGEST), r"torch 2\.9\.1; a cuda wheelhouse needs a \+cu130 build"),
        (Pin("flashinfer-jit-cache", "0.6.3+cu129", DIGEST), r"needs a \+cu130 build"),
    ],
)
def test_what_belongs_to_another_cuda_or_to_the_cpu_is_refused(house, pin, reason):
    with pytest.raises(WheelhouseError, match=reason):
        check_pins(CUDA, [pin], house.lock)
    check_pins(CUDA, [Pin("nvidia-cublas", "13.0", DIGEST), Pin("torch", "2.9.1+cu130", DIGEST)], house.lock)


def test_an_index_that_answered_is_not_named():
    output = "connection broken by 'NewConnectionError(refused)': /whl/b/torch/\nWARNING: Retrying ("
    error = pip_error(output, "torch", ["https://a.invalid/whl/a", "https://b.invalid/whl/b"])
    assert str(error) == "cannot get torch: https://b.invalid/whl/b cannot be reached"
