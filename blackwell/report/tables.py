"""The tables of one run."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from blackwell.bench import facts
from blackwell.bench.arms import PLAIN
from blackwell.bench.fingerprint import NOUNS, Fingerprint
from blackwell.sweep.points import BASELINE

from . import answer, numbers, series
from .groups import Group
from .layout import Row, Table, Value
from .numbers import NONE
from .run_files import Run
from .series import Cell

LONG = 100
"""Characters of a value that a table has room for."""
PAIRED = (
    "A ratio is the median over pairs of points that were measured one after the other, in a stage of their own; it "
    "need not be that of the medians beside it."
)

_MEDIANS = (
    ("p95 answer, s", "answer_s_p95", numbers.shown),
    ("running batch", "running_batch", numbers.batch),
    ("waiting", "queued", numbers.batch),
    ("acceptance, tokens", "acceptance", numbers.share),
    ("KV tokens", "kv_tokens", numbers.whole),
    ("power, W", "power_w", numbers.whole),
    ("SM clock, MHz", "sm_mhz", numbers.whole),
    ("temperature, °C", "temperature_c", numbers.whole),
)


def measured(group: Group, name: str) -> Table:
    """Every arm at every level; a column that has nothing at all is left out, and the caption says so."""
    there = [column for column in _MEDIANS if any(getattr(cell, column[1]) is not None for cell in group.cells)]
    head = ["clients", "output tokens/s", "tokens/s of one client", "median answer, s"]
    head += [column[0] for column in there] + ["points"]
    groups = {
        arm: [
            [
                str(level),
                *(numbers.estimate(getattr(cell, name)) for name in series.ESTIMATED),
                *(words(getattr(cell, key)) for _, key, words in there),
                _points(cell),
            ]
            for level, cell in levels.items()
        ]
        for arm, levels in series.by_arm(group.cells).items()
    }
    lacking = [column[0].partition(",")[0] for column in _MEDIANS if column not in there]
    return Table(name, head, groups, caption=f"Not measured: {numbers.listed(lacking)}." if lacking else "")


def _points(cell: Cell) -> Value | str:
    if not cell.marked:
        return str(cell.counted)
    return Value(f"{cell.counted} of {cell.counted + cell.marked}", "", "doubt")


def baseline(group: Group, name: str) -> Table | None:
    """A server without a draft beside one that is held at no draft steps; None without a level that has both."""
    arms = series.by_arm(group.cells)
    rows = [
        _beside(without, held)
        for level, without in arms.get(BASELINE, {}).items()
        if (held := arms.get(PLAIN, {}).get(level)) and without.tok_s and held.tok_s
    ]
    head = ["clients", "baseline, tokens/s", "plain, tokens/s", "plain / baseline"]
    return Table(name, [*head, "KV tokens, baseline", "KV tokens, plain"], {"": rows}) if rows else None


def _beside(without: Cell, held: Cell) -> Row:
    found = series.ratio(held.tok_s, without.tok_s)
    kind = {"slower": "bad", "faster": "good"}.get(series.verdict(found), "")
    return [
        str(without.c),
        numbers.estimate(without.tok_s),
        numbers.estimate(held.tok_s),
        numbers.ratio(found, kind),
        numbers.whole(without.kv_tokens),
        numbers.whole(held.kv_tokens),
    ]


def proof(run: Run, group: Group, name: str) -> Table | None:
    """The policy beside the better static arm; None if nothing is proven."""
    wanted = answer.margin(run)
    rows = [_proven(level, wanted) for level in answer.levels_of(run, group)]
    head = ["clients", "better static arm", "its tokens/s", "policy, tokens/s", "policy / static", f"holds {wanted:g}"]
    return Table(name, head, {"": rows}, PAIRED) if rows else None


def _proven(level: Mapping[str, Any], wanted: float) -> Row:
    word, kind = {True: ("holds", "good"), False: ("does not hold", "bad"), None: ("not known", "doubt")}[level["ok"]]
    why = level.get("why") or ("" if level["ok"] is None or answer.certain(level, wanted) else "not certain")
    interval = numbers.between(numbers.share, level.get("low"), level.get("high"))
    return [
        str(level["c"]),
        level["best"] or NONE,
        numbers.shown(level.get("static")),
        numbers.shown(level.get("dynamic")),
        Value(numbers.share(level["ratio"]), interval, kind),
        Value(word, why, kind),
    ]


def check(found: Sequence[Mapping[str, Any]], name: str) -> Table:
    """What sglang.bench_serving measured beside this bench."""
    rows = [
        [
            one["arm"],
            str(one["c"]),
            str(one["context"]),
            one["settings"],
            numbers.shown(one["tok_s"]),
            Value(numbers.shown(one["bench_serving_tok_s"]), one.get("problem") or ""),
            numbers.shown(one.get("concurrency")),
            numbers.share(one["ratio"]),
        ]
        for one in found
    ]
    head = ["arm", "clients", "context, tokens", "settings", "this bench, tokens/s", "bench_serving, tokens/s"]
    return Table(name, [*head, "its requests in flight", "this bench / bench_serving"], {"": rows})


def settings(found: Sequence[Group], name: str) -> Table:
    """Server settings beside each other, all of one context: each arm and level, and how many times the first."""
    first, *others = found
    cells = [{(cell.arm, cell.c): cell for cell in group.cells} for group in found]
    head = ["clients", *(f"{group.settings}, tokens/s" for group in found)]
    head += [f"{group.settings} / {first.settings}" for group in others]
    groups: dict[str, list[Row]] = {}
    for arm, c in sorted({at for one in cells for at in one}, key=lambda at: (series.arm_order(at[0]), at[1])):
        speeds = [one[arm, c].tok_s if (arm, c) in one else None for one in cells]
        ratios = [series.ratio(speed, speeds[0]) for speed in speeds[1:]]
        row = [str(c), *map(numbers.estimate, speeds), *(numbers.ratio(one, kind(one)) for one in ratios)]
        groups.setdefault(arm, []).append(row)
    return Table(name, head, groups)


def kind(found: series.Estimate | None) -> str:
    """How a ratio is shown: as good or bad only if that is certain."""
    return {"faster": "good", "slower": "bad"}.get(series.verdict(found), "")


def fingerprint(found: Fingerprint, name: str) -> list[Table]:
    """The parts of a fingerprint; one that is too long for a table gets a folded one of its own."""
    order = [part for part in NOUNS if part in found.parts] + sorted(found.parts.keys() - NOUNS.keys())
    long = [part for part in order if isinstance(found.parts[part], dict) and len(text(found.parts[part])) > LONG]
    values = {part: f"{len(found.parts[part])}, below" if part in long else text(found.parts[part]) for part in order}
    rows = [[noun(part), value] for part, value in values.items()]
    tables = [Table(name, ["part", "value"], {"": rows}, words=True)]
    return tables + [
        Table(
            f"{name}-{part}",
            ["name", "value"],
            {"": [[key, text(value)] for key, value in sorted(found.parts[part].items())]},
            words=True,
            folded=f"{noun(part)} ({len(found.parts[part])})",
        )
        for part in long
    ]


def noun(part: str) -> str:
    """What a part of a fingerprint is called."""
    return NOUNS[part][0] if part in NOUNS else part


def text(value: object) -> str:
    """A value of JSON in words."""
    if value is None or value in ("", {}, []):
        return "none"
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{key}={part if isinstance(part, str) else json.dumps(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(part if isinstance(part, str) else json.dumps(part) for part in value)
    return json.dumps(value)


def plan(run: Run, name: str) -> list[Table]:
    """The plan of a run, and its server settings."""
    rows = [[key.replace("_", " "), text(value)] for key, value in run.plan.items() if key not in ("settings", "note")]
    changes = [
        [one["name"], text(_open(one.get("flags", {}))), text(_open(one.get("environment", {})))]
        for one in run.plan["settings"]
    ]
    return [
        Table(name, ["what", "value"], {"": rows}, words=True),
        Table(f"{name}-settings", ["settings", "flags", "environment"], {"": changes}, words=True),
    ]


def _open(named: Mapping[str, Any]) -> dict[str, Any]:
    return {key: "(not shown)" if secret(key) else value for key, value in named.items()}


def secret(name: str) -> bool:
    """Whether an option or a variable opens something, by its name."""
    return bool(facts.SECRET.search(name.lstrip("-").replace("-", "_").upper()))


def command(argv: Sequence[str]) -> str:
    """A command line, an option a line, without what opens something."""
    shown: list[str] = []
    for before, word in zip(["", *argv], argv, strict=False):
        option, equals, _ = word.partition("=")
        if before.startswith("-") and secret(before) and not word.startswith("-"):
            shown.append("(not shown)")
        elif equals and option.startswith("-") and secret(option):
            shown.append(f"{option}=(not shown)")
        else:
            shown.append(word)
    return "".join(f" \\\n  {word}" if word.startswith("--") else f" {word}" for word in shown).strip()
