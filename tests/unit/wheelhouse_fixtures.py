"""Tiny wheels and checkouts for the tests of the wheelhouse."""

import hashlib
import json
import shutil
import zipfile
from pathlib import Path

from blackwell import paths
from blackwell.wheelhouse.house import Wheelhouse
from blackwell.wheelhouse.pins import Pin, render_lock
from blackwell.wheelhouse.products import CUDA
from blackwell.wheelhouse.variants import variant

CPU = variant("cpu")


def make_wheel(directory: Path, name: str, version: str, requires: tuple[str, ...] = (), tag="py3-none-any") -> Pin:
    """Write a wheel that holds nothing but its metadata, and return its pin."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name.replace('-', '_')}-{version}-{tag}.whl"
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")
    return Pin(name, version, hashlib.sha256(path.read_bytes()).hexdigest(), path.name)


def make_checkout(root: Path, offered: Path, names: tuple[str, ...] = ("alpha", "beta", "gamma")) -> Wheelhouse:
    """Make a checkout whose lock pins some tiny wheels, which are put into ``offered``, and return its wheelhouse."""
    house = Wheelhouse("0.5.9", CPU, root, root / "cache/wheelhouse")
    house.lock.parent.mkdir(parents=True)
    house.requirements.write_text("".join(f"{name}\n" for name in names))
    house.lock.write_text(render_lock([make_wheel(offered, name, "1.0") for name in names], ["for tests"]))
    base = make_wheel(offered, "sglang", "0.5.9")
    house.manifest.parent.mkdir(parents=True)
    manifest = {"base": {"package": "sglang", "version": "0.5.9", "wheel": base.wheel, "sha256": base.sha256}}
    house.manifest.write_text(json.dumps(manifest))
    (root / "standin/src/standin_package").mkdir(parents=True)
    shutil.copy(paths.ROOT / "standin/wheel_backend.py", root / "standin")
    shutil.copy(paths.ROOT / "standin/pyproject.toml", root / "standin")
    (root / "standin/src/standin_package/__init__.py").write_text("value = 1\n")
    return house


def make_toolkit(root: Path, offered: Path, names: tuple[str, ...] = ("alpha", "beta")) -> Wheelhouse:
    """Make a checkout that has nothing but the lock of a toolkit of some tiny wheels, and return its wheelhouse."""
    house = Wheelhouse("13.0", variant("compiler"), root, root / "cache/wheelhouse", CUDA)
    house.lock.parent.mkdir(parents=True)
    house.lock.write_text(render_lock([make_wheel(offered, name, "1.0") for name in names], ["for tests"]))
    return house


def configure_pip(monkeypatch, offered: Path) -> None:
    """Let pip know one directory of wheels and no index."""
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_CONSTRAINT", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(offered))
