"""The sections of a page that a run has by itself; the page of two runs has some of them for each."""

import json
from collections.abc import Mapping, Sequence

from blackwell.bench.fingerprint import unread

from . import answer, groups, numbers, series, tables
from .groups import Group
from .layout import Part, Section, Table
from .numbers import sentence
from .run_files import Run

MEDIANS = (
    "Medians over the points that count; small: 95 % intervals, where there are repeats. A running batch is what the "
    "server decodes at once, acceptance is tokens for each verification, the bonus token included."
)
ONCE = "Every point was measured once: there is nothing to tell noise by."
CHECK = "Cross-check with sglang.bench_serving"
SLOW = "A server that is held at no draft steps should be as fast as one without a draft; what it lacks is its cost."


def _name(base: str, group: Group, among: Sequence[Group]) -> str:
    number = list(among).index(group)
    return f"{base}-{number + 1}" if number else base


def suffix(group: Group, among: Sequence[Group]) -> str:
    """What tells the names of a group's files from those of the others."""
    return f"-{group.settings}-{group.context}" if len(among) > 1 else ""


def reasons(run: Run, among: Sequence[Group]) -> Section:
    """Why the answer is what it is: the sentences of the policy, the policy to copy, the proof."""
    return Section("policy", "Policy and proof", [_reasons(run, group, among) for group in among])


def _reasons(run: Run, group: Group, among: Sequence[Group]) -> Part:
    derived = groups.policies(run).get((group.settings, group.context))
    told = derived["explained"] if derived else group.explained
    items = [sentence(clause) for clause in [*told, *answer.unlike(run, group)]]
    proof = tables.proof(run, group, _name("proof", group, among))
    code = {"The policy, as a server takes it": json.dumps(derived["policy"])} if derived else {}
    return Part(
        groups.titled(group, among),
        [] if told else [sentence(answer.crossing(group))],
        items,
        tables=[proof] if proof else [],
        code=code,
    )


def measured(run: Run, among: Sequence[Group], prefix: str = "") -> Section:
    """Every arm at every level."""
    repeats = run.plan["repeats"]
    told = [MEDIANS] if repeats > 1 else [MEDIANS, ONCE]
    parts = [
        Part(groups.titled(group, among), tables=[tables.measured(group, _name(f"{prefix}measured", group, among))])
        for group in among
    ]
    return Section(f"{prefix}measured", "Measured", [Part(texts=told), *parts])


def baseline(among: Sequence[Group]) -> Section | None:
    """A server without a draft beside a plain one; None if they were not both measured."""
    parts = []
    for group in among:
        table = tables.baseline(group, _name("baseline", group, among))
        if table:
            parts.append(Part(groups.titled(group, among), [_kept(group)], tables=[table]))
    return Section("baseline", "Baseline beside plain", [Part(texts=[SLOW]), *parts]) if parts else None


def _kept(group: Group) -> str:
    arms = series.by_arm(group.cells)
    ratios = [
        found
        for level, cell in arms.get("plain", {}).items()
        if (without := arms.get("baseline", {}).get(level)) and (found := series.ratio(cell.tok_s, without.tok_s))
    ]
    middles = [found.middle for found in ratios]
    certain = sum(series.verdict(found) == "slower" for found in ratios)
    told = f"Plain gives {numbers.share(min(middles))} to {numbers.share(max(middles))} of the baseline"
    if all(found.low is None for found in ratios):
        return f"{told}; how certain that is, one repeat does not tell."
    return f"{told}; it is certainly slower at {certain or 'none'} of {len(ratios)} levels."


def marked(run: Run, prefix: str = "") -> Section:
    """What does not count and why, what is missing, and what is noted."""
    points = series.marked(run.points)
    rows: dict[str, list] = {}
    for key, reason in points:
        rows.setdefault("", []).append([str(key), reason])
    table = Table(f"{prefix}marked", ["point", "why it does not count"], rows, words=True)
    counted = f"{len(points)} of {len(run.points)} points do not count." if points else "Every point counts."
    parts = [Part(texts=[counted], tables=[table] if points else [])]
    parts += _list("Missing of the plan", [sentence(clause) for clause in answer.missing(run)])
    parts += _list("Of other fingerprints", [sentence(clause) for clause in run.left_out])
    parts += _list("Noted", [sentence(clause) for clause in _notes(run)])
    return Section(f"{prefix}marked", "Left out, missing and noted", parts)


def _list(title: str, items: Sequence[str]) -> list[Part]:
    return [Part(title, items=items)] if items else []


def _notes(run: Run) -> list[str]:
    noted: dict[str, list[str]] = {}
    for key, found in run.points.items():
        if found.get("note"):
            noted.setdefault(found["note"], []).append(str(key))
    return [
        f"{note}: {points[0]}{f' and {len(points) - 1} more' if len(points) > 1 else ''}"
        for note, points in noted.items()
    ]


def check(run: Run) -> Section:
    """What sglang.bench_serving says of the same levels."""
    if not run.check:
        return Section("check", CHECK, [Part(texts=["The run has no cross-check."])])
    told = (
        "The same server under the same load by SGLang's own benchmark. Its figure is that of the whole run, ramp and "
        "tail included, so that this bench may be somewhat above it."
    )
    return Section("check", CHECK, [Part(texts=[told], tables=[tables.check(run.check, "check")])])


def fingerprint(run: Run, prefix: str = "") -> Section:
    """What the numbers are valid for, and what of that is not known."""
    title = "What the numbers are valid for"
    if run.fingerprint is None:
        told = f"The run records no fingerprint {run.digest[:12]}: nobody can say what its numbers are valid for."
        return Section(f"{prefix}fingerprint", title, [Part(texts=[told])])
    unknown = [sentence(clause) for clause in unread(run.fingerprint)]
    told = [f"Fingerprint {run.digest[:12]}.", *([] if unknown else ["Nothing of it is unknown."])]
    return Section(
        f"{prefix}fingerprint",
        title,
        [Part(texts=told, items=unknown), Part(tables=tables.fingerprint(run.fingerprint, f"{prefix}fingerprint"))],
    )


def plan(run: Run, command: str, prefix: str = "") -> Section:
    """What was to be measured, by which commands."""
    code: dict[str, str] = {}
    if run.plan.get("command"):
        code["Measured by"] = str(run.plan["command"])
    if command:
        code["This page was made by"] = command
    if run.deployed and run.deployed.get("argv"):
        code["The server that was deployed when the run began"] = tables.command(run.deployed["argv"])
    return Section(f"{prefix}plan", "Plan", [Part(tables=tables.plan(run, f"{prefix}plan"), code=code)])


def by_context(among: Sequence[Group]) -> Mapping[int, list[Group]]:
    """The groups of each context that has several server settings."""
    found: dict[int, list[Group]] = {}
    for group in among:
        found.setdefault(group.context, []).append(group)
    return {context: same for context, same in found.items() if len(same) > 1}
