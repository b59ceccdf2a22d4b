"""The wheel of the CPU stand-in, built from the checkout by the distribution's own build backend."""

import importlib.util
from pathlib import Path
from types import ModuleType

from blackwell.wheelhouse.pins import Pin, normalized
from blackwell.wheelhouse.store import sha256_of


def standin_sources(root: Path) -> list[Path]:
    """Return the files that decide the wheel's bytes; ``root`` is a checkout."""
    return _backend(root).source_files()


def build_standin(root: Path, directory: Path) -> tuple[Pin, Path]:
    """Write the wheel into a directory; return its pin and its path. The same sources give the same bytes."""
    backend = _backend(root)
    wheel = directory / backend.build_wheel(str(directory))
    table = backend.project()
    return Pin(normalized(table["name"]), table["version"], sha256_of(wheel), wheel.name), wheel


def _backend(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("wheel_backend", root / "standin/wheel_backend.py")
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    return backend
