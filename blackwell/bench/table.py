"""The table of a comparison, in Markdown, from its rows.

python3 -m blackwell.bench.table ROWS.json
"""

import argparse
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .errors import BenchError
from .medians import medians, speeds
from .points import ARMS, read

STATIC = ("base", "full_stock", "full")
"""What an operator can have without a policy: the better of them at each load is what a policy has to match."""

Medians = Mapping[str, float]
"""Median output tokens per second at one level, by arm."""


def dynamic(at: Medians) -> float | None:
    """Dynamic over the best static arm; None if one is missing."""
    return _ratio(at, ("dynamic",), STATIC)


def plain(at: Medians) -> float | None:
    """Plain decoding of a server that could speculate, over one that cannot."""
    return _ratio(at, ("plain",), ("base",))


def reduced(at: Medians) -> float | None:
    """The better of fewer draft steps over the best of all and none."""
    return _ratio(at, ("reduced1", "reduced2"), (*STATIC, "plain"))


def _ratio(at: Medians, above: Sequence[str], below: Sequence[str]) -> float | None:
    if not {*above, *below} <= at.keys():
        return None
    return max(at[arm] for arm in above) / max(at[arm] for arm in below)


RATIOS = {
    "dynamic / best static": dynamic,
    "plain / base": plain,
    "best reduced / best other": reduced,
}


def spread(values: Sequence[float]) -> float:
    """Largest less smallest, over the median."""
    return (max(values) - min(values)) / statistics.median(values)


def render(rows: Sequence[Mapping]) -> str:
    """Medians by level and arm in tokens/s, the ratios, the spread of base; marked points are named under it."""
    found, all_speeds = medians(rows), speeds(rows)
    arms = [arm for arm in ARMS if arm in found]
    levels = sorted({row["c"] for row in rows})
    lines = [_cells(["clients", *arms, *RATIOS, "spread of base"]), "|" + "---:|" * (len(arms) + len(RATIOS) + 2)]
    for level in levels:
        at = {arm: found[arm][level] for arm in arms if level in found[arm]}
        values = all_speeds.get("base", {}).get(level)
        lines.append(
            _cells(
                [str(level)]
                + [f"{at[arm]:.0f}" if arm in at else "-" for arm in arms]
                + ["-" if (value := ratio(at)) is None else f"{value:.3f}" for ratio in RATIOS.values()]
                + [f"{100 * spread(values):.1f} %" if values else "-"]
            )
        )
    return "\n".join([*lines, *_marked(rows)]) + "\n"


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _marked(rows: Iterable[Mapping]) -> list[str]:
    told = [
        f"- {row['arm']} at {row['c']}, repeat {row['repeat']}: {row['marked']}"
        for row in rows
        if row["marked"] is not None
    ]
    return ["", "Left out:", "", *told] if told else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: prints the table; exits with 1 and one sentence if there are no rows in the file."""
    parser = argparse.ArgumentParser(
        prog="python3 -m blackwell.bench.table", description="Prints the table of a comparison, in Markdown."
    )
    parser.add_argument("rows", type=Path, help="rows of the comparison, as JSON (rows.json)")
    try:
        sys.stdout.write(render(read(parser.parse_args(arguments).rows)))
    except BenchError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
