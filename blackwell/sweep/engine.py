"""Measures the points of a plan that are missing, one server after the other."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blackwell.bench import arms, load, policy, telemetry, window, words
from blackwell.bench.errors import BenchError, LoadError
from blackwell.bench.records import Measurement
from blackwell.bench.store import Store

from . import cross_check, estimate, points, proof, server_api
from .cross_check import Checks
from .estimate import Guess, place
from .events import Events
from .plan import Plan, Settings
from .points import BASELINE, DYNAMIC, Key
from .prompts import Asked
from .proof import Level
from .servers import Server, Servers

AGREE = 0.05
"""Two passes of a warm-up whose output differs by no more than that repeat each other."""

MOST_PASSES = 6
MOST_DEATHS = 3
"""Servers that may end by themselves in one sweep before it gives up."""

WARM_UP_REPEAT = 0


@dataclass
class Sweep:
    """``store``: the points. ``policies``: what was derived, by settings and context. ``guess``: for estimates.

    ``checks``: of the load by another generator, None for none. ``lives``: seconds of an answer, by place. ``warmed``:
    the places at which the server that runs has repeated itself.
    """

    plan: Plan
    store: Store[Key]
    servers: Servers
    asked: Asked
    events: Events
    guess: Guess
    checks: Checks | None = None
    policies: dict[tuple[str, int], policy.Derived] = field(default_factory=dict)
    lives: dict[tuple, float] = field(default_factory=dict)
    warmed: set[tuple] = field(default_factory=set)
    deaths: int = 0
    server: Server | None = None

    def run(self) -> None:
        """Measure what is missing; raises BenchError if that cannot be done."""
        for settings in self.plan.settings:
            self._load(settings, self.plan.baseline(settings.name), speculates=False)
            self._load(settings, self.plan.static(settings.name), speculates=True, then=self._prove)
        self._say_progress("measured")

    def _load(
        self,
        settings: Settings,
        keys: Sequence[Key],
        *,
        speculates: bool,
        then: Callable[[Settings], None] | None = None,
    ) -> None:
        try:
            self._measure(settings, self.store.missing(keys), speculates=speculates)
            if then:
                then(settings)
            self._check(settings, speculates=speculates)
        finally:
            if self.server:
                self._stop()

    def _stop(self) -> None:
        self.server = None
        # The next one has compiled nothing yet, and its cache is empty.
        self.warmed.clear()
        self.servers.stop()

    def _check(self, settings: Settings, *, speculates: bool) -> None:
        """Have one level of the server loaded by another generator too, if that was not done before."""
        for key in cross_check.keys(self.plan, settings.name, cross_check.arm_of(speculates=speculates)):
            if self.checks and not self.checks.is_there(key):
                self._ready(settings, speculates=speculates)
                self._hold(key)
                told = self.checks.add(key, self.server.url, self.store.points)
                self.events.add("check", **told)

    def _prove(self, settings: Settings) -> None:
        if DYNAMIC not in self.plan.arms:
            return
        for context in self.plan.contexts:
            try:
                derived = policy.derive(proof.derived_from(self.plan, self.store.points, settings.name, context))
            except BenchError as error:
                # Points that do not count are no reason to have the others measured again.
                self.events.add("no policy", settings=settings.name, context=context, reason=str(error))
                continue
            self.policies[settings.name, context] = derived
            self.events.add(
                "policy",
                settings=settings.name,
                context=context,
                policy=derived.policy,
                explained=words.explained(derived),
            )
            best = proof.best(self.plan, self.store.points, settings.name, context)
            for turn in range(1, proof.MOST_ROUNDS + 1):
                keys = self.plan.proof(settings.name, context, best, turn)
                self._measure(settings, self.store.missing(keys), speculates=True)
                found = self.levels(settings.name, context)
                undecided = proof.open_levels(self.plan, found)
                best = {level: arm for level, arm in best.items() if level in undecided}
                if not best:
                    break
            self.events.add(
                "proof", settings=settings.name, context=context, verdict=proof.verdict(self.plan, found) or "it holds"
            )

    def levels(self, settings: str, context: int) -> list[Level]:
        """The proof of the policy of one server setting and context, as far as it is measured."""
        return proof.levels(self.plan, self.store.points, settings, context)

    def _measure(self, settings: Settings, keys: Sequence[Key], *, speculates: bool) -> None:
        for number, key in enumerate(keys):
            self._ready(settings, speculates=speculates)
            try:
                self._warm(key, keys[number:])
                self._point(key)
            except LoadError as error:
                self._died(key, error)

    def _ready(self, settings: Settings, *, speculates: bool) -> None:
        if self.server:
            return
        self._say_progress("starting", settings=settings.name, speculates=speculates)
        self.server = self.servers.start(settings, speculates=speculates)
        self.events.add("started", settings=settings.name, speculates=speculates, start_s=round(self.server.start_s, 1))

    def _died(self, key: Key, error: LoadError) -> None:
        """Go on without a point that the server did not survive; raises BenchError if it is not the server's fault."""
        why = self.servers.ended()
        if why is None:
            raise error
        self.deaths += 1
        self.events.add("died", point=str(key), reason=why)
        if self.deaths > MOST_DEATHS:
            raise BenchError(
                f"{key}: {why}; servers ended {self.deaths} times in this sweep, which is enough"
            ) from error
        self._stop()
        self.store.add(
            key, {"tok_s": 0.0, "running_batch": 0.0, "marked": f"the server ended: {why}", "began": time.time()}
        )

    def _warm(self, key: Key, left: Sequence[Key]) -> None:
        """Have every arm that is still to be measured at this level repeat itself, before one of them counts."""
        level = [at for at in left if (at.context, at.c) == (key.context, key.c)]
        for at in dict.fromkeys(Key(at.settings, at.context, at.arm, at.c, WARM_UP_REPEAT) for at in level):
            if place(at) not in self.warmed:
                self._warm_up(at)

    def _warm_up(self, key: Key) -> None:
        speeds: list[float] = []
        for _ in range(MOST_PASSES):
            found = self._under_load(key, load.Length(answers=1))
            speeds.append(window.tokens_per_second(found))
            self.lives[place(key)] = window.life(found.records, self.plan.new_tokens)
            agree = len(speeds) > 1 and abs(speeds[-1] - speeds[-2]) <= AGREE * speeds[-2]
            # What does not count need not repeat itself: such a load takes longest.
            if agree or points.saturated(key.c, found):
                break
        self.warmed.add(place(key))
        self.events.add("warm", point=str(key), arm=key.arm, c=key.c, passes=len(speeds), tok_s=round(speeds[-1], 1))

    def _point(self, key: Key) -> None:
        began = time.time()
        with telemetry.sampled() as samples:
            found = self._under_load(key, estimate.window(self.plan, self._life(key)))
        machine = telemetry.summary(samples, *(found.origin + at for at in found.window))
        told = {
            "kv_tokens": server_api.information(self.server.url).get("max_total_num_tokens"),
            "power_w": machine.power_w,
            "sm_mhz": machine.sm_mhz,
            "temperature_c": machine.temperature_c,
            "note": machine.note,
        }
        content = points.content(key, found, told, began)
        self.store.add(key, content)
        self._say_progress(
            "point",
            **{name: getattr(key, name) for name in ("settings", "context", "arm", "c", "repeat")},
            **{name: content[name] for name in ("tok_s", "acceptance", "running_batch", "marked")},
        )

    def _under_load(self, key: Key, length: load.Length) -> Measurement:
        url = self._hold(key)
        try:
            return load.measure(url, key.c, lambda client: self.asked(key.context, key.c, key.repeat, client), length)
        except LoadError as error:
            raise LoadError(f"{key}: {error}") from error

    def _hold(self, key: Key) -> str:
        """Have the server draft as an arm does, with an empty cache; returns its URL."""
        url = self.server.url
        if key.arm != BASELINE:
            server_api.change(url, self._held(key))
        server_api.flush(url)
        return url

    def _held(self, key: Key) -> dict:
        if key.arm != DYNAMIC:
            return {"speculative_force_steps": arms.steps(key.arm)}
        derived = self.policies[key.settings, key.context]
        return {"speculative_force_steps": None, "speculative_load_policy": derived.policy}

    def _life(self, key: Key) -> float:
        return self.lives.get(place(key)) or self.guess.life(self.plan, key)

    def _say_progress(self, event: str, **content: object) -> None:
        """An event with how much is done, how much there is, and the seconds that the rest may take."""
        plan, known = self.plan, self.store.points
        missing = estimate.missing(plan, known)
        starts = len(estimate.servers(plan, missing)) - (1 if self.server and missing else 0)
        left = max(0, starts) * self.guess.start_s + estimate.points_seconds(
            plan, missing, self._life, frozenset(self.warmed)
        )
        self.events.add(event, **content, done=len(known), all=len(known) + len(missing), left_s=round(left))
