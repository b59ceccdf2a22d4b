"""How arms and pages look: told apart by colour, marker and line, so that grey print and colour-blind eyes do as well.

Colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), lighter on a dark page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from blackwell.bench import arms
from blackwell.bench.arms import FULL, PLAIN
from blackwell.sweep.points import BASELINE, DYNAMIC


@dataclass(frozen=True)
class Look:
    """A colour, and a marker and a line as matplotlib calls them."""

    colour: str
    marker: str
    line: str


@dataclass(frozen=True)
class Theme:
    """The colours of a page: ``paper`` behind, ``ink`` for text, ``faint`` for what only helps to read."""

    name: str
    paper: str
    ink: str
    faint: str
    shade: str
    arms: Mapping[str, Look]
    reduced: tuple[Look, ...] = field(default=())

    def of(self, arm: str) -> Look:
        """The look of an arm; of more reduced arms than there are looks, some have the same."""
        if arms.REDUCED.fullmatch(arm):
            return self.reduced[(int(arm.removeprefix("reduced")) - 1) % len(self.reduced)]
        return self.arms[arm]


def _theme(name: str, page: tuple[str, str, str, str], colours: Mapping[str, str]) -> Theme:
    marks = {BASELINE: ("s", ":"), FULL: ("o", "-"), PLAIN: ("^", "--"), DYNAMIC: ("D", "-.")}
    reduced = zip(colours["reduced"].split(), ("v", "P", "X"), strict=True)
    return Theme(
        name,
        *page,
        {arm: Look(colours[arm], *mark) for arm, mark in marks.items()},
        tuple(Look(colour, marker, (0, (3, 1, 1, 1, 1, 1))) for colour, marker in reduced),
    )


LIGHT = _theme(
    "light",
    ("#ffffff", "#1c1f23", "#c9ced4", "#e69f00"),
    {
        BASELINE: "#4d4d4d",
        FULL: "#0072b2",
        PLAIN: "#d55e00",
        DYNAMIC: "#aa4499",
        "reduced": "#e69f00 #009e73 #56b4e9",
    },
)
DARK = _theme(
    "dark",
    ("#1b1f24", "#e6e8eb", "#454c55", "#e69f00"),
    {
        BASELINE: "#bdbdbd",
        FULL: "#56b4e9",
        PLAIN: "#f0803c",
        DYNAMIC: "#dd8acb",
        "reduced": "#f0e442 #2fc79a #a6cee3",
    },
)
THEMES = (LIGHT, DARK)
