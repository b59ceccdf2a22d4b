"""The figures of one run, and of two."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from matplotlib.figure import Figure

from blackwell.bench.arms import FULL
from blackwell.sweep.points import BASELINE, DYNAMIC

from . import figures, groups, looks, series
from .figures import Line, Ratios
from .groups import Group
from .layout import Picture
from .looks import Look, Theme
from .run_files import Run
from .series import Cell

INTERVALS = "Bars are 95 % intervals of the median; the marks of arms at one level are drawn a little apart."
NO_INTERVALS = "Without a second repeat there are no intervals."


def of_group(run: Run, group: Group, suffix: str = "") -> list[Picture]:
    """The four figures of a group; ``suffix`` tells their names from those of another group."""
    cells, lines, bars = group.cells, _lines(group), _bars(group.cells)
    wanted = [
        (
            _has(cells, "tok_s"),
            "throughput",
            "Throughput",
            f"Output of all clients together. {bars}",
            lambda theme: figures.throughput({"": lines}, theme),
        ),
        (
            _has_ratio(group),
            "ratio",
            "Where speculation stops to pay",
            "Above 1, drafting all steps is faster. A policy goes by the batch that the server counts, not by clients.",
            lambda theme: figures.ratio([ratios(run, group)], lambda _: theme.of(FULL), theme),
        ),
        (
            _has(cells, "user_tok_s"),
            "user-speed",
            "Speed of one client",
            f"What one client sees. {bars}",
            lambda theme: figures.user_speed({"": lines}, theme),
        ),
        (
            _has(cells, "answer_s"),
            "pareto",
            "Throughput against answer time",
            "Up and to the left is better; numbers are clients. A point on the grey line is beaten by no other.",
            lambda theme: figures.pareto(lines, theme),
        ),
    ]
    return [_picture(*one, suffix) for is_there, *one in wanted if is_there]


def _has(cells: Iterable[Cell], name: str) -> bool:
    return any(getattr(cell, name) for cell in cells)


def _bars(cells: Iterable[Cell]) -> str:
    return INTERVALS if any(cell.tok_s and cell.tok_s.low is not None for cell in cells) else NO_INTERVALS


def _picture(name: str, title: str, caption: str, draw: Callable[[Theme], Figure], suffix: str) -> Picture:
    return Picture(f"{name}{suffix}", title, caption, lambda: _images(draw))


def _images(draw: Callable[[Theme], Figure]) -> dict[str, bytes]:
    return {theme.name: figures.png(draw(theme), theme) for theme in looks.THEMES}


def _lines(group: Group, *, before: bool = False) -> list[Line]:
    return [
        Line(arm, arm, [cell for cell in levels.values() if cell.tok_s], before)
        for arm, levels in series.by_arm(group.cells).items()
        if any(cell.tok_s for cell in levels.values())
    ]


def _has_ratio(group: Group) -> bool:
    return group.derived is not None or bool(rough(group))


def ratios(run: Run, group: Group, name: str = "", *, before: bool = False) -> Ratios:
    """Full over plain of a group, with the bounds of its policy; ``name``: of the run, where there are two."""
    label, prefix, bounds = name or "full / plain", f"{name}, " if name else "", _bounds(run, group)
    if group.derived:
        return Ratios(label, group.derived.nodes, group.derived.crossover, bounds, before=before, prefix=prefix)
    return Ratios(label, bounds=bounds, rough=rough(group), before=before, prefix=prefix)


def rough(group: Group) -> dict[float, float]:
    """Ratios of the medians of full and plain by running batch, where there is no more to say."""
    arms = series.by_arm(group.cells)
    found = {}
    for level, full in arms.get(FULL, {}).items():
        plain = arms.get("plain", {}).get(level)
        if plain and full.tok_s and plain.tok_s and full.running_batch:
            found[max(1.0, full.running_batch)] = full.tok_s.middle / plain.tok_s.middle
    return dict(sorted(found.items()))


def _bounds(run: Run, group: Group) -> list[tuple[int, str]]:
    derived = groups.policies(run).get((group.settings, group.context))
    policy = derived["policy"] if derived else group.derived.policy if group.derived else {"tiers": []}
    word = "policy" if derived else "policy so far"
    return [
        (tier["max_batch"], f"{word}: {_steps(tier['steps'])} up to {tier['max_batch']}")
        for tier in policy["tiers"]
        if "max_batch" in tier
    ]


def _steps(steps: int | str) -> str:
    return {FULL: "full", 0: "plain"}.get(steps, f"reduced{steps}")


def of_settings(found: Sequence[Group], suffix: str = "") -> Picture:
    """The best arm of each server setting by level, all of one context."""
    like = [FULL, "plain", DYNAMIC, "reduced2", BASELINE, "reduced1", "reduced3"]
    lines = [Line(group.settings, like[number % len(like)], _best(group.cells)) for number, group in enumerate(found)]
    return _picture(
        "settings",
        "Server settings",
        f"The fastest arm at each level, whichever it is. {INTERVALS}",
        lambda theme: figures.throughput({"": lines}, theme),
        suffix,
    )


def _best(cells: Sequence[Cell]) -> list[Cell]:
    best: dict[int, Cell] = {}
    for cell in cells:
        if cell.tok_s and (cell.c not in best or cell.tok_s.middle > best[cell.c].tok_s.middle):
            best[cell.c] = cell
    return [cell for _, cell in sorted(best.items())]


def of_two(
    runs: tuple[Run, Run], found: tuple[Group, Group], names: tuple[str, str], suffix: str = ""
) -> list[Picture]:
    """The figures of a group in two runs, the one that is compared with first; ``names``: what they are called."""
    panels, cells = _panels(found, names), [cell for group in found for cell in group.cells]
    bars, told = _bars(cells), f"Filled: {names[1]}; hollow: {names[0]}."
    wanted = [
        (
            _has(cells, "tok_s"),
            "throughput",
            "Throughput",
            f"{told} {bars}",
            lambda theme: figures.throughput(panels, theme),
        ),
        (
            all(map(_has_ratio, found)),
            "ratio",
            "Where speculation stops to pay",
            f"Above 1, drafting all steps is faster. {told}",
            lambda theme: figures.ratio(_both_ratios(runs, found, names), _look(theme), theme),
        ),
        (
            _has(cells, "user_tok_s"),
            "user-speed",
            "Speed of one client",
            f"{told} {bars}",
            lambda theme: figures.user_speed(panels, theme),
        ),
        (
            _has(cells, "answer_s"),
            "pareto",
            "Throughput against answer time",
            f"Up and to the left is better; numbers are clients. {told}",
            lambda theme: figures.pareto([*_lines(found[0], before=True), *_lines(found[1])], theme),
        ),
    ]
    return [_picture(*one, suffix) for is_there, *one in wanted if is_there]


def _panels(found: tuple[Group, Group], names: tuple[str, str]) -> Mapping[str, list[Line]]:
    arms = dict.fromkeys(sorted({cell.arm for group in found for cell in group.cells}, key=series.arm_order))
    return {
        arm: [
            Line(name, arm, [cell for cell in group.cells if cell.arm == arm and cell.tok_s], before)
            for group, name, before in zip(found, names, (True, False), strict=True)
        ]
        for arm in arms
    }


def _both_ratios(runs: tuple[Run, Run], found: tuple[Group, Group], names: tuple[str, str]) -> list[Ratios]:
    return [
        ratios(run, group, name, before=before)
        for run, group, name, before in zip(runs, found, names, (True, False), strict=True)
    ]


def _look(theme: Theme) -> Callable[[Ratios], Look]:
    return lambda one: theme.of("plain" if one.before else FULL)
