"""The lock file, and the rules that a kind of host sets for it."""

from pathlib import Path

import pytest
from wheelhouse_fixtures import make_checkout, make_toolkit

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.house import all_wheelhouses, key, sglang_pin, third_party_pins, wheelhouse
from blackwell.wheelhouse.pins import Pin, normalized, parse_lock, render_lock
from blackwell.wheelhouse.products import CUDA, product
from blackwell.wheelhouse.variants import check_pins, variant

DIGEST = "ab" * 32
LOCK = Path("some.txt")


def test_what_is_rendered_is_parsed_back_in_order_of_names():
    pins = [Pin("zeta", "1.0+cpu", DIGEST), Pin("alpha", "2.0", DIGEST)]
    text = render_lock(pins, ["one", "two"])
    assert text.splitlines()[:2] == ["# one", "# two"]
    assert parse_lock(text, LOCK) == [pins[1], pins[0]]


@pytest.mark.parametrize(
    "line",
    [
        "alpha",
        "alpha==1.0",
        f"alpha>=1.0 --hash=sha256:{DIGEST}",
        f"alpha==1.0 --hash=sha256:{DIGEST[1:]}",
        "-r other.txt",
    ],
)
def test_a_line_that_pins_nothing_is_named(line):
    with pytest.raises(WheelhouseError, match=r"some\.txt, line 3, is not NAME==VERSION"):
        parse_lock(f"# head\n\n{line}\n", LOCK)


def test_a_package_that_is_pinned_twice_is_named():
    text = f"Al_pha==1.0 --hash=sha256:{DIGEST}\nal-pha==2.0 --hash=sha256:{DIGEST}\n"
    with pytest.raises(WheelhouseError, match="pins al-pha more than once"):
        parse_lock(text, LOCK)


def test_names_are_normalized_as_indexes_do():
    assert normalized("Partial__JSON.parser") == "partial-json-parser"


@pytest.mark.parametrize("name", ["nvidia-cublas-cu12", "triton", "sgl-kernel", "flashinfer-python"])
def test_a_cpu_host_gets_no_package_for_gpus(name):
    with pytest.raises(WheelhouseError, match=rf"some\.txt pins {name}, which must not be in a cpu"):
        check_pins(variant("cpu"), [Pin(name, "1", DIGEST)], LOCK)


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cu130"])
def test_a_cpu_host_gets_no_cuda_build_of_torch(version):
    with pytest.raises(WheelhouseError, match=r"needs a \+cpu build"):
        check_pins(variant("cpu"), [Pin("torch", version, DIGEST)], LOCK)


def test_unknown_variants_and_releases_say_what_is_known():
    with pytest.raises(WheelhouseError, match="no variant is called tpu; known: cpu"):
        wheelhouse("0.5.9", "tpu")
    with pytest.raises(WheelhouseError, match=r"SGLang 9\.9 cpu; known: 0\.5\.9 cpu, 0\.5\.9 cuda$"):
        wheelhouse("9.9", "cpu")
    with pytest.raises(WheelhouseError, match=r"CUDA toolkit 13\.0 cpu; known: 13\.0 compiler, 13\.0 libraries$"):
        wheelhouse("13.0", "cpu", product("cuda"))
    with pytest.raises(WheelhouseError, match="no product is called rocm; known: sglang, cuda"):
        product("rocm")


LOCKED = [house for house in all_wheelhouses() if house.lock.is_file()]


@pytest.mark.parametrize("house", LOCKED, ids=lambda house: house.name)
def test_the_locks_of_this_checkout_keep_the_rules(house):
    pins = third_party_pins(house)
    assert {"sglang": "torch", "cuda": "nvidia-cuda-nvcc"}[house.product.name] in {pin.name for pin in pins}
    assert not {pin.name for pin in pins} & {"sglang", "sglang-cpu-standin"}
    assert "CPython 3.11 on Linux x86_64 only" in house.lock.read_text()


def test_the_wheel_of_sglang_is_the_manifests(tmp_path):
    house = make_checkout(tmp_path / "checkout", tmp_path / "offered")
    assert sglang_pin(house).wheel == "sglang-0.5.9-py3-none-any.whl"
    house.manifest.write_text('{"base": {"package": "sglang"}}')
    with pytest.raises(WheelhouseError, match=r"manifest\.json does not name SGLang's wheel: KeyError\('version'\)"):
        sglang_pin(house)
    house.manifest.unlink()
    with pytest.raises(WheelhouseError, match=r"manifest\.json is missing"):
        sglang_pin(house)


@pytest.mark.parametrize(
    "changed", ["roles/sglang/files/locks/sglang-0.5.9-cpu.txt", "standin/src/standin_package/__init__.py"]
)
def test_the_key_depends_on_the_lock_and_on_the_standin(tmp_path, changed):
    house = make_checkout(tmp_path / "checkout", tmp_path / "offered")
    before = key(house)
    assert key(house) == before
    with (house.root / changed).open("a") as file:
        file.write("# more\n")
    assert key(house) != before


def test_the_key_does_not_depend_on_patches(tmp_path):
    house = make_checkout(tmp_path / "checkout", tmp_path / "offered")
    before = key(house)
    house.manifest.write_text(house.manifest.read_text()[:-1] + ', "patches": ["one"]}')
    assert key(house) == before


def test_the_libraries_of_the_toolkit_go_with_its_compiler():
    compiler, libraries = (set(third_party_pins(wheelhouse("13.0", name, CUDA))) for name in ("compiler", "libraries"))
    assert compiler < libraries
    assert {"nvidia-cublas", "nvidia-curand", "nvidia-cuda-nvrtc"} <= {pin.name for pin in libraries - compiler}


def test_every_part_of_the_toolkit_that_says_a_version_of_cuda_is_of_one():
    pins = {pin.name: pin.version for pin in third_party_pins(wheelhouse("13.0", "libraries", CUDA))}
    others = ("nvidia-cublas", "nvidia-curand", "nvidia-cusolver", "nvidia-cusparse", "nvidia-cuda-nvdisasm")
    assert {version.rsplit(".", 1)[0] for name, version in pins.items() if name not in (*others, "cuda-toolkit")} == {
        "13.0"
    }


def test_the_key_of_the_toolkit_depends_on_its_lock_alone(tmp_path):
    house = make_toolkit(tmp_path / "checkout", tmp_path / "offered")
    before = key(house)
    with house.lock.open("a") as file:
        file.write("# more\n")
    assert key(house) != before
