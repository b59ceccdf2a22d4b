"""A load policy: how many draft steps a server takes at which number of requests. Says what is wrong with one.

``schemas/speculation-policy.schema.json`` is the form of a policy; what its numbers must be to each other is here.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import pairwise

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from blackwell import paths

SCHEMA = paths.ROOT / "schemas" / "speculation-policy.schema.json"
FULL = "full"
MARGIN = 2
DWELL = 16


def _whole(_: object, value: object) -> bool:
    # JSON Schema takes 8.0 and true for whole numbers or leaves it open; a server counts with 8.
    return type(value) is int


_Validator = extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _whole))


def of_threshold(threshold: int) -> dict:
    """The policy that a threshold is short for: all steps up to so many requests, none above."""
    return {"version": 1, "tiers": [{"max_batch": threshold, "steps": FULL}, {"steps": 0}]}


def problems(policy: object, num_steps: int, most_requests: int | None = None) -> list[str]:
    """What is wrong with a policy, a sentence each without a full stop; empty if nothing is.

    ``num_steps``: draft steps of the server; ``most_requests``: requests that it decodes at once, None if unknown.
    """
    return malformed(policy) or contradictions(policy, num_steps, most_requests)


def malformed(policy: object) -> list[str]:
    """Where the form of a policy is not that of the schema."""
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    errors = sorted(_Validator(schema).iter_errors(policy), key=lambda error: list(map(str, error.absolute_path)))
    # Which tier is the last cannot be told where one is no tier.
    broken = any(len(error.absolute_path) == 2 for error in errors)
    told = [error for error in errors if not (broken and error.validator in {"contains", "maxContains"})]
    return list(dict.fromkeys(_sentence(error) for error in told))


def _sentence(error: ValidationError) -> str:
    name = _name(list(error.absolute_path))
    if error.validator == "required":
        return f"{name} lacks {_words(key for key in error.validator_value if key not in error.instance)}"
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        return f"{name} has {_words(key for key in error.instance if key not in known)}, but may have {_words(known)}"
    return f"{name} is {json.dumps(error.instance)}, not {error.schema['description']}"


def _name(path: list) -> str:
    tier = f"tier {path[1] + 1}" if len(path) > 1 else ""
    key = path[-1] if path and isinstance(path[-1], str) else ""
    return " of ".join(filter(None, (key, tier))) or "the policy"


def _words(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))


def contradictions(policy: Mapping, num_steps: int, most_requests: int | None = None) -> list[str]:
    """What of a well-formed policy cannot be, or would never be used; arguments are those of ``problems``."""
    tiers = policy["tiers"]
    unbounded = [number for number, tier in enumerate(tiers[:-1], start=1) if "max_batch" not in tier]
    if unbounded:
        return [f"tier {unbounded[0]} has no max_batch, which is for the last tier"]
    bounds = [tier["max_batch"] for tier in tiers[:-1]]
    steps = _steps(policy, num_steps)
    found = [
        f"max_batch of tier {number} is {higher}, not above that of tier {number - 1} ({lower})"
        for number, (lower, higher) in enumerate(pairwise(bounds), start=2)
        if higher <= lower
    ]
    # The widths of tiers that do not ascend mean nothing.
    found += [] if found else _swallowed(policy, bounds)
    found += [
        f"steps of tier {number} is {count}, more than speculative_num_steps of the server ({num_steps})"
        for number, count in enumerate(steps, start=1)
        if count > num_steps
    ]
    found += [
        f"steps of tier {number} is {lower}, not below that of tier {number - 1} ({higher})"
        for number, (higher, lower) in enumerate(pairwise(steps), start=2)
        if lower >= higher
    ]
    if bounds and most_requests is not None and bounds[-1] >= most_requests:
        found.append(
            f"max_batch of tier {len(bounds)} is {bounds[-1]}, not below max_running_requests of the server "
            f"({most_requests}), so the last tier would never be used"
        )
    return found


def _swallowed(policy: Mapping, bounds: list[int]) -> list[str]:
    margin = policy.get("margin", 0)
    return [
        f"margin is {margin}, which swallows tier {number}: it must be below the {width} requests of that tier"
        for number, width in enumerate(_widths(bounds), start=1)
        if margin >= width
    ]


def _widths(bounds: list[int]) -> list[int]:
    return [higher - lower for lower, higher in pairwise([0, *bounds])]


def _steps(policy: Mapping, num_steps: int) -> list[int]:
    return [num_steps if tier["steps"] == FULL else tier["steps"] for tier in policy["tiers"]]


def resolved(policy: Mapping, num_steps: int) -> dict:
    """Tiers with their draft steps as numbers, margin and dwell, as the server reports them; the policy is right."""
    bounds = [tier["max_batch"] for tier in policy["tiers"][:-1]]
    steps = _steps(policy, num_steps)
    return {
        "tiers": [{**tier, "steps": count} for tier, count in zip(policy["tiers"], steps, strict=True)],
        "margin": policy.get("margin", min([MARGIN, *(width - 1 for width in _widths(bounds))])),
        "dwell": policy.get("dwell", DWELL),
    }


def described(policy: Mapping) -> str:
    """A resolved policy in words."""
    *bounded, last = policy["tiers"]
    parts = [
        f"{counted(tier['steps'])} up to {tier['max_batch']}{' requests' if number == 0 else ''}"
        for number, tier in enumerate(bounded)
    ]
    parts.append(f"{counted(last['steps'])} {'above' if bounded else 'at any load'}")
    return f"{', '.join(parts)} (margin {policy['margin']}, dwell {policy['dwell']})"


def counted(steps: int) -> str:
    """A number of draft steps in words."""
    return {0: "plain", 1: "1 step"}.get(steps, f"{steps} steps")
