"""The arms that a policy chooses from: one patched server, held at a number of draft steps."""

import re
from collections.abc import Iterable, Mapping

from .errors import BenchError

FULL, PLAIN = "full", "plain"
REDUCED = re.compile(r"reduced([1-9][0-9]*)")


def steps(arm: str) -> int | str:
    """The draft steps of an arm, as a policy has them; raises BenchError if it is held at no number of them."""
    if arm in (FULL, PLAIN):
        return FULL if arm == FULL else 0
    held = REDUCED.fullmatch(arm)
    if not held:
        raise BenchError(f"{arm} is no arm that a policy can choose: those are full, plain and reducedN")
    return int(held[1])


def of(rows: Iterable[Mapping]) -> list[str]:
    """The arms of rows that a policy can choose, from the most draft steps to none.

    Raises BenchError, naming it, if full or plain is not there.
    """
    there = {row["arm"] for row in rows}
    for arm in (FULL, PLAIN):
        if arm not in there:
            raise BenchError(f"{arm} was measured at no level: a policy needs full and plain")
    reduced = sorted(filter(REDUCED.fullmatch, there), key=steps, reverse=True)
    return [FULL, *reduced, PLAIN]
