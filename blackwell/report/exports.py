"""The points, medians and ratios of runs as CSV and as JSON lines: the same rows in both."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from . import run_files, series
from .groups import Group
from .run_files import Run
from .series import Cell
from .shared import Pair

Rows = Sequence[Mapping[str, Any]]


def points(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """Every point of every run, marked ones as well, in the order in which they were measured."""
    return [{"host": run.plan["host"], "run": run.plan["run"], **row} for run in runs for row in run_files.rows(run)]


def medians(runs: Iterable[tuple[Run, Sequence[Group]]]) -> list[dict[str, Any]]:
    """Every cell of every run; of what has an interval, its ends are columns of their own."""
    return [
        {"host": run.plan["host"], "run": run.plan["run"], **_flat(cell)}
        for run, found in runs
        for group in found
        for cell in group.cells
    ]


def _flat(cell: Cell) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name in (one.name for one in fields(cell)):
        value = getattr(cell, name)
        if name in series.ESTIMATED:
            ends = asdict(value) if value else {"middle": None, "low": None, "high": None}
            flat |= {name: ends["middle"], f"{name}_low": ends["low"], f"{name}_high": ends["high"]}
        else:
            flat[name] = value
    return flat


def ratios(found: Iterable[Pair]) -> list[dict[str, Any]]:
    """How many times as fast the second of two runs is, at every arm and level that both have."""
    return [
        {
            **{name: getattr(one.second, name) for name in ("settings", "context", "arm", "c")},
            "first_tok_s": one.first.tok_s.middle,
            "second_tok_s": one.second.tok_s.middle,
            "ratio": one.ratio.middle,
            "low": one.ratio.low,
            "high": one.ratio.high,
            "verdict": series.verdict(one.ratio),
        }
        for pair in found
        for one in pair.shared
    ]


def as_csv(rows: Rows) -> str:
    """The rows with a line of names; what is not known is empty."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_jsonl(rows: Rows) -> str:
    """The rows, a line of JSON each."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)
