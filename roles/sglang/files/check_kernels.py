#!/usr/bin/env python3
"""Says whether the packages of a release's environment carry code for the cards, as JSON; needs no card.

    VENV/bin/python check_kernels.py [--architecture sm_120] [--cuda 13] [--cuobjdump PATH]

Exits with 0 if they do, with 1 and a sentence for each reason if not. The libraries are disassembled by the toolkit's
cuobjdump, or, without it, read as the linker wrote them. Needs Python >= 3.10, and nothing of this project.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import mmap
import re
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PACKAGES = ("torch", "sgl_kernel", "flashinfer")
"""What the server imports."""

LIBRARIES = {"sgl_kernel": "sm100/common_ops*.so", "flashinfer_jit_cache": "**/*.so"}
"""Package -> those of its libraries of which at least one must have code for the cards. The kernels' are two, of which
cards that are not Hopper's load the one called sm100. FlashInfer has libraries for single architectures."""

OPTIONAL = ("flashinfer_jit_cache",)

FATBIN = struct.Struct("<IHHQ")
"""A fat binary's header: magic number, version, size of the header, size of what follows."""

MAGIC = 0xBA55ED50
ENTRY = struct.Struct("<HHIQ12xI8xQ")
"""An entry's header: kind, version, its size, size of what follows; the architecture; flags."""

CUBIN = 2
"""Kind of an entry that is machine code; others are to be compiled by the driver."""

ONLY_THIS = 1 << 20
"""Flag of an entry whose architecture is called sm_120a, not sm_120. What is for sm_120f counts as sm_120."""


class UnreadableError(Exception):
    """A file is not what it should be; the message is one sentence that names it."""


def sections(data: mmap.mmap | bytes, path: Path) -> Iterator[tuple[str, int, int]]:
    """Name, offset and size of each section of a 64-bit little-endian ELF file; raises UnreadableError."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise UnreadableError(f"{path} is not a 64-bit ELF file")
    try:
        (start,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<II16xQQ", data, start + index * size) for index in range(count)]
        _, _, strings, length = headers[names]
    except (struct.error, IndexError) as error:
        raise UnreadableError(f"{path} is damaged: its sections cannot be read") from error
    table = bytes(data[strings : strings + length])
    for name, _, offset, extent in headers:
        yield table[name : table.find(b"\0", name)].decode(errors="replace"), offset, extent


def entries(data: mmap.mmap | bytes, start: int, end: int) -> Iterator[str]:
    """Architecture of each piece of machine code among the fat binaries between two offsets."""
    while start + FATBIN.size <= end:
        magic, _, header, size = FATBIN.unpack_from(data, start)
        if magic != MAGIC:
            # They are aligned to eight bytes, with zeros between them.
            start += 8
            continue
        position, start = start + header, start + header + size
        while position + ENTRY.size <= min(start, end):
            kind, _, header, size, number, flags = ENTRY.unpack_from(data, position)
            if kind == CUBIN:
                yield f"sm_{number}{'a' if flags & ONLY_THIS else ''}"
            position += max(header + size, 8)


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """The bytes of a file, which are hundreds of millions; raises UnreadableError if it has none."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise UnreadableError(f"{path} is empty") from error
    with data:
        yield data


def read_architectures(path: Path) -> list[str]:
    """The architectures that a shared library has machine code for, read from its sections; raises UnreadableError."""
    with mapped(path) as data:
        found = {
            architecture
            for name, offset, size in sections(data, path)
            if name in {".nv_fatbin", "__nv_relfatbin"}
            for architecture in entries(data, offset, min(offset + size, len(data)))
        }
    return sorted(found)


def listed_architectures(path: Path, cuobjdump: str) -> list[str]:
    """The same as the toolkit's cuobjdump lists it; raises UnreadableError."""
    done = subprocess.run([cuobjdump, "--list-elf", str(path)], capture_output=True, text=True, check=False)
    # It fails on a library without device code, and says so.
    if done.returncode and "does not contain device code" not in done.stdout + done.stderr:
        raise UnreadableError(f"{cuobjdump} cannot read {path}: {(done.stdout + done.stderr).strip().splitlines()[-1]}")
    return sorted(set(re.findall(r"\.(sm_\d+[af]?)\.cubin", done.stdout)))


def needed(path: Path) -> list[str]:
    """The libraries with a version in their names that a library asks for, from its dynamic strings."""
    with mapped(path) as data:
        strings = b"".join(data[at : at + size] for name, at, size in sections(data, path) if name == ".dynstr")
    return sorted({name.decode() for name in re.findall(rb"lib[\w.+-]+?\.so\.\d+", strings)})


def is_code_for(found: str, wanted: str) -> bool:
    """Whether machine code of an architecture runs on cards of another: the same number, whatever its suffix."""
    return re.sub(r"[af]$", "", found) == re.sub(r"[af]$", "", wanted)


def library_report(path: Path, cuobjdump: str) -> dict[str, Any]:
    """What one library has and needs, or why it cannot be read."""
    try:
        found = listed_architectures(path, cuobjdump) if cuobjdump else read_architectures(path)
        return {"path": str(path), "architectures": found, "needed": needed(path)}
    except (UnreadableError, OSError) as error:
        return {"path": str(path), "architectures": [], "needed": [], "error": str(error)}


def library_problems(package: str, reports: list[dict[str, Any]], wanted: str, cuda: int) -> list[str]:
    """A sentence for each reason why the libraries of a package are not for the cards or for this CUDA."""
    problems = [report["error"] for report in reports if "error" in report]
    for report in reports:
        others = [name for name in report["needed"] if (major := cuda_major(name)) and major != cuda]
        if others:
            problems.append(f"{report['path']} needs {', '.join(others)}, which CUDA {cuda} does not have")
    if any(is_code_for(found, wanted) for report in reports for found in report["architectures"]):
        return problems
    if not reports:
        return [*problems, f"{package} has no library {LIBRARIES[package]}"]
    found = sorted({architecture for report in reports for architecture in report["architectures"]})
    where = reports[0]["path"] if len(reports) == 1 else f"none of the {len(reports)} libraries of {package}"
    verb = "has no" if len(reports) == 1 else "has"
    return [*problems, f"{where} {verb} code for {wanted}, only for {', '.join(found) or 'no card at all'}"]


def cuda_major(name: str) -> int | None:
    """Major version of CUDA that the name of one of its runtime libraries has; None for other libraries."""
    match = re.fullmatch(r"lib(?:cudart|nvrtc|cublas|cublasLt)\.so\.(\d+)", name)
    return int(match[1]) if match else None


def directory_of(package: str) -> Path | None:
    """Where a package is, without importing it; None if it is not there."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def torch_problems(report: dict[str, Any], wanted: str, cuda: int) -> list[str]:
    """A sentence for each reason why torch is not for the cards or for this CUDA."""
    problems = []
    if str(report["cuda"]).partition(".")[0] != str(cuda):
        problems.append(f"torch {report['version']} is built for CUDA {report['cuda'] or 'none'}, not {cuda}")
    if not any(is_code_for(found, wanted) for found in report["architectures"]):
        have = ", ".join(report["architectures"]) or "no card at all"
        problems.append(f"torch {report['version']} has no code for {wanted}, only for {have}")
    return problems


def imported(names: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Imports packages; returns each one's version or None, and a sentence for each that fails."""
    versions: dict[str, Any] = {}
    problems = []
    for name in names:
        try:
            versions[name] = str(getattr(importlib.import_module(name), "__version__", ""))
        except Exception as error:  # noqa: BLE001 (a library that cannot be loaded raises what it likes)
            versions[name] = None
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            reason = next(
                (line for line in lines if ".so" in line and "cannot open" in line), (lines or ["no reason"])[0]
            )
            problems.append(f"{name} cannot be imported: {type(error).__name__}: {reason}")
    return versions, problems


def torch_report() -> dict[str, Any]:
    """What the imported torch was built for, asked of the build itself, as no card need be there."""
    torch = importlib.import_module("torch")
    flags = torch._C._cuda_getArchFlags() if torch.version.cuda else None  # noqa: SLF001
    return {"version": torch.__version__, "cuda": torch.version.cuda, "architectures": (flags or "").split()}


def check(wanted: str, cuda: int, cuobjdump: str) -> dict[str, Any]:
    """Everything that was found, with the sentences of what is wrong under ``problems``."""
    versions, problems = imported(PACKAGES)
    report: dict[str, Any] = {"architecture": wanted, "cuda": cuda, "imported": versions, "libraries": {}}
    if versions["torch"] is not None:
        report["torch"] = torch_report()
        problems += torch_problems(report["torch"], wanted, cuda)
    for package, pattern in LIBRARIES.items():
        directory = directory_of(package)
        if directory is None:
            problems += [] if package in OPTIONAL else [f"{package} is not installed"]
            continue
        found = [library_report(path, cuobjdump) for path in sorted(directory.glob(pattern))]
        report["libraries"][package] = found
        problems += library_problems(package, found, wanted, cuda)
    return report | {"problems": problems}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--architecture", default="sm_120", help="what the cards are (default %(default)s)")
    parser.add_argument("--cuda", type=int, default=13, help="major version of CUDA (default %(default)s)")
    parser.add_argument(
        "--cuobjdump", default="", help="the toolkit's; if it is not there, the files are read directly"
    )
    options = parser.parse_args()
    cuobjdump = options.cuobjdump if Path(options.cuobjdump).is_file() else ""
    report = check(options.architecture, options.cuda, cuobjdump)
    sys.stdout.write(f"{json.dumps(report)}\n")
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
