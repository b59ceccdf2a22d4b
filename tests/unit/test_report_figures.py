"""The figures of a run: which there are, that they are drawn whatever the points are, and what they depend on."""

import io
import math
from dataclasses import replace

import made_runs
import pytest
from PIL import Image

from blackwell.bench.bootstrap import Interval
from blackwell.bench.fingerprint import made
from blackwell.report import figures, groups, looks, pictures, series
from blackwell.report.figures import Line, Ratios
from blackwell.report.run_files import Run
from blackwell.report.series import Estimate

FOUND = {
    key: at for key, at in made_runs.points().items() if key.arm in ("full", "plain") and key.c in (1, 10, 30, 100)
}


def drawn(found, policy=None):
    run = Run(None, made_runs.PLAN, "d1", made({}), found, policy=policy)
    return {one.name: one for one in pictures.of_group(run, groups.groups(run)[0])}


def image(data):
    return Image.open(io.BytesIO(data)).convert("RGB")


def test_every_figure_in_light_and_dark():
    found = drawn(FOUND)
    assert list(found) == ["throughput", "ratio", "user-speed", "pareto"]
    for picture in found.values():
        light, dark = (image(picture.images[theme.name]) for theme in looks.THEMES)
        assert light.size == dark.size
        assert light.size[0] >= 1000
        # The corner is paper; no line and no text is cut off at an edge.
        for one, theme in ((light, looks.LIGHT), (dark, looks.DARK)):
            paper = tuple(bytes.fromhex(theme.paper[1:]))
            width, height = one.size
            edges = [(x, y) for x in range(width) for y in (0, height - 1)]
            edges += [(x, y) for y in range(height) for x in (0, width - 1)]
            assert {one.getpixel(at) for at in edges} == {paper}


def group(found=FOUND):
    return groups.groups(Run(None, made_runs.PLAN, "d1", made({}), found))[0]


def lines(found=FOUND, *, before=False):
    arms = series.by_arm(group(found).cells)
    return [Line(arm, arm, list(cells.values()), before) for arm, cells in arms.items()]


def fits(figure):
    """Whether nothing is cut off, and nothing lies over the legend."""
    figure.draw_without_rendering()
    (legend,) = figure.legends
    boxes = [axes.get_tightbbox() for axes in figure.axes if axes.axison]
    inside = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    return (
        not any(legend.get_window_extent().overlaps(box) for box in boxes)
        and inside.x0 >= 0
        and inside.y0 >= 0
        and inside.x1 <= width
        and inside.y1 <= height
    )


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_axes_have_units_and_lines_the_medians_with_their_bars():
    figure = figures.throughput({"": lines()}, looks.LIGHT)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("clients at once", "output tokens/s, all clients")
    assert (axes.get_xscale(), axes.get_ylim()[0]) == ("log", 0)
    assert legend(figure) == ["full", "plain"]
    for bars, line in zip(axes.containers, lines(), strict=True):
        middle, _, (reaches,) = bars
        assert list(middle.get_ydata()) == [cell.tok_s.middle for cell in line.cells]
        assert list(middle.get_xdata()) == pytest.approx([cell.c for cell in line.cells], rel=0.02)
        ends = [[end for _, end in segment] for segment in reaches.get_segments()]
        assert ends == [pytest.approx([cell.tok_s.low, cell.tok_s.high]) for cell in line.cells]
    assert fits(figure)


def test_two_runs_have_a_panel_for_each_arm():
    panels = {
        now.arm: [replace(before, label="old"), replace(now, label="new")]
        for before, now in zip(lines(before=True), lines(), strict=True)
    }
    figure = figures.user_speed(panels, looks.DARK)
    assert [axes.get_title() for axes in figure.axes] == ["full", "plain"]
    assert [axes.get_xlabel() for axes in figure.axes] == ["clients at once"] * 2
    assert legend(figure) == ["old", "new"]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    # No value lies above what is shown.
    assert figure.axes[0].get_ylim()[1] > max(cell.user_tok_s.high for line in lines() for cell in line.cells)
    assert fits(figure)


def test_panels_of_an_odd_number_of_arms_have_their_own_numbers():
    figure = figures.throughput({arm: lines() for arm in ("full", "plain", "dynamic")}, looks.LIGHT)
    assert [axes.axison for axes in figure.axes] == [True, True, True, False]
    assert [axes.get_xlabel() for axes in figure.axes[:3]] == ["", "clients at once", "clients at once"]
    assert fits(figure)


def test_the_ratio_has_nodes_crossover_and_bounds():
    found = group().derived
    drawn_ratio = Ratios("full / plain", found.nodes, found.crossover, [(23, "policy: full up to 23")])
    figure = figures.ratio([drawn_ratio], lambda _: looks.LIGHT.of("full"), looks.LIGHT)
    (axes,) = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == (figures.BATCH, "full over plain, ratio of speeds")
    middle, _, (reaches,) = axes.containers[0]
    assert list(middle.get_xdata()) == [node.batch for node in found.nodes]
    assert list(middle.get_ydata()) == pytest.approx([math.exp(node.gain.middle) for node in found.nodes])
    ends = [[end for _, end in segment] for segment in reaches.get_segments()]
    assert ends == [pytest.approx([math.exp(node.gain.low), math.exp(node.gain.high)]) for node in found.nodes]
    (span,) = axes.patches
    certain, lost = found.crossover.certain, found.crossover.lost
    assert (span.get_x(), span.get_x() + span.get_width()) == (certain, lost)
    assert legend(figure) == [
        f"no certain winner: {certain} to {lost}",
        f"crossover: {found.crossover.point}",
        "policy: full up to 23",
        "full / plain",
    ]
    assert [23, 23] in [list(line.get_xdata()) for line in axes.lines]
    assert fits(figure)


def test_a_crossover_that_is_certain_nowhere_above_goes_on_to_the_end():
    found = group().derived
    open_ended = Ratios("full / plain", found.nodes, replace(found.crossover, certain=0, lost=None, point=None))
    figure = figures.ratio([open_ended], lambda _: looks.LIGHT.of("full"), looks.LIGHT)
    (span,) = figure.axes[0].patches
    assert (span.get_x(), span.get_x() + span.get_width()) == (found.nodes[0].batch, found.nodes[-1].batch)
    assert legend(figure)[0] == "no certain winner: 1 to 100 or more"


def test_two_ratios_fit_with_all_that_is_said_of_them():
    found = group().derived
    both = [
        Ratios(
            name,
            found.nodes,
            found.crossover,
            [(8, "policy: full up to 8"), (23, "policy: reduced1 up to 23")],
            None,
            before,
            f"{name}, ",
        )
        for name, before in (("20261130-061500", True), ("20261201-061500", False))
    ]
    figure = figures.ratio(both, lambda _: looks.LIGHT.of("full"), looks.LIGHT)
    assert len(legend(figure)) == 10
    assert figure.axes[0].get_position().height > 0.3
    assert fits(figure)


def test_the_front_is_drawn_and_its_levels_are_named():
    figure = figures.pareto([*lines(before=True), *lines()], looks.LIGHT)
    (axes,) = figure.axes
    best = sorted((cell.answer_s.middle, cell.tok_s.middle, cell.c) for cell in group().cells if cell.on_front)
    front = next(line for line in axes.lines if line.get_label() == "beaten by no other point")
    assert list(zip(front.get_xdata(), front.get_ydata(), strict=True)) == [at[:2] for at in best]
    assert sorted(int(text.get_text()) for text in axes.texts) == sorted(level for _, _, level in best)
    assert legend(figure) == ["beaten by no other point", "full", "plain"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (figures.ANSWER, figures.ALL_SPEED)
    assert fits(figure)


def test_noise_does_not_hide_the_medians():
    noisy = [
        replace(
            line,
            cells=[
                replace(
                    cell,
                    tok_s=Estimate(cell.tok_s.middle, 1e-3, 1e7),
                    answer_s=Estimate(cell.answer_s.middle, 1e-7, 1e7),
                )
                for cell in line.cells
            ],
        )
        for line in lines()
    ]
    (axes,) = figures.pareto(noisy, looks.LIGHT).axes
    seconds = [cell.answer_s.middle for line in noisy for cell in line.cells]
    speeds = [cell.tok_s.middle for line in noisy for cell in line.cells]
    assert axes.get_xlim() == pytest.approx((min(seconds) / figures.ROOM, max(seconds) * figures.ROOM))
    assert axes.get_ylim() == pytest.approx((0, max(speeds) * figures.HEADROOM))
    (axes,) = figures.throughput({"": noisy}, looks.LIGHT).axes
    assert axes.get_ylim() == pytest.approx((0, max(speeds) * figures.HEADROOM))
    ratio = Ratios("full / plain", [replace(one, gain=Interval(-9, 0.1, 9)) for one in group().derived.nodes])
    (axes,) = figures.ratio([ratio], lambda _: looks.LIGHT.of("full"), looks.LIGHT).axes
    assert axes.get_ylim() == pytest.approx((math.exp(0.1) / figures.ROOM, math.exp(0.1) * figures.ROOM))


def test_what_is_compared_with_is_not_cut_off():
    faster = [
        replace(line, cells=[replace(cell, tok_s=Estimate(3 * cell.tok_s.middle)) for cell in line.cells])
        for line in lines(before=True)
    ]
    (axes,) = figures.pareto([*faster, *lines()], looks.LIGHT).axes
    assert axes.get_ylim()[1] > max(cell.tok_s.middle for line in faster for cell in line.cells)


def test_levels_that_lie_close_do_not_all_have_a_number():
    found = {replace(key, c=c): at for key, at in FOUND.items() if key.c == 1 for c in range(1, 65)}
    (axes,) = figures.throughput({"": lines(found)}, looks.LIGHT).axes
    ticks = list(axes.get_xticks())
    assert ticks[:3] == [1, 2, 3]
    assert 5 < len(ticks) < 20


@pytest.mark.parametrize("bound", [8, 23])
def test_a_picture_has_the_bounds_of_the_runs_policy(bound):
    policy = {
        "version": 1,
        "tiers": [{"max_batch": bound, "steps": "full"}, {"max_batch": 60, "steps": 1}, {"steps": 0}],
    }
    run = Run(None, made_runs.PLAN, "d1", made({}), FOUND, policy={"policy": policy, "explained": []})
    assert pictures.ratios(run, groups.groups(run)[0]).bounds == [
        (bound, f"policy: full up to {bound}"),
        (60, "policy: reduced1 up to 60"),
    ]


def test_one_repeat_is_drawn_without_bars():
    once = {key: at for key, at in FOUND.items() if key.repeat == 1}
    found = drawn(once)
    assert list(found) == ["throughput", "ratio", "user-speed", "pareto"]
    assert found["throughput"].caption.endswith(pictures.NO_INTERVALS)
    for picture in found.values():
        assert picture.images["light"]


def test_a_single_point_is_drawn():
    key = next(iter(FOUND))
    found = drawn({key: FOUND[key] | {"user_tok_s": None}})
    assert list(found) == ["throughput", "pareto"]
    for picture in found.values():
        assert picture.images["light"]


def test_nothing_is_drawn_of_points_that_do_not_count():
    assert drawn({key: at | {"marked": "late"} for key, at in FOUND.items()}) == {}


def test_arms_are_told_apart_without_colour():
    for theme in looks.THEMES:
        seen = [theme.of(arm) for arm in ("baseline", "full", "reduced3", "reduced2", "reduced1", "plain", "dynamic")]
        assert len({one.marker for one in seen}) == len({one.colour for one in seen}) == 7


def test_more_reduced_arms_than_looks_are_drawn():
    assert looks.LIGHT.of("reduced4") == looks.LIGHT.of("reduced1")
