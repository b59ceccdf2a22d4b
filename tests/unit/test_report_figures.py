"""The figures of a run: which there are, that they are drawn whatever the points are, and what they depend on."""

import io

import made_runs
import pytest
from PIL import Image

from blackwell.bench.fingerprint import made
from blackwell.report import groups, looks, pictures
from blackwell.report.run_files import Run

FOUND = {
    key: at for key, at in made_runs.points().items() if key.arm in ("full", "plain") and key.c in (1, 10, 30, 100)
}
POLICY = {"version": 1, "tiers": [{"max_batch": 23, "steps": "full"}, {"steps": 0}]}


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


def with_(name, value, arm="full"):
    return {key: at | {name: value} if key.arm == arm and key.c == 30 else at for key, at in FOUND.items()}


@pytest.mark.parametrize(
    ("name", "figure"),
    [
        ("tok_s", "throughput"),
        ("tok_s", "ratio"),
        ("running_batch", "ratio"),
        ("user_tok_s", "user-speed"),
        ("answer_s_p50", "pareto"),
    ],
)
def test_a_figure_shows_the_points(name, figure):
    value = 1.2 * next(at[name] for key, at in FOUND.items() if (key.arm, key.c) == ("full", 30))
    assert drawn(with_(name, value))[figure].draw()["light"] != drawn(FOUND)[figure].draw()["light"]


def test_the_ratio_shows_the_bounds_of_the_policy():
    bounds = [
        {
            "settings": "deployed",
            "context": 256,
            "explained": [],
            "policy": POLICY | {"tiers": [{"max_batch": bound, "steps": "full"}, {"steps": 0}]},
        }
        for bound in (8, 23)
    ]
    low, high = (drawn(FOUND, policy)["ratio"].draw()["light"] for policy in bounds)
    assert low != high


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
