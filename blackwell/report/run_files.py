"""A fetched run of ``fab bench`` as values, from the files of its directory."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from blackwell import load_policy
from blackwell.bench import store
from blackwell.bench.errors import BenchError
from blackwell.bench.fingerprint import Fingerprint
from blackwell.bench.store import SHOWN_DIGITS, Store
from blackwell.host_errors import HostError
from blackwell.sweep import plan as plans
from blackwell.sweep import runs
from blackwell.sweep.points import Key

from . import forms

PLAN, POINTS = plans.FILE, runs.POINTS
LATER = ("policy", "proof", "check", "exit", "deployed")
"""What a run may not have yet: files of these names with the ending .json."""
MOST_STEPS = 1000
"""More draft steps than any server has, where a plan does not say how many."""


@dataclass(frozen=True)
class Run:
    """``points`` of one fingerprint, the one that was written last, in the order in which they were measured.

    ``fingerprint``: None if it is not recorded. ``left_out``: the points of other fingerprints, a sentence for each of
    these without a full stop. What comes after it is as the files have it, None where there is none yet.
    """

    directory: Path
    plan: Mapping[str, Any]
    digest: str
    fingerprint: Fingerprint | None
    points: Mapping[Key, Mapping[str, Any]]
    left_out: tuple[str, ...] = ()
    policy: Mapping[str, Any] | None = None
    proof: Mapping[str, Any] | None = None
    check: list | None = None
    exit: Mapping[str, Any] | None = None
    deployed: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        """Host and run, as they are typed."""
        return f"{self.plan['host']}/{self.plan['run']}"


def read(directory: Path) -> Run:
    """The run of a directory.

    Raises HostError, naming the file and where there is one the line, if one cannot be read or has another form, and
    if there are no points yet.
    """
    plan = _content(directory / PLAN, "plan")
    if plan is None:
        raise HostError(f"{directory / PLAN} is not there: {directory} is no run of fab bench")
    try:
        digest, found = _points(directory / POINTS)
        fingerprint = store.recorded(directory, digest)
        left_out = tuple(_left_out(Store(directory / POINTS, fingerprint, found.points, found.others)))
    except BenchError as error:
        raise HostError(str(error)) from error
    later = {name: _content(directory / f"{name}.json", name) for name in LATER}
    if found_policy := later["policy"]:
        for one in (found_policy, *found_policy.get("others", ())):
            if wrong := load_policy.problems(one["policy"], plan.get("steps", MOST_STEPS)):
                raise HostError(f"{directory / 'policy.json'}: policy: {'; '.join(wrong)}")
    return Run(directory, plan, digest, fingerprint, found.points, left_out, **later)


def _content(file: Path, form: str) -> dict | list | None:
    """The content of a JSON file of a form; None if the file is not there."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HostError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise HostError(f"{file} is not JSON: {error}") from error
    if wrong := forms.problem(form, content):
        raise HostError(f"{file} {wrong}")
    return content


def _points(file: Path) -> tuple[str, store.Found[Key]]:
    """The digest of the last point, and the points of that fingerprint; they are all of the right form."""
    # With a digest that no point has, all are read and checked, and none is taken.
    whole = store.read(file, Key, "").whole
    if not whole:
        raise HostError(f"{file} has no point yet: there is nothing to report")
    lines = [json.loads(line) for line in file.read_bytes()[:whole].splitlines()]
    for number, line in enumerate(lines, start=1):
        if wrong := forms.problem("point", line):
            raise HostError(f"{file}: line {number} {wrong}")
    digest = lines[-1][store.FINGERPRINT]
    return digest, store.read(file, Key, digest)


def _left_out(points: Store[Key]) -> list[str]:
    if points.fingerprint is not None:
        return points.left_out()
    # There is nothing to tell the others from.
    return [
        f"{points.file} keeps {count} point{'' if count == 1 else 's'} of fingerprint {digest[:SHOWN_DIGITS]}, "
        "not counted here: what the points that count were measured under is not recorded"
        for digest, count in points.others.items()
    ]


def settings(run: Run) -> list[str]:
    """The names of the server settings, in the order of the plan; any that points have beside them come last."""
    planned = [one["name"] for one in run.plan["settings"]]
    return list(dict.fromkeys([*planned, *(key.settings for key in run.points)]))


def rows(run: Run) -> list[dict[str, Any]]:
    """The points as flat rows: parameters, then what was measured, as far as it is known here."""
    parameters = [parameter.name for parameter in fields(Key)]
    return [
        {name: getattr(key, name) for name in parameters} | {name: found.get(name) for name in MEASURED}
        for key, found in run.points.items()
    ]


MEASURED = (
    *("tok_s", "user_tok_s", "answer_s_p50", "answer_s_p95", "acceptance", "running_batch", "queued"),
    *("in_flight_min", "window_s", "requests", "retracted", "kv_tokens", "power_w", "sm_mhz", "temperature_c"),
    *("marked", "note", "began"),
)
"""What a point holds beside its parameters, as a table has it; raw records, if there are any, are not for a table."""
