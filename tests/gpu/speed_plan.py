"""What the comparison of speeds measures, in which order, and how long that takes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from blackwell.bench import pairs
from blackwell.bench.length import Length, whole_answers
from blackwell.bench.order import interleaved
from blackwell.bench.points import ARMS, DYNAMIC, Name
from blackwell.bench.steps import Phase
from blackwell.bench.workload import Workload

MOST_REQUESTS = 256
"""Requests that each server decodes at once. Speculation sets it to 48 where it is not given."""

KV_TOKENS = 131072
"""Tokens in the KV cache of each server: the same for all, whatever else of a card's memory the draft takes."""

CALIBRATING = ("full", "plain")
"""Arms by which the threshold is found."""

CALIBRATING_WINDOW_S, CALIBRATING_LIVES = 2.0, 1.0
"""The longest of the shortest windows of the calibration: it only has to tell between which levels the arms cross."""

MORE_REPEATS = 4
"""Further repeats of a level that the first ones leave in doubt. One window of 2 s at 70 clients was seen to give 7700
tokens/s and the next 9900, for the same arm: of three repeats two may be such."""

DOUBTED = 2
"""A guess: levels in doubt, before anything was measured."""

LEVELS = (1, 2, 5, 10, 30, 70, 100, 250)
PHASES = tuple(Phase(clients, 4.0) for clients in (1, 120) * 3)

START_SECONDS = 150
"""A guess: three servers that start at once, with their CUDA graphs."""

RAMP_LIVES = {False: 1.0, True: 1.5}
"""Lives of an average answer until every client has had one, the longest answer: of equal and of mixed answers."""

POINT_SECONDS = 0.5
"""Of a point, what is neither ramp nor window: changing the setting, aborting, writing."""

WARM_UP = Length(seconds=0.5)

Life = Callable[[str, int], float]
"""Seconds that an average answer takes, by arm and level."""


@dataclass(frozen=True)
class Plan:
    """``window_s`` seconds are the shortest window; one of ``window_lives`` lives of an answer may be longer.

    Where all answers are equally long, the window is one of whole answers that last at least so long.
    """

    arms: Sequence[str] = ARMS
    levels: Sequence[int] = LEVELS
    repeats: int = 3
    window_s: float = 2.5
    window_lives: float = 1.5
    workload: Workload = field(default_factory=Workload)

    def calibration(self) -> list[Name]:
        """The points that give the threshold of the dynamic arm, in order; they are not among `points`."""
        return list(interleaved(CALIBRATING, self.levels, self._repeats)) if DYNAMIC in self.arms else []

    def in_doubt(self, rows: Iterable[Mapping]) -> list[Name]:
        """Further points of the calibration, in order, by the rows of its first ones."""
        return self.more(doubted([row for row in rows if row["repeat"] <= self.repeats]))

    def more(self, levels: Sequence[int]) -> list[Name]:
        """Further repeats of the calibration at these levels, in order."""
        return list(interleaved(CALIBRATING, levels, range(self.repeats + 1, self.repeats + MORE_REPEATS + 1)))

    def points(self) -> list[Name]:
        """All points that are compared, in order."""
        return list(interleaved(self.arms, self.levels, self._repeats))

    def of_calibration(self) -> "Plan":
        """This plan with the windows of the calibration."""
        return replace(
            self,
            window_s=min(CALIBRATING_WINDOW_S, self.window_s),
            window_lives=min(CALIBRATING_LIVES, self.window_lives),
        )

    @property
    def _repeats(self) -> range:
        return range(1, self.repeats + 1)

    def window(self, life: float) -> Length:
        """How long the window is open where an average answer takes ``life`` seconds."""
        wanted = max(self.window_s, self.window_lives * life)
        return Length(wanted) if self.workload.mixed else whole_answers(wanted, life)

    def point_seconds(self, life: float) -> float:
        """Seconds that a point takes with its ramp."""
        window = self.window(life)
        return (self.ramp_lives + window.answers) * life + window.seconds + POINT_SECONDS

    @property
    def ramp_lives(self) -> float:
        """Lives of an average answer until every client has had one."""
        return RAMP_LIVES[self.workload.mixed]

    def warm_up_seconds(self, life: float) -> float:
        """Seconds that the warm-up of an arm at a level takes."""
        return self.ramp_lives * life + WARM_UP.seconds + POINT_SECONDS

    def guess(self, _: str, level: int) -> float:
        """The life of an answer of an 8B model before anything was measured: 6 ms a token, and more with the load."""
        return self.workload.new_tokens * (0.006 + 0.0001 * level)


def doubted(rows: Iterable[Mapping]) -> list[int]:
    """Levels whose repeats do not agree which arm of the calibration is faster, and the two of each crossing.

    Between those two the threshold is drawn as a straight line, so that what each of them is off by moves it.
    """
    gains = pairs.gains(rows, *CALIBRATING)
    wins = {level: {gain > 0 for gain in found} for level, found in gains.items()}
    split = {level for level, won in wins.items() if len(won) > 1}
    crossing = {level for two in pairwise(wins) if len(wins[two[0]] | wins[two[1]]) > 1 for level in two}
    return sorted(split | crossing)


def all_seconds(plan: Plan) -> float:
    """A guess of the seconds that calibration and points take, before anything was measured."""
    calibrating = plan.calibration()
    if calibrating:
        calibrating += plan.more(plan.levels[-DOUBTED:])
    warmed = {(name.arm, name.c): plan.guess(name.arm, name.c) for name in calibrating}
    first = seconds(plan.of_calibration(), calibrating, plan.guess, {})
    return first + seconds(plan, plan.points(), plan.guess, warmed)


def seconds(plan: Plan, names: Iterable[Name], life: Life, warmed: Mapping[tuple[str, int], float]) -> float:
    """Seconds that points take, with the warm-up of those that are not in ``warmed``."""
    names = list(names)
    cold = {(name.arm, name.c) for name in names} - warmed.keys()
    return sum(plan.point_seconds(life(name.arm, name.c)) for name in names) + sum(
        plan.warm_up_seconds(life(arm, level)) for arm, level in cold
    )


def stepped(workload: Workload) -> Workload:
    """What is asked for under the load that steps.

    Answers of one length go in waves, and a phase would hold one wave more or less by chance.
    """
    return replace(workload, mixed=True)


def steps_seconds(settings: int) -> float:
    """Seconds that the load that steps takes, with so many settings."""
    return settings * (sum(phase.seconds for phase in PHASES) + POINT_SECONDS)


def minutes(value: float) -> str:
    """Seconds in words."""
    return f"{value / 60:.1f} minutes"
