"""Measures the points of a plan on servers that run, one after the other."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from server import ServerError
from speed_files import Kept, Points
from speed_plan import PHASES, WARM_UP, Plan, minutes, seconds, stepped, steps_seconds
from speed_servers import PATCHED, change, server_of, without_hysteresis

from blackwell.bench import crossover, load, steps, window
from blackwell.bench.errors import LoadError
from blackwell.bench.points import DYNAMIC, Name, Origin
from blackwell.bench.records import Measurement
from blackwell.bench.workload import Request, Workload

STEPPED = ("base", "full", "plain", DYNAMIC)
WITHOUT_HYSTERESIS = "dynamic_without_hysteresis"
STATE = "speculative_load_state"

BEFORE = 0
"""The repeat whose requests a warm-up sends."""


class Running(Protocol):
    """A server that runs."""

    url: str

    def change(self, **values: object) -> None:
        """Change its live settings."""

    def state(self) -> dict:
        """The scheduler's state."""


class OutOfTimeError(Exception):
    """The next point would end after the budget."""


@dataclass
class Run:
    """``origins``: for the rows, by server. ``until``: when the budget ends, by the monotonic clock."""

    plan: Plan
    kept: Kept
    servers: Mapping[str, Running]
    origins: Mapping[str, Origin]
    say: Callable[[str], None]
    until: float = float("inf")
    lives: dict[tuple[str, int], float] = field(default_factory=dict)
    threshold: int | None = None

    def points(self) -> None:
        """Measure every point that is missing; raises OutOfTimeError before one that does not fit into the budget."""
        if DYNAMIC in self.plan.arms:
            self._calibrate()
            self._find_threshold()
        self._stage(self.plan, self.plan.points(), self.kept.compared)

    def _calibrate(self) -> None:
        plan, kept = self.plan.of_calibration(), self.kept.calibration
        self._stage(plan, plan.calibration(), kept)
        self._stage(plan, plan.in_doubt(kept.rows), kept)

    def _find_threshold(self) -> None:
        self.threshold = crossover.threshold(self.kept.calibration.rows)
        told = {crossover.NEVER: "never", crossover.ALWAYS: "at every level"}.get(self.threshold)
        self.say(f"speculation pays {told or f'up to {self.threshold} requests'}")

    def _stage(self, plan: Plan, names: list[Name], kept: Points) -> None:
        missing = kept.missing(names)
        if missing:
            left = seconds(plan, missing, self._life, self.lives)
            self.say(f"{len(missing)} points in about {minutes(left)}")
        for name in missing:
            # A level's first pass over an arm is slower than the next ones; all arms have it before one counts.
            for arm in dict.fromkeys(other.arm for other in missing if other.c == name.c):
                if (arm, name.c) not in self.lives:
                    self._warm_up(arm, name.c)
            self._point(plan, name, kept)

    def _life(self, arm: str, level: int) -> float:
        return self.lives.get((arm, level)) or self.plan.guess(arm, level)

    def _spend(self, wanted: float) -> None:
        if time.monotonic() + wanted > self.until:
            raise OutOfTimeError

    def _warm_up(self, arm: str, level: int) -> None:
        self._spend(self.plan.warm_up_seconds(self._life(arm, level)))
        found = self._load(self._set(arm), Name(arm, level, BEFORE), WARM_UP)
        self.lives[arm, level] = life = window.life(found.records, self.plan.workload.new_tokens)
        self.say(f"warm-up {arm} at {level}: {life:.2f} s an answer, {window.tokens_per_second(found):.0f} tok/s")

    def _point(self, plan: Plan, name: Name, kept: Points) -> None:
        life = self._life(name.arm, name.c)
        self._spend(plan.point_seconds(life))
        found = self._load(self._set(name.arm), name, plan.window(life))
        self.say(point_line(kept.add(name, found, self.origins[server_of(name.arm)])))

    def _load(self, server: Running, name: Name, length: load.Length) -> Measurement:
        try:
            return load.measure(server.url, name.c, asked(self.plan.workload, name.c, name.repeat), length)
        except LoadError as error:
            raise LoadError(f"{name}: {error}") from error

    def _set(self, arm: str) -> Running:
        server = self.servers[server_of(arm)]
        if server_of(arm) == PATCHED:
            apply(server, change(arm, self.threshold))
        return server

    def step_load(self) -> None:
        """Measure the load that steps, in some of the arms of the plan; raises OutOfTimeError."""
        arms = [arm for arm in STEPPED if arm in self.plan.arms]
        settings = [(arm, change(arm, self.threshold) if server_of(arm) == PATCHED else {}) for arm in arms]
        if DYNAMIC in arms and self.threshold:
            settings.append((WITHOUT_HYSTERESIS, without_hysteresis(self.threshold)))
        most = max(phase.clients for phase in PHASES)
        for arm in arms:
            if (arm, most) not in self.lives:
                self._warm_up(arm, most)
        self._spend(steps_seconds(len(settings)))
        results = {name: self._stepped(name, values, most) for name, values in settings}
        phases = [[phase.clients, phase.seconds] for phase in PHASES]
        self.kept.keep_steps({"threshold": self.threshold, "phases": phases, "results": results})

    def _stepped(self, name: str, values: dict, most: int) -> dict:
        server = self.servers[server_of(name)]
        if values:
            apply(server, values)
        # One answer, so that the change itself is not counted as a switch.
        self._load(server, Name(name, 1, BEFORE), load.Length())
        before = switches(server) if values else 0
        found = steps.measure(server.url, PHASES, asked(stepped(self.plan.workload), most, 1))
        switched = switches(server) - before if values else None
        self.say(f"steps {name}: {found.tok_s:.1f} tok/s, {switched or 'no'} switches")
        rates = [round(rate, 1) for rate in found.phases]
        return {"tok_s": round(found.tok_s, 1), "phases": rates, "switches": switched}


def asked(workload: Workload, level: int, repeat: int) -> Callable[[int], Iterator[Request]]:
    """The requests of each of ``level`` clients, by its number."""
    return lambda client: workload.stream(level, repeat, client)


def apply(server: Running, values: Mapping) -> None:
    """Change the live settings of the patched server, and raise ServerError if they are not in force then."""
    server.change(**values)
    forced = server.state()[STATE]["forced_steps"]
    if forced != values["speculative_force_steps"]:
        raise ServerError(f"{server.url}: {dict(values)} is not in force: forced_steps is {forced}")


def switches(server: Running) -> int:
    """Switches between tiers since the patched server was started."""
    return server.state()[STATE]["switches"]


def point_line(row: Mapping) -> str:
    """A point in one line."""
    accepted = "" if row["acceptance"] is None else f", {row['acceptance']:.2f} tokens a round"
    marked = "" if row["marked"] is None else f" MARKED: {row['marked']}"
    return (
        f"{row['arm']} at {row['c']}, repeat {row['repeat']}: {row['tok_s']:.1f} tok/s in {row['window_s']:.1f} s, "
        f"batch {row['running_batch']:g}{accepted}{marked}"
    )
