"""What a run says, in sentences: how it ended, where speculation stops to pay, the policy, and whether it holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from blackwell import load_policy
from blackwell.bench import crossover
from blackwell.bench.errors import BenchError
from blackwell.sweep.points import DYNAMIC

from . import groups, run_files
from .groups import Group
from .numbers import listed, moment, sentence, share
from .run_files import Run

MARGIN = 0.98
"""Of the better static arm, what a policy has to reach where a plan says nothing else."""


def state(run: Run) -> str:
    """How the run ended, or that it has not."""
    count = len(run.points)
    points = f"{count} point{'' if count == 1 else 's'}"
    if run.exit is None:
        return f"The run is not finished: this is what its first {points} say."
    at, reason = moment(run.exit["at"]), run.exit["reason"]
    ended = {"done": "was done", "failed": "failed", "stopped": "was stopped"}[run.exit["status"]]
    return sentence(f"The run {ended} at {at}, with {points}{f': {reason}' if reason else ''}")


def missing(run: Run) -> list[str]:
    """What the plan has and the points have not, a sentence for arms that lack the same, without a full stop."""
    counts = Counter((key.settings, key.context, key.arm, key.c) for key in run.points)
    arms: dict[tuple[str, str], list[str]] = {}
    for settings in [one["name"] for one in run.plan["settings"]]:
        for context in run.plan["contexts"]:
            for arm in run.plan["arms"]:
                if lacking := _lacking(counts, (settings, context, arm), run.plan):
                    arms.setdefault((_where(run, settings, context), lacking), []).append(arm)
    return [f"{where}{listed(names)}: {lacking}" for (where, lacking), names in arms.items()]


def _lacking(counts: Mapping[tuple, int], at: tuple[str, int, str], plan: Mapping[str, Any]) -> str:
    by_count: dict[int, list[str]] = {}
    for level in plan["levels"]:
        count = counts[(*at, level)]
        if count < plan["repeats"]:
            by_count.setdefault(count, []).append(str(level))
    if by_count.keys() == {0} and len(by_count[0]) == len(plan["levels"]):
        return "not measured yet"
    return "; ".join(
        f"{count or 'none'} of {plan['repeats']} points at {listed(levels)} clients"
        for count, levels in sorted(by_count.items())
    )


def _where(run: Run, settings: str, context: int) -> str:
    parts = []
    if len(run_files.settings(run)) > 1:
        parts.append(f"settings {settings}")
    if len(run.plan["contexts"]) > 1:
        parts.append(f"{context} tokens")
    return f"{', '.join(parts)}: " if parts else ""


def crossing(group: Group) -> str:
    """Where speculation stops to pay by the points of a group, without a full stop."""
    if group.derived:
        return group.explained[0]
    rows = [
        {"arm": cell.arm, "c": cell.c, "tok_s": cell.tok_s.middle, "marked": None} for cell in group.cells if cell.tok_s
    ]
    try:
        largest = crossover.threshold(rows)
    except BenchError:
        return f"where speculation stops to pay is not known: {group.underived}"
    words = {crossover.NEVER: "never pays", crossover.ALWAYS: "pays at every level measured"}
    told = words.get(largest, f"pays up to {largest} clients")
    return f"by the medians alone speculation {told}, which is not certain: {group.underived}"


def policy(run: Run, group: Group) -> str:
    """The policy of a group in words, without a full stop."""
    derived = groups.policies(run).get((group.settings, group.context))
    if derived:
        return f"the policy: {described(derived['policy'], run)}"
    if group.derived:
        return f"the run has no policy yet; its points so far would give {described(group.derived.policy, run)}"
    return "the run has no policy"


def described(found: Mapping[str, Any], run: Run) -> str:
    """A policy in words."""
    tiers = found["tiers"]
    parts = [f"{_steps(tier['steps'])} up to {tier['max_batch']}" for tier in tiers[:-1]]
    if not parts:
        return f"{_steps(tiers[-1]['steps'])} at any load"
    full = load_policy.resolved(found, run.plan.get("steps", 1))
    return (
        f"{', '.join(parts)}, {_steps(tiers[-1]['steps'])} above (margin {full['margin']} requests, "
        f"dwell {full['dwell']} rounds)"
    )


def _steps(steps: int | str) -> str:
    words = {load_policy.FULL: "all draft steps", 0: "no speculation", 1: "1 draft step"}
    return words.get(steps, f"{steps} draft steps")


def unlike(run: Run, group: Group) -> list[str]:
    """That the points give another policy than the run has, a sentence without a full stop; empty if not."""
    derived = groups.policies(run).get((group.settings, group.context))
    if derived is None or group.derived is None or derived["policy"] == group.derived.policy:
        return []
    return [f"the points that are there would give another policy: {described(group.derived.policy, run)}"]


def margin(run: Run) -> float:
    """What of the better static arm the policy has to reach."""
    return run.proof["margin"] if run.proof else run.plan.get("margin", MARGIN)


def proof(run: Run, group: Group) -> str:
    """Whether the policy of a group holds, and where it does not, without a full stop."""
    levels = levels_of(run, group)
    wanted = f"{margin(run):g} of the better static arm"
    if not levels:
        why = "not proven yet" if DYNAMIC in run.plan["arms"] else "not proven: the run has no arm dynamic"
        return f"that the policy reaches {wanted} is {why}"
    held = [level for level in levels if level["ok"]]
    missed = [level for level in levels if level["ok"] is False]
    open_ = [level for level in levels if level["ok"] is None]
    all_ = f"all {len(levels)} levels" if len(levels) > 1 else f"the one level, {levels[0]['c']} clients"
    at = all_ if len(held) == len(levels) else f"{len(held)} of {len(levels)} levels"
    clauses = [f"the policy reaches {wanted} at {at}{_held_doubt(held, margin(run))}"]
    if missed:
        told = listed([f"{level['c']} ({share(level['ratio'])} of {level['best']})" for level in missed])
        clauses.append(f"it does not at {told} clients{_doubt(missed, margin(run))}")
    if open_:
        clauses.append(f"nothing counts at {listed([str(level['c']) for level in open_])} clients")
    return "; ".join(clauses)


def levels_of(run: Run, group: Group) -> list[Mapping[str, Any]]:
    """The levels of the proof that are of a group; those that name no settings are of the first ones."""
    first = run.plan["settings"][0]["name"]
    levels = run.proof["levels"] if run.proof else []
    return [
        level for level in levels if (level.get("settings", first), level["context"]) == (group.settings, group.context)
    ]


def _held_doubt(held: Sequence[Mapping[str, Any]], wanted: float) -> str:
    """That of some levels that hold, not all do so for certain."""
    sure = sum(certain(level, wanted) for level in held)
    if sure == len(held):
        return ""
    return f", which is certain at {sure or 'none'} of them"


def _doubt(missed: Sequence[Mapping[str, Any]], wanted: float) -> str:
    """That of some levels that miss the margin, not all do so for certain."""
    sure = [level for level in missed if certain(level, wanted)]
    if len(sure) == len(missed):
        return ""
    if not sure:
        return f", which is certain at none of them: the intervals reach {wanted:g}"
    return f", which is certain at {listed([str(level['c']) for level in sure])}"


def certain(level: Mapping[str, Any], wanted: float) -> bool:
    """Whether the whole interval of a level's ratio is on the same side of the margin as the ratio."""
    end = level.get("low") if level["ok"] else level.get("high")
    return end is not None and (end >= wanted) == bool(level["ok"])


def lead(run: Run, among: Sequence[Group]) -> dict[str, list[str]]:
    """The answer by group, which has no name if it is the only one: a sentence each."""
    return {
        groups.titled(group, among): [
            sentence(clause) for clause in (crossing(group), policy(run, group), proof(run, group))
        ]
        for group in among
    }
