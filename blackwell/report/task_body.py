"""What ``fab report`` does, and where it writes."""

import importlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from blackwell.bench import durable
from blackwell.bench.errors import BenchError
from blackwell.host_errors import HostError

from . import answer, exports, groups, run_files, run_names, shared
from .groups import Group
from .layout import Page
from .run_files import Run

PAGE = "report.html"
FIGURES = "figures"
ELSEWHERE = "name another directory with --out"

Found = tuple[Run, Sequence[Group]]


def report(named: str, compared: str, out: str, *, json_wanted: bool) -> None:
    """Write the page of a run, or of two, with figures and rows beside it, and say what it says.

    Raises HostError, before anything is written, if there is no such run or it cannot be read.
    """
    second = _read("RUN", named)
    first = _read("--compare", compared) if compared else None
    if first and first[0].directory.resolve() == second[0].directory.resolve():
        raise HostError(f"--compare {compared} is the run itself: name another one")
    directory = Path(out) if out else _beside(second[0], first[0] if first else None)
    page = _page(first, second, _command(named, compared, out))
    rows = _rows(first, second)
    files = _files(page, rows)
    _write(directory, files)
    shown = [directory / name for name in files]
    print(_as_json(page, first, second, rows, shown) if json_wanted else _as_text(page, shown[0]))


def _read(option: str, text: str) -> Found:
    run = run_files.read(run_names.find(option, text))
    return run, groups.groups(run)


def _beside(run: Run, other: Run | None) -> Path:
    """Where a page goes that nobody named a place for: into the run that it is of."""
    if other is None:
        return run.directory / "report"
    return run.directory / f"report-beside-{other.plan['host']}-{other.plan['run']}".replace("/", "-")


def _command(named: str, compared: str, out: str) -> str:
    options = [("--compare", compared), ("--out", out)]
    words = [word for option, value in options if value for word in (option, value)]
    return shlex.join(["fab", "report", named, *words])


def _page(first: Found | None, second: Found, command: str) -> Page:
    if first is None:
        return _drawing("one_run").page(*second, command)
    return _drawing("two_runs").page(first, second, command)


def _drawing(name: str) -> ModuleType:
    """A module that draws; matplotlib takes so long to load that no other task may have to."""
    try:
        return importlib.import_module(f".{name}", __package__)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "blackwell":
            raise
        raise HostError(f"{package} is not in the control environment: run scripts/bootstrap control") from error


def _rows(first: Found | None, second: Found) -> dict[str, exports.Rows]:
    """What is exported, by name."""
    runs = [found for found in (first, second) if found]
    rows = {"points": exports.points(run for run, _ in runs), "medians": exports.medians(runs)}
    return rows | ({"ratios": exports.ratios(shared.pairs(first[1], second[1]))} if first else {})


def _files(page: Page, rows: Mapping[str, exports.Rows]) -> dict[str, bytes]:
    """What is written, by name below the directory; the page first."""
    texts = {PAGE: _drawing("page").render(page)}
    for name, found in rows.items():
        texts |= {f"{name}.csv": exports.as_csv(found), f"{name}.jsonl": exports.as_jsonl(found)}
    pictures = {f"{FIGURES}/{picture.name}.png": picture.images["light"] for picture in page.pictures}
    return {name: text.encode() for name, text in texts.items()} | pictures


def _write(directory: Path, files: Mapping[str, bytes]) -> None:
    try:
        for folder in sorted({(directory / name).parent for name in files}):
            folder.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            durable.replace(directory / name, data)
    except OSError as error:
        raise HostError(f"{error.filename or directory} cannot be written: {error.strerror}; {ELSEWHERE}") from error
    except BenchError as error:
        raise HostError(f"{error}; {ELSEWHERE}") from error


def _as_text(page: Page, file: Path) -> str:
    notes = [f"NOTE: {note}" for note in page.notes]
    lead = [line for title, told in page.lead.items() for line in ([f"{title}:"] if title else []) + list(told)]
    return "\n".join([f"{page.title}. {page.subtitle}", *notes, *lead, str(file)])


def _as_json(
    page: Page, first: Found | None, second: Found, rows: Mapping[str, exports.Rows], files: Sequence[Path]
) -> str:
    run = second[0]
    told: dict[str, Any] = {
        "host": run.plan["host"],
        "run": run.plan["run"],
        "compared_with": first[0].name if first else None,
        "status": run.exit["status"] if run.exit else None,
        "notes": page.notes,
        "answer": [{"of": title, "sentences": told} for title, told in page.lead.items()],
        "policy": run.policy,
        "proof": run.proof,
        "missing": answer.missing(run),
        "left_out": run.left_out,
        "medians": rows["medians"],
        "ratios": rows.get("ratios"),
        "files": [str(file) for file in files],
    }
    return json.dumps(told)
