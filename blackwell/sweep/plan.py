"""What a sweep measures, as a value: written down before anything else, so that a sweep that was cut off goes on."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from blackwell.bench import arms as policy_arms
from blackwell.bench import durable, order
from blackwell.bench.errors import BenchError

from .points import BASELINE, DYNAMIC, Key

FORMAT = 1
FILE = "plan.json"
DEPLOYED = "deployed"
"""The settings that the service has."""

FULL, PLAIN = policy_arms.FULL, policy_arms.PLAIN
LEVELS = (1, 2, 5, 10, 30, 70, 100, 250)
CONTEXTS = (1024,)
PROMPTS = ("coding", "agentic", "mixed", "random")
MARGIN = 0.98
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@dataclass(frozen=True)
class Settings:
    """Server settings under a name: ``flags`` (true adds, false removes, text sets a value), ``environment`` (null
    removes)."""

    name: str = DEPLOYED
    flags: Mapping[str, bool | str] = field(default_factory=dict)
    environment: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """``steps``: draft steps of the server. ``window_s``: seconds of a window at least; ``window_lives``: likewise, in
    lives of an average answer. ``margin``: what of the better arm the policy has to reach at every level.

    ``run``: name of the directory. ``note``: what a reader of the numbers has to know, or empty.
    """

    run: str
    host: str
    steps: int
    arms: Sequence[str]
    levels: Sequence[int] = LEVELS
    contexts: Sequence[int] = CONTEXTS
    repeats: int = 3
    window_s: float = 20.0
    window_lives: float = 1.0
    new_tokens: int = 256
    prompts: str = "mixed"
    settings: Sequence[Settings] = (Settings(),)
    margin: float = MARGIN
    cross_check: bool = True
    note: str = ""

    @property
    def speculative(self) -> list[str]:
        """The arms of the server that speculates that are measured before a policy is derived."""
        return [arm for arm in self.arms if arm not in (BASELINE, DYNAMIC)]

    def baseline(self, settings: str) -> list[Key]:
        """The points of the server without speculation, in order."""
        return self._keys(settings, [BASELINE] if BASELINE in self.arms else [], range(1, self.repeats + 1))

    def static(self, settings: str) -> list[Key]:
        """The points from which a policy is derived, in order; arms are interleaved."""
        return self._keys(settings, self.speculative, range(1, self.repeats + 1))

    def proof(self, settings: str, context: int, best: Mapping[int, str], turn: int = 1) -> list[Key]:
        """The points that compare the policy with the better static arm of each level, ``best``, in order.

        Their repeats go on after those of ``static``, and those of each ``turn`` after the one before.
        """
        if DYNAMIC not in self.arms:
            return []
        # The place in the order is that of an arm, whichever it is at a level.
        repeats = range(turn * self.repeats + 1, (turn + 1) * self.repeats + 1)
        names = order.interleaved((DYNAMIC, "best"), self.levels, repeats)
        return [
            Key(settings, context, best[at.c] if at.arm == "best" else DYNAMIC, at.c, at.repeat)
            for at in names
            if at.c in best
        ]

    def _keys(self, settings: str, arms: Sequence[str], repeats: range) -> list[Key]:
        if not arms:
            return []
        return [
            Key(settings, context, at.arm, at.c, at.repeat)
            for context in self.contexts
            for at in order.interleaved(arms, self.levels, repeats)
        ]

    def content(self) -> dict:
        """The plan as JSON has it."""
        return {"format": FORMAT, **asdict(self)}

    def differences(self, other: "Plan") -> list[str]:
        """In what another plan measures something else; the name of the run does not count."""
        mine, theirs = self.content(), other.content()
        return [name for name in mine if name != "run" and _canonical(mine[name]) != _canonical(theirs[name])]


def default_arms(steps: int) -> list[str]:
    """Every arm of a server of so many draft steps."""
    return [BASELINE, FULL, *(f"reduced{held}" for held in range(steps - 1, 0, -1)), PLAIN, DYNAMIC]


def expanded(named: Sequence[str], steps: int) -> list[str]:
    """The arms that are meant: ``reduced`` stands for each number of steps below all of them.

    Raises BenchError, naming it, for an arm that the server cannot have.
    """
    known = default_arms(steps)
    found: list[str] = []
    for name in named:
        meant = [arm for arm in known if arm.startswith("reduced")] if name == "reduced" else [name]
        if name == "reduced" and not meant:
            raise BenchError(f"arm reduced: a server of {steps} draft step has no fewer of them but none")
        if name != "reduced" and name not in known:
            raise BenchError(
                f"{name} is no arm of this server, which drafts {steps} steps: those are {', '.join(known)}"
            )
        found += meant
    if twice := [arm for arm in dict.fromkeys(found) if found.count(arm) > 1]:
        raise BenchError(f"arm {twice[0]} is there twice")
    return [arm for arm in known if arm in found]


def problems(plan: Plan) -> list[str]:
    """What is wrong with a plan, a sentence each without a full stop; empty if nothing is."""
    known = default_arms(plan.steps)
    found = [] if plan.arms else ["there is no arm to measure"]
    found += [f"{arm} is no arm of a server of {plan.steps} draft steps" for arm in plan.arms if arm not in known]
    if DYNAMIC in plan.arms and not {FULL, PLAIN} <= set(plan.arms):
        found.append(f"arm {DYNAMIC} needs {FULL} and {PLAIN}, from which its policy is derived")
    if DYNAMIC in plan.arms and plan.repeats < 2:
        found.append(f"arm {DYNAMIC} needs 2 repeats or more: from one nobody can tell noise from a difference")
    found += _numbers("level", "clients", plan.levels) + _numbers("context", "tokens", plan.contexts)
    for name in ("repeats", "window_s", "window_lives", "new_tokens"):
        value = getattr(plan, name)
        if value < 0 or (value == 0 and name != "window_lives"):
            found.append(f"{name} is {value}, not above 0")
    if not 0 < plan.margin <= 1:
        found.append(f"the margin of the proof is {plan.margin}, not a share above 0 and up to 1")
    if plan.prompts not in PROMPTS:
        found.append(f"prompts {plan.prompts!r} are none of {', '.join(PROMPTS)}")
    return found + _settings(plan.settings)


def _numbers(what: str, unit: str, values: Sequence[int]) -> list[str]:
    found = [] if values else [f"there is no {what} to measure"]
    found += [
        f"{what} {value!r} is no number of {unit} from 1" for value in values if type(value) is not int or value < 1
    ]
    return found + [f"{what} {value} is there twice" for value in dict.fromkeys(values) if values.count(value) > 1]


def _settings(settings: Sequence[Settings]) -> list[str]:
    found = [] if settings else ["there are no server settings to measure"]
    names = [one.name for one in settings]
    found += [f"settings {name!r}: a name has letters, digits, . _ -" for name in names if not NAME.fullmatch(name)]
    found += [f"settings {name} are there twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    for one in settings:
        found += [f"settings {one.name}: {flag!r} is no option" for flag in one.flags if not str(flag).startswith("--")]
        found += [
            f"settings {one.name}: {flag} is {value!r}, neither true, false nor text"
            for flag, value in one.flags.items()
            if not isinstance(value, bool | str)
        ]
        found += [
            f"settings {one.name}: {name} is {value!r}, neither text nor null"
            for name, value in one.environment.items()
            if not isinstance(value, str | None)
        ]
    return found


def parsed(content: object, where: str) -> Plan:
    """The plan of a JSON value; raises BenchError, naming ``where`` it comes from, if it is none."""
    names = [one.name for one in fields(Plan)]
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BenchError(f"{where} is no plan of a sweep in format {FORMAT}")
    if wrong := sorted({*names, "format"} ^ content.keys()):
        raise BenchError(
            f"{where} is no plan of a sweep: {', '.join(wrong)} is {'there' if wrong[0] in content else 'missing'}"
        )
    try:
        settings = tuple(Settings(**one) for one in content["settings"])
        values: dict[str, Any] = {name: _frozen(content[name]) for name in names}
        plan = Plan(**(values | {"settings": settings}))
        found = problems(plan)
    except (TypeError, AttributeError) as error:
        raise BenchError(f"{where} is no plan of a sweep: {error}") from error
    if found:
        raise BenchError(f"{where}: {'; '.join(found)}")
    return plan


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def read(directory: Path) -> Plan:
    """The plan of a run; raises BenchError, naming the file, if there is none."""
    file = directory / FILE
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BenchError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BenchError(f"{file} is not JSON: {error}") from error
    return parsed(content, str(file))


def write(directory: Path, plan: Plan) -> None:
    """Write the plan of a run; raises BenchError if the run has another one."""
    if (directory / FILE).exists():
        if wrong := plan.differences(read(directory)):
            raise BenchError(f"{directory} was begun with another plan: {', '.join(wrong)} differ")
        return
    durable.replace(directory / FILE, (json.dumps(plan.content(), indent=1) + "\n").encode())


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)
