"""What the tensor-parallel ranks of a server decided, as the probe notes it, and whether all of them decided the same.

A decision is one line of a rank's file, in the order in which the rank took them: a round, with its kind (``round``),
the number of its ``requests``, the draft ``steps`` (None: a prefill that prefills the draft too), a digest ``of`` the
request ids and the sum of their lengths in ``tokens``; or a change of the live state, with the ``forced`` steps and a
digest of the ``policy``.
"""

import json
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

Decision = dict[str, object]

LAG = 1
"""Decisions by which a rank that was read in the middle of a round may be behind another one."""


def read(folder: Path, ranks: int) -> list[list[Decision]]:
    """The decisions of each rank, from rank 0 on, without a last line that is still being written.

    Raises FileNotFoundError if a rank has no file.
    """
    texts = [(folder / f"decisions-{rank}").read_text() for rank in range(ranks)]
    return [[json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")] for text in texts]


def settled(folder: Path, ranks: int, seconds: float = 20) -> list[list[Decision]]:
    """The decisions of each rank of a server without work, once all have taken as many, or after ``seconds``.

    Rank 0 answers its clients, and the others may be a round behind it then. Raises as ``read`` does.
    """
    until = time.monotonic() + seconds
    while True:
        taken = read(folder, ranks)
        if len(set(map(len, taken))) == 1 or time.monotonic() > until:
            return taken
        time.sleep(0.1)


def difference(ranks: Sequence[Sequence[Decision]]) -> dict | None:
    """The first decision that is not the same on all ranks, None if there is none.

    ``number`` counts from 0; ``ranks`` has what each rank decided there, None for one that decided no more. A rank may
    lack the ``LAG`` last decisions of the others.
    """
    shortest, longest = min(map(len, ranks)), max(map(len, ranks))
    for number in range(shortest if longest - shortest <= LAG else longest):
        there = [decisions[number] if number < len(decisions) else None for decisions in ranks]
        if any(decision != there[0] for decision in there):
            return {"number": number, "ranks": there}
    return None


def summary(ranks: Sequence[Sequence[Decision]]) -> dict:
    """Rounds of each rank, what rank 0 decided in numbers, and ``same``: whether all ranks decided the same.

    ``decode_rounds`` are by draft steps, ``tier_changes`` from one decode round to the next, ``live_changes`` those
    of the live state.
    """
    rounds = [[decision for decision in decisions if "round" in decision] for decisions in ranks]
    steps = [decision["steps"] for decision in rounds[0] if decision["round"] == "decode"]
    found = difference(ranks)
    return {
        "rounds": [len(each) for each in rounds],
        "decode_rounds": {str(number): count for number, count in sorted(Counter(steps).items())},
        "tier_changes": sum(one != other for one, other in pairwise(steps)),
        "live_changes": len(ranks[0]) - len(rounds[0]),
        "same": found is None,
        **({} if found is None else {"difference": found}),
    }
