"""PEP 517 build backend of this distribution, from the standard library alone.

The same sources give the same bytes: entries are sorted, stored without compression, and carry no time of their own.
"""

import base64
import hashlib
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent

TAG = "py3-none-any"

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip archive can hold."""


def project() -> dict:
    """Return the ``[project]`` table of pyproject.toml."""
    return tomllib.loads((HERE / "pyproject.toml").read_text())["project"]


def wheel_name() -> str:
    """Return the file name of the wheel."""
    return f"{_stem()}-{TAG}.whl"


def source_files() -> list[Path]:
    """Return the files that decide the wheel's content, sorted."""
    return sorted([HERE / "pyproject.toml", Path(__file__).resolve(), *(HERE / "src").rglob("*.py")])


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Write the wheel into a directory and return its file name (PEP 517)."""
    del config_settings, metadata_directory
    with zipfile.ZipFile(Path(wheel_directory) / wheel_name(), "w") as archive:
        record = ""
        for name, content in _content():
            archive.writestr(_entry(name), content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        name = f"{_stem()}.dist-info/RECORD"
        archive.writestr(_entry(name), f"{record}{name},,\n")
    return wheel_name()


def _stem() -> str:
    return f"{project()['name'].replace('-', '_')}-{project()['version']}"


def _content() -> Iterator[tuple[str, bytes]]:
    sources = HERE / "src"
    for path in sorted(sources.rglob("*.py")):
        yield path.relative_to(sources).as_posix(), path.read_bytes()
    table, info = project(), f"{_stem()}.dist-info"
    fields = {
        "Metadata-Version": "2.4",
        "Name": table["name"],
        "Version": table["version"],
        "Summary": table["description"],
        "License-Expression": table["license"],
        "Requires-Python": table["requires-python"],
    }
    yield f"{info}/METADATA", _lines(fields)
    fields = {"Wheel-Version": "1.0", "Generator": "wheel_backend", "Root-Is-Purelib": "true", "Tag": TAG}
    yield f"{info}/WHEEL", _lines(fields)


def _lines(fields: dict[str, str]) -> bytes:
    return "".join(f"{name}: {value}\n" for name, value in fields.items()).encode()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, EPOCH)
    entry.external_attr = 0o100644 << 16
    return entry
