"""The same load from the generator that people know, for one level of each server: do the two agree?"""

import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blackwell.bench import durable, known_generator
from blackwell.bench.errors import BenchError

from .plan import FULL, Plan
from .points import BASELINE, Key
from .prompts import Asked

FILE = "check.json"


def keys(plan: Plan, settings: str, arm: str) -> list[Key]:
    """What is checked of a server: its arm at the middle level and the first context; nothing if that is not wanted."""
    if not plan.cross_check or arm not in plan.arms:
        return []
    return [Key(settings, plan.contexts[0], arm, sorted(plan.levels)[len(plan.levels) // 2], 1)]


def arm_of(*, speculates: bool) -> str:
    """The arm that a server is checked with."""
    return FULL if speculates else BASELINE


@dataclass
class Checks:
    """The checks of a run, in its directory; ``measure`` asks the known generator, by default with this interpreter."""

    directory: Path
    asked: Asked
    measure: Callable[..., known_generator.Found] = known_generator.measure

    def read(self) -> list[dict]:
        """The checks that there are; a file that is broken has none."""
        try:
            found = json.loads((self.directory / FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return found if isinstance(found, list) else []

    def is_there(self, key: Key) -> bool:
        """Whether a check was made."""
        wanted = (key.settings, key.context, key.arm, key.c)
        return any(
            tuple(one.get(name) for name in ("settings", "context", "arm", "c")) == wanted for one in self.read()
        )

    def add(self, key: Key, url: str, points: Mapping[Key, Mapping]) -> dict:
        """Make a check of a server that is held at an arm, and keep it.

        ``problem`` says why there is none: a sweep is not worth less for it.
        """
        told: dict = {"settings": key.settings, "context": key.context, "arm": key.arm, "c": key.c}
        told["tok_s"] = _median(key, points)
        try:
            found = self.measure(
                url,
                key.c,
                lambda client: self.asked(key.context, key.c, key.repeat, client),
                python=sys.executable,
            )
        except BenchError as error:
            told |= {"bench_serving_tok_s": None, "ratio": None, "problem": str(error)}
        else:
            ratio = told["tok_s"] and round(told["tok_s"] / found.tok_s, 3)
            told |= {"bench_serving_tok_s": round(found.tok_s, 2), "ratio": ratio, "concurrency": found.concurrency}
        durable.replace(self.directory / FILE, f"{json.dumps([*self.read(), told], indent=1)}\n".encode())
        return told


def _median(key: Key, points: Mapping[Key, Mapping]) -> float | None:
    speeds: Sequence[float] = [
        found["tok_s"]
        for at, found in points.items()
        if (at.settings, at.context, at.arm, at.c) == (key.settings, key.context, key.arm, key.c)
        and found["marked"] is None
    ]
    return statistics.median(speeds) if speeds else None
