"""Figures of a run, or of two, as matplotlib has them: no display, no state that outlives a call."""

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from blackwell.bench.crossover import Crossover
from blackwell.bench.curve import Node

from .looks import Look, Theme
from .series import Cell, Estimate

WIDTH, HEIGHT, DPI = 5.8, 4.5, 200
"""Inches and dots an inch: text of 10 points can be read where a phone shows the figure at its full width."""
PANEL_HEIGHT = 1.9
LEGEND_LINE = 0.2
"""Inches that a line of a legend takes."""
CLIENTS = "clients at once"
ALL_SPEED = "output tokens/s, all clients"
USER_SPEED = "output tokens/s of one client"
ANSWER = "seconds to the whole answer, median request"
BATCH = "requests that decode at once (running batch)"
RATIO = "full over plain, ratio of speeds"
RATIO_TICKS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
APART = 0.055
"""Of an axis's length, so far ticks must be apart for their labels to have room."""
SHIFT = 0.003
"""Of an axis's length, so far the bars of two lines are drawn apart."""
HEADROOM, ROOM = 1.6, 2.5
"""How many times the highest median an axis from 0 shows at most, and a logarithmic one the highest and lowest."""


@dataclass(frozen=True)
class Line:
    """The cells of one arm, or the best of each level; ``before``: of the run that another is compared with."""

    label: str
    arm: str
    cells: Sequence[Cell]
    before: bool = False


@dataclass(frozen=True)
class Ratios:
    """Full over plain by running batch. ``crossover``: None if nobody can tell. ``bounds``: of the policy's tiers.

    ``rough``: ratios of medians by batch, in place of nodes where there is no interval. ``prefix``: what its words in
    the legend begin with.
    """

    label: str
    nodes: Sequence[Node] = ()
    crossover: Crossover | None = None
    bounds: Sequence[tuple[int, str]] = ()
    rough: Mapping[float, float] | None = None
    before: bool = False
    prefix: str = ""


def throughput(panels: Mapping[str, Sequence[Line]], theme: Theme) -> Figure:
    """Output of all clients by their number; a panel for each name."""
    return _against_clients(panels, theme, lambda cell: cell.tok_s, ALL_SPEED)


def user_speed(panels: Mapping[str, Sequence[Line]], theme: Theme) -> Figure:
    """Output that one client sees, by the number of clients; a panel for each name."""
    return _against_clients(panels, theme, lambda cell: cell.user_tok_s, USER_SPEED)


def _against_clients(
    panels: Mapping[str, Sequence[Line]], theme: Theme, value: Callable[[Cell], Estimate | None], label: str
) -> Figure:
    levels = sorted({cell.c for lines in panels.values() for line in lines for cell in line.cells})
    with mpl.rc_context(_settings(theme)):
        figure, axes = _grid(len(panels))
        for one, (name, lines) in zip(axes, panels.items(), strict=True):
            for line, shift in zip(lines, _shifts(len(lines), levels), strict=True):
                there = [(cell.c * shift, found) for cell in line.cells if (found := value(cell))]
                _draw(one, there, line, theme)
            _logarithmic(one, levels, APART if len(panels) == 1 else 2 * APART)
            one.set_title(name)
        cells = [cell for lines in panels.values() for line in lines for cell in line.cells]
        _from_zero(axes[0], [found.middle for cell in cells if (found := value(cell))])
        if len(panels) == 1:
            axes[0].set_ylabel(label)
        else:
            figure.supylabel(label, fontsize="medium")
        _legend(figure, axes[:1])
        return figure


def _from_zero(axes: Axes, middles: Sequence[float]) -> None:
    """An axis from 0 on that shows the medians; where nothing but noise was measured, bars leave it at the top."""
    most = HEADROOM * max(middles, default=1.0)
    axes.set_ylim(bottom=0, top=min(most, axes.get_ylim()[1] * 1.04))


def _around(middles: Sequence[float], low: float, high: float) -> tuple[float, float]:
    """The limits of a logarithmic axis, likewise."""
    return max(low, min(middles) / ROOM), min(high, max(middles) * ROOM)


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, in two columns if there are several; their axes are the same."""
    columns = 1 if count == 1 else 2
    rows = math.ceil(count / columns)
    figure = Figure(figsize=(WIDTH, HEIGHT if count == 1 else 0.7 + PANEL_HEIGHT * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for empty in axes[count:]:
        empty.set_axis_off()
    for lowest in axes[max(0, count - columns) : count]:
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel(CLIENTS)
    return figure, axes[:count]


def _shifts(count: int, levels: Sequence[float]) -> list[float]:
    """Factors that draw lines a little apart, so that bars at one level do not hide each other."""
    length = levels[-1] / levels[0] if levels else 1
    return [length ** (SHIFT * (number - (count - 1) / 2)) for number in range(count)]


def _draw(axes: Axes, there: Sequence[tuple[float, Estimate]], line: Line, theme: Theme) -> None:
    found = [estimate for _, estimate in there]
    axes.errorbar(
        [x for x, _ in there],
        [estimate.middle for estimate in found],
        yerr=_reaches(found),
        label=line.label,
        **_style(theme.of(line.arm), theme, line),
    )


def _reaches(found: Sequence[Estimate]) -> list[list[float]] | None:
    """How far down and up each bar goes; None without intervals: a bar of no length would say that nothing scatters."""
    if all(estimate.low is None or estimate.high is None for estimate in found):
        return None
    return [
        [0.0 if estimate.low is None else estimate.middle - estimate.low for estimate in found],
        [0.0 if estimate.high is None else estimate.high - estimate.middle for estimate in found],
    ]


def _style(look: Look, theme: Theme, line: Line | Ratios, *, bars: bool = True) -> dict:
    shown = {"color": look.colour, "marker": look.marker, "linestyle": look.line}
    shown |= {"elinewidth": 1.0} if bars else {}
    if line.before:
        shown |= {"linestyle": (0, (1, 1.5)), "markerfacecolor": theme.paper, "alpha": 0.85}
    return shown


def ratio(found: Sequence[Ratios], look: Callable[[Ratios], Look], theme: Theme) -> Figure:
    """Full over plain by running batch, with crossovers as ranges and the bounds of policies; two runs at most."""
    with mpl.rc_context(_settings(theme)):
        lines = sum(1 + len(one.bounds) + 2 * bool(one.crossover) for one in found)
        figure = Figure(figsize=(WIDTH, HEIGHT + LEGEND_LINE * max(0, lines - 4)), layout="constrained")
        axes = figure.subplots()
        batches = sorted({batch for one in found for batch in _batches(one)})
        _logarithmic(axes, batches)
        for one in found:
            _draw_ratio(axes, one, look(one), theme)
        axes.axhline(1, color=theme.ink, linewidth=1)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(FixedLocator(RATIO_TICKS))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        middles = [value for one in found for value in _middles(one)]
        axes.set_ylim(_around(middles, *axes.get_ylim()))
        axes.set(xlabel=BATCH, ylabel=RATIO)
        _legend(figure, [axes], columns=1)
        return figure


def _batches(found: Ratios) -> list[float]:
    return [node.batch for node in found.nodes] or sorted(found.rough or ())


def _middles(found: Ratios) -> list[float]:
    return [math.exp(node.gain.middle) for node in found.nodes] or list((found.rough or {}).values())


def _draw_ratio(axes: Axes, found: Ratios, look: Look, theme: Theme) -> None:
    batches = _batches(found)
    style = _style(look, theme, found)
    if found.nodes:
        gains = [node.gain for node in found.nodes]
        middles = [math.exp(gain.middle) for gain in gains]
        low = [middle - math.exp(gain.low) for middle, gain in zip(middles, gains, strict=True)]
        high = [math.exp(gain.high) - middle for middle, gain in zip(middles, gains, strict=True)]
        axes.errorbar(batches, middles, yerr=[low, high], label=found.label, **style)
    else:
        axes.errorbar(batches, [found.rough[batch] for batch in batches], label=f"{found.label}, no intervals", **style)
    if found.crossover:
        _draw_crossover(axes, found, look, batches)
    for bound, words in found.bounds:
        colour, line = (look.colour, (0, (1, 1.5))) if found.before else (theme.ink, (0, (5, 2)))
        axes.axvline(bound, color=colour, linewidth=1.4, linestyle=line, label=f"{found.prefix}{words}")


def _draw_crossover(axes: Axes, found: Ratios, look: Look, batches: Sequence[float]) -> None:
    certain, lost, point = found.crossover.certain, found.crossover.lost, found.crossover.point
    begin, end = max(certain, batches[0]), batches[-1] if lost is None else lost
    if begin < end:
        shown = {"facecolor": look.colour, "alpha": 0.13, "linewidth": 0}
        if found.before:
            shown = {"facecolor": "none", "edgecolor": look.colour, "alpha": 0.35, "hatch": "//", "linewidth": 0.8}
        axes.axvspan(begin, end, label=_range_label(found, begin, end), **shown)
    if point:
        label = f"{found.prefix}crossover: {point}"
        axes.plot([point], [1], marker="*", markersize=13, color=look.colour, linestyle="none", label=label)


def _range_label(found: Ratios, begin: float, end: float) -> str:
    upper = f"{end:g}" if found.crossover.lost is not None else f"{end:g} or more"
    return f"{found.prefix}no certain winner: {begin:g} to {upper}"


def pareto(lines: Sequence[Line], theme: Theme) -> Figure:
    """Output of all clients against the time that an answer takes; what no other point beats is joined by a line."""
    with mpl.rc_context(_settings(theme)):
        figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
        axes = figure.subplots()
        for before in sorted({line.before for line in lines}, reverse=True):
            drawn = [line for line in lines if line.before == before]
            best = sorted(
                (cell.answer_s.middle, cell.tok_s.middle, cell.c)
                for line in drawn
                for cell in line.cells
                if cell.on_front
            )
            axes.plot(
                [seconds for seconds, _, _ in best],
                [speed for _, speed, _ in best],
                color=theme.faint,
                linewidth=7,
                alpha=0.45 if before else 0.8,
                solid_capstyle="round",
                solid_joinstyle="round",
                zorder=1,
                label="beaten by no other point" if not before else None,
            )
            for line in drawn:
                _draw_pareto(axes, line, theme)
        axes.set_xscale("log")
        shown = [cell for line in lines for cell in line.cells if cell.tok_s and cell.answer_s]
        axes.set_xlim(_around([cell.answer_s.middle for cell in shown], *axes.get_xlim()))
        _seconds(axes)
        _from_zero(axes, [cell.tok_s.middle for cell in shown])
        axes.set(xlabel=ANSWER, ylabel=ALL_SPEED)
        _legend(figure, [axes])
        return figure


def _draw_pareto(axes: Axes, line: Line, theme: Theme) -> None:
    there = [cell for cell in line.cells if cell.tok_s and cell.answer_s]
    style = _style(theme.of(line.arm), theme, line, bars=False) | {"linewidth": 0.9}
    seconds, speeds = [cell.answer_s for cell in there], [cell.tok_s for cell in there]
    # Of the run that is compared with, marks are enough: its lines would hide the others.
    style |= {"linestyle": "none"} if line.before else {"label": line.label}
    axes.plot([one.middle for one in seconds], [one.middle for one in speeds], **style)
    bars = {"xerr": _reaches(seconds), "yerr": _reaches(speeds), "ecolor": style["color"], "elinewidth": 0.7}
    if not line.before and (bars["xerr"] or bars["yerr"]):
        axes.errorbar(
            [one.middle for one in seconds], [one.middle for one in speeds], fmt="none", capsize=0, alpha=0.5, **bars
        )
    for cell in there:
        if cell.on_front and not line.before:
            axes.annotate(
                str(cell.c),
                (cell.answer_s.middle, cell.tok_s.middle),
                xytext=(-5, 5),
                textcoords="offset points",
                ha="right",
                fontsize="small",
            )


def _seconds(axes: Axes) -> None:
    low, high = axes.get_xlim()
    steps = [
        digit * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for digit in (1, 2, 3, 5, 7)
    ]
    inside = [step for step in steps if low <= step <= high]
    axes.xaxis.set_major_locator(FixedLocator(_apart(inside, low, high)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _logarithmic(axes: Axes, values: Sequence[float], apart: float = APART) -> None:
    axes.set_xscale("log")
    if not values:
        return
    first, last = values[0], values[-1]
    margin = (last / first) ** 0.04 if first < last else 1.5
    axes.set_xlim(first / margin, last * margin)
    axes.xaxis.set_major_locator(FixedLocator(_apart(values, first, last, apart)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _apart(values: Iterable[float], low: float, high: float, apart: float = APART) -> list[float]:
    """Those of rising values that have room beside each other on a logarithmic axis."""
    length = math.log(high / low) if high > low else 1.0
    kept: list[float] = []
    for value in values:
        if not kept or math.log(value / kept[-1]) >= apart * length:
            kept.append(value)
    return kept


def _legend(figure: Figure, axes: Sequence[Axes], columns: int = 3) -> None:
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, len(labels)) or 1, frameon=False)


def _settings(theme: Theme) -> dict:
    return {
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "axes.titlesize": 10,
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "axes.edgecolor": theme.ink,
        "axes.facecolor": theme.paper,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": theme.faint,
        "grid.linewidth": 0.6,
        "figure.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "lines.linewidth": 1.6,
        "lines.markersize": 5.5,
        "errorbar.capsize": 3,
        "legend.fontsize": 9,
    }


def png(figure: Figure, theme: Theme) -> bytes:
    """The PNG data of a figure."""
    data = io.BytesIO()
    # Ticks are made when a figure is drawn.
    with mpl.rc_context(_settings(theme)):
        figure.savefig(data, format="png", dpi=DPI)
    return data.getvalue()
