"""Findings on a host, as data: how bad, what, and what to do about it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

OK, WARNING, PROBLEM = "ok", "warning", "problem"
LEVELS = (PROBLEM, WARNING, OK)
WELL, WRONG = 0, 1


@dataclass(frozen=True)
class Finding:
    """``level``: ok, warning or problem. ``remedy``: a command, or what to do on the host; empty for ok."""

    level: str
    what: str
    remedy: str = ""


def code(found: Sequence[Finding]) -> int:
    """The exit status: 0 if all is well, 1 if there is a warning or a problem."""
    return WELL if all(finding.level == OK for finding in found) else WRONG


def render(name: str, found: Sequence[Finding]) -> str:
    """The findings as a screen; its first line is the verdict."""
    counts = [(level, sum(finding.level == level for finding in found)) for level in (PROBLEM, WARNING)]
    told = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts if count]
    lines = [f"{name}: {', '.join(told) or 'all is well'}"]
    for finding in found:
        lines.append(f"  {finding.level:<8} {finding.what}")
        lines += [f"  {'':<8} -> {finding.remedy}"] if finding.remedy else []
    return "\n".join(lines)


def as_json(name: str, exit_code: int, found: Sequence[Finding]) -> str:
    """The findings for scripts."""
    return json.dumps({"host": name, "exit": exit_code, "findings": [asdict(finding) for finding in found]}, indent=1)
