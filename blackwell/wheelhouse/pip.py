"""Calls of pip for the hosts' platform, whatever this machine runs."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from blackwell import paths
from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.pins import Pin, normalized
from blackwell.wheelhouse.store import sha256_of
from blackwell.wheelhouse.variants import Address, Variant

PYTHON = "3.11"
"""CPython of the hosts (Debian 12)."""

GLIBC = 36
"""Minor version of the hosts' glibc 2 (Debian 12); wheels for any version from 2.5 to this one run there (PEP 600)."""

PLATFORMS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in range(GLIBC, 4, -1)),
    *(f"{legacy}_x86_64" for legacy in ("manylinux2014", "manylinux2010", "manylinux1", "linux")),
)
"""Platform tags that the hosts accept, the best first."""

TARGET = (
    "--only-binary=:all:",
    "--implementation=cp",
    f"--python-version={PYTHON}",
    *(f"--abi={abi}" for abi in (f"cp{PYTHON.replace('.', '')}", "abi3", "none")),
    *(f"--platform={platform}" for platform in PLATFORMS),
)
"""Options that make pip choose wheels for the hosts."""

COMMON = ("--disable-pip-version-check", "--no-input", "--progress-bar=off", "--retries=2")


class NotOfferedError(WheelhouseError):
    """Every index that pip was told of was asked, and none has a wheel of the package, or none that goes with a pin."""


def pip_python() -> str:
    """Return the interpreter whose pip is called: the control environment's, else the one that runs this."""
    own = paths.ROOT / ".venv/bin/python"
    return str(own) if own.exists() else sys.executable


def download(pins: Sequence[Pin], directory: Path, kind: Variant) -> None:
    """Download the wheels of some pins into an empty directory, each checked against its hash by pip.

    A package that pip's own configuration does not offer is taken from the variant's fallback index for it, if there
    is one. Raises NotOfferedError or WheelhouseError, naming the package if there is one pin.
    """
    try:
        download_with(pins, directory, kind=kind)
    except NotOfferedError as nowhere:
        fallback = kind.fallback.get(pins[0].name) if len(pins) == 1 else None
        if fallback is None:
            raise
        try:
            download_with(pins, directory, f"--index-url={fallback.chosen()}", kind=kind)
        except WheelhouseError as error:
            raise WheelhouseError(f"{nowhere}; from {fallback.chosen()}: {error}") from error


def resolve(requirements: Path, constraints: Iterable[str], kind: Variant) -> list[Pin]:
    """Return a pin for each package that a requirements file needs, at the versions in ``constraints`` if there.

    A package that the variant lists as alone adds no other.
    pip evaluates environment markers for the Python that runs it: raises WheelhouseError unless that is the hosts'.
    """
    _refuse_other_python()
    lines = [_direct(line, kind) for line in requirements.read_text().splitlines()]
    alone = [line for line in lines if _package(line) in kind.alone]
    others = [line for line in lines if line not in alone]
    constraints = list(constraints)
    what = f"the packages of {requirements}"
    pins = _resolve_lines(others, constraints, kind, what)
    return pins + (_resolve_lines(alone, constraints, kind, what, "--no-deps") if alone else [])


def download_with(pins: Sequence[Pin], directory: Path, *options: str, kind: Variant) -> None:
    """Download wheels as pip's configuration and more options for it say; raises as ``download`` does."""
    names = ", ".join(str(pin) for pin in pins)
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=directory.parent) as requirements:
        requirements.write("".join(f"{_direct(pin.requirement, kind)}\n" for pin in pins))
        requirements.flush()
        command = ["download", *TARGET, "--no-deps", "--require-hashes", f"--dest={directory}"]
        command += [*options, f"--requirement={requirements.name}"]
        _pip(command, names, kind, scratch=directory.parent)


def _resolve_lines(
    lines: Sequence[str], constraints: Iterable[str], kind: Variant, what: str, *options: str
) -> list[Pin]:
    """Return the pins that pip would install for some lines of a requirements file; ``what`` is for an error."""
    with tempfile.TemporaryDirectory(prefix="wheelhouse-lock-") as scratch:
        wanted, kept, report = (Path(scratch) / name for name in ("requirements.txt", "constraints.txt", "report.json"))
        wanted.write_text("".join(f"{line}\n" for line in lines))
        kept.write_text("".join(f"{line}\n" for line in constraints))
        target = [*TARGET, "--dry-run", "--ignore-installed", f"--target={scratch}/unused", f"--report={report}"]
        extra = [
            f"--extra-index-url={address}" for address in dict.fromkeys(a.chosen() for a in kind.fallback.values())
        ]
        command = ["install", *target, *options, f"--constraint={kept}", f"--requirement={wanted}"]
        try:
            _pip(command, what, kind)
        except NotOfferedError:
            if not extra:
                raise
            _pip([*command, *extra], what, kind)
        return [_reported_pin(item) for item in json.loads(report.read_text())["install"]]


def _package(line: str) -> str | None:
    """Return the normalized name of the package that a line of a requirements file begins with, if any."""
    match = re.match(r"[A-Za-z0-9._-]+", line)
    return normalized(match[0]) if match else None


def _direct(line: str, kind: Variant) -> str:
    """Return a line of a requirements file with the wheel's own address, if the variant has one for the package."""
    match = re.match(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;#]+)(?P<rest>.*)", line)
    wheel = kind.direct.get(normalized(match["name"])) if match else None
    return f"{match['name']} @ {_escaped(wheel, match['version'])}{match['rest']}" if wheel else line


def _escaped(wheel: Address, version: str) -> str:
    return wheel.chosen().format(version=version).replace("+", "%2B")


def _pip(arguments: Sequence[str], what: str, kind: Variant, scratch: Path | None = None) -> None:
    """Run pip; ``what`` is what an error says could not be had, ``scratch`` where pip keeps unfinished downloads."""
    command = [pip_python(), "-m", "pip", *arguments, *COMMON]
    environment = {**os.environ, **({"TMPDIR": str(scratch)} if scratch else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        addresses = [address.chosen() for address in (*kind.fallback.values(), *kind.direct.values())]
        raise pip_error(done.stdout + done.stderr, what, addresses)


def pip_error(output: str, what: str, addresses: Iterable[str] = ()) -> WheelhouseError:
    """Return the error that pip's output amounts to.

    ``what`` is what was asked for, ``addresses`` are those that pip may have been told of: it names an index that
    cannot be reached by its path only.
    """
    if "No module named pip" in output:
        return WheelhouseError(f"{pip_python()} has no pip; run scripts/bootstrap")
    mismatch = re.search(
        r"^ +(?P<what>\S+==\S+).*?Expected sha256 (?P<want>\w+)\s+Got +(?P<got>\w+)", output, re.M | re.S
    )
    if mismatch:
        return WheelhouseError(
            f"the wheel of {mismatch['what']} that was offered has SHA-256 {mismatch['got']}, "
            f"but it must have {mismatch['want']}"
        )
    reasons = re.findall(r"^ERROR: (.+)", output, re.M)
    reason = reasons[-1] if reasons else (output.strip().splitlines() or ["no message"])[-1]
    if "No space left on device" in output:
        return WheelhouseError(f"cannot get {what}: no space left on the disk")
    if unanswered := _unanswered(output, addresses):
        return WheelhouseError(f"cannot get {what}: {unanswered}")
    if "No matching distribution" in reason:
        return NotOfferedError(f"cannot get {what}: no package index that pip is configured for offers it")
    # Where a constraint names the version, pip calls what it is not offered a conflict.
    kind = NotOfferedError if "ResolutionImpossible" in output else WheelhouseError
    return kind(f"cannot get {what}: pip says: {reason}")


def _unanswered(output: str, addresses: Iterable[str]) -> str:
    """Return what pip's output says of a place that did not answer, or not with what it was asked for; else nothing."""
    if re.search(r"Retrying \(|NewConnectionError|NameResolutionError", output):
        asked = re.findall(r"connection broken by .*: (/\S+)|Max retries exceeded with url: (/\S+)", output)
        paths_asked = [first or second for first, second in asked]
        silent = [address for address in dict.fromkeys(addresses) if _is_among(address, paths_asked)]
        return f"{' and '.join(silent) or 'a package index'} cannot be reached"
    refused = re.search(r"(\d{3}) (?:Client|Server) Error: .* for url: (\S+)", output)
    return f"{refused[2]} answers {refused[1]}" if refused else ""


def _is_among(address: str, paths_asked: Iterable[str]) -> bool:
    """Return whether one of the paths that pip asked for is at an address."""
    start = urlsplit(address).path.partition("{version}")[0]
    return any(path.startswith(start) for path in paths_asked)


def _refuse_other_python() -> None:
    question = "import platform as p; print(p.python_implementation(), p.system(), p.machine(), p.python_version())"
    answer = subprocess.run([pip_python(), "-c", question], capture_output=True, text=True, check=True).stdout.strip()
    if not answer.startswith(f"CPython Linux x86_64 {PYTHON}."):
        raise WheelhouseError(
            f"a lock can only be made with CPython {PYTHON} on Linux x86_64, "
            f"since pip judges markers by the Python that runs it; {pip_python()} is {answer}"
        )


def _reported_pin(item: dict) -> Pin:
    """Return the pin of one entry of pip's installation report (https://pip.pypa.io/en/stable/reference/installation-report/)."""
    name, version = normalized(item["metadata"]["name"]), item["metadata"]["version"]
    url, archive = item["download_info"]["url"], item["download_info"]["archive_info"]
    # Some releases of pip write only the older of the two forms where they hashed the file themselves.
    older = archive.get("hash", "")
    digest = archive.get("hashes", {}).get("sha256") or (older.partition("sha256=")[2] or None)
    if digest is None and urlsplit(url).scheme == "file":
        digest = sha256_of(Path(unquote(urlsplit(url).path)))
    if digest is None:
        raise WheelhouseError(f"the index gives no SHA-256 for {name} {version} ({url})")
    return Pin(name, version, digest)
