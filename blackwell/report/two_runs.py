"""The page of a run beside another one, with which it is compared."""

import json
from collections.abc import Mapping, Sequence

from blackwell.bench.bootstrap import CONFIDENCE
from blackwell.bench.fingerprint import differences
from blackwell.host_errors import HostError

from . import answer, groups, numbers, pictures, sections, series, tables
from .groups import Group
from .layout import Page, Part, Row, Section, Table
from .numbers import sentence
from .run_files import Run
from .shared import Pair, Shared, pairs


def page(first: tuple[Run, Sequence[Group]], second: tuple[Run, Sequence[Group]], command: str) -> Page:
    """The page of the second run beside the first; ``command``: what was typed to get it.

    Raises HostError if the two have nothing in common.
    """
    runs, found = (first[0], second[0]), pairs(first[1], second[1])
    if not found:
        raise HostError(
            f"{runs[1].name} and {runs[0].name} cannot be compared: they have no arm at any level with the same "
            "settings and context in common"
        )
    names = _names(runs)
    wanted = [
        _figures(runs, found, names),
        _policies(runs, found, names),
        _ratios(found, names),
        _changes(runs, names),
        *_own(*second, names[1], "second-"),
        *_own(*first, names[0], "first-"),
        Section("command", "Command", [Part(code={"This page was made by": command})]),
    ]
    return Page(
        f"{names[1]} beside {names[0]}",
        " ".join(f"{name}: {answer.state(run)}" for run, name in zip(runs, names, strict=True)),
        [f"{name}: {run.plan['note']}" for run, name in zip(runs, names, strict=True) if run.plan.get("note")],
        _lead(runs, found, names),
        wanted,
    )


def _names(runs: tuple[Run, Run]) -> tuple[str, str]:
    """Short where that is enough."""
    if runs[0].plan["host"] == runs[1].plan["host"] and runs[0].plan["run"] != runs[1].plan["run"]:
        return runs[0].plan["run"], runs[1].plan["run"]
    if runs[0].name == runs[1].name:
        return f"{runs[0].name} in {runs[0].directory}", f"{runs[1].name} in {runs[1].directory}"
    return runs[0].name, runs[1].name


def _lead(runs: tuple[Run, Run], found: Sequence[Pair], names: tuple[str, str]) -> dict[str, list[str]]:
    told = _counted([shared for pair in found for shared in pair.shared], names)
    if None in (runs[0].fingerprint, runs[1].fingerprint):
        told.append("What one of them was measured under is not recorded, so nobody can say what changed.")
    else:
        changed = differences(runs[0].fingerprint, runs[1].fingerprint)
        count = f"{len(changed)} part{'' if len(changed) == 1 else 's'} of the fingerprint"
        told.append(f"Between them, {count} changed." if changed else "Both were measured under the same fingerprint.")
    lead = {"": told}
    for pair in found:
        title = groups.titled(pair.second, [one.second for one in found])
        for run, group, name in zip(runs, (pair.first, pair.second), names, strict=True):
            clauses = (answer.crossing(group), answer.policy(run, group))
            lead[f"{name}, {title}" if title else name] = [sentence(clause) for clause in clauses]
    return lead


def _counted(shared: Sequence[Shared], names: tuple[str, str]) -> list[str]:
    verdicts = [series.verdict(one.ratio) for one in shared]
    faster, slower = verdicts.count("faster"), verdicts.count("slower")
    ratios = sorted(one.ratio.middle for one in shared)
    span = f"{names[1]} gives {numbers.share(ratios[0])} to {numbers.share(ratios[-1])} of the output of {names[0]}"
    if verdicts.count("no interval") == len(verdicts):
        return [f"{span}; one repeat does not tell how certain that is."]
    told = (
        f"Of {len(shared)} arms and levels that both have, it is certainly faster at {faster} and certainly slower at "
        f"{slower}"
    )
    chance = round((1 - CONFIDENCE) * len(shared))
    return [f"{span}.", f"{told}; about {chance} would differ by chance alone." if chance else f"{told}."]


def _figures(runs: tuple[Run, Run], found: Sequence[Pair], names: tuple[str, str]) -> Section:
    among = [pair.second for pair in found]
    parts = [
        Part(
            groups.titled(pair.second, among),
            pictures=pictures.of_two(runs, (pair.first, pair.second), names, sections.suffix(pair.second, among)),
        )
        for pair in found
    ]
    return Section("figures", "Figures", parts)


def _policies(runs: tuple[Run, Run], found: Sequence[Pair], names: tuple[str, str]) -> Section:
    among = [pair.second for pair in found]
    parts = []
    for number, pair in enumerate(found):
        sides = list(zip(runs, (pair.first, pair.second), strict=True))
        derived = [groups.policies(run).get((group.settings, group.context)) for run, group in sides]
        rows: list[Row] = [
            ["crossover", *(sentence(answer.crossing(group)) for _, group in sides)],
            ["policy", *(sentence(answer.policy(run, group)) for run, group in sides)],
            ["proof", *(sentence(answer.proof(run, group)) for run, group in sides)],
            ["as JSON", *(json.dumps(one["policy"]) if one else numbers.NONE for one in derived)],
        ]
        table = Table(f"policies-{number + 1}" if number else "policies", ["", *names], {"": rows}, words=True)
        parts.append(Part(groups.titled(pair.second, among), tables=[table]))
    return Section("policies", "Policies side by side", parts)


def _ratios(found: Sequence[Pair], names: tuple[str, str]) -> Section:
    among = [pair.second for pair in found]
    told = "Each run has servers of its own, so that a ratio holds the noise of both. Colour: certain at 95 %."
    parts = [Part(texts=[told])]
    for number, pair in enumerate(found):
        head = ["clients", f"{names[0]}, tokens/s", f"{names[1]}, tokens/s", "ratio"]
        head += ["ratio for one client", "ratio of acceptance", ""]
        by_arm: dict[str, list[Row]] = {}
        for shared in pair.shared:
            by_arm.setdefault(shared.second.arm, []).append(_row(shared))
        name = f"ratios-{number + 1}" if number else "ratios"
        parts.append(Part(groups.titled(pair.second, among), tables=[Table(name, head, by_arm)]))
    return Section("ratios", f"{names[1]} over {names[0]}", parts)


def _row(shared: Shared) -> Row:
    first, second = shared.first, shared.second
    has_acceptance = bool(first.acceptance and second.acceptance)
    return [
        str(second.c),
        numbers.estimate(first.tok_s),
        numbers.estimate(second.tok_s),
        numbers.ratio(shared.ratio, tables.kind(shared.ratio)),
        numbers.ratio(series.ratio(second.user_tok_s, first.user_tok_s)),
        numbers.share(second.acceptance / first.acceptance) if has_acceptance else numbers.NONE,
        series.verdict(shared.ratio),
    ]


def _changes(runs: tuple[Run, Run], names: tuple[str, str]) -> Section:
    title = "What changed between them"
    if None in (runs[0].fingerprint, runs[1].fingerprint):
        lacking = [name for run, name in zip(runs, names, strict=True) if run.fingerprint is None]
        told = f"Not known: {numbers.listed(lacking)} records no fingerprint."
        return Section("changes", title, [Part(texts=[told])])
    changed = [sentence(clause) for clause in differences(runs[0].fingerprint, runs[1].fingerprint)]
    told = f"From {names[0]} to {names[1]}:" if changed else "Nothing of the fingerprint."
    parts = [Part(texts=[told], items=changed)]
    plans = _plans(runs[0].plan, runs[1].plan)
    if plans:
        table = Table("plans", ["plan", *names], {"": plans}, words=True)
        parts.append(Part("The plans differ", tables=[table]))
    return Section("changes", title, parts)


def _plans(first: Mapping, second: Mapping) -> list[Row]:
    return [
        [name.replace("_", " "), *(tables.text(plan.get(name)) for plan in (first, second))]
        for name in dict.fromkeys([*first, *second])
        if name not in ("run", "host", "note", "settings") and first.get(name) != second.get(name)
    ]


def _own(run: Run, found: Sequence[Group], name: str, prefix: str) -> list[Section]:
    """What a run has by itself, under its name."""
    own = [sections.measured(run, found, prefix), sections.marked(run, prefix), sections.fingerprint(run, prefix)]
    return [Section(one.name, f"{name}: {one.title[0].lower()}{one.title[1:]}", one.parts) for one in own]
