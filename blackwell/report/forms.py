"""Says what is wrong with the content of a run's file: ``schemas/bench-run.schema.json`` is the form of each."""

import json
import math
from collections.abc import Iterable
from functools import cache

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from blackwell import paths

SCHEMA = paths.ROOT / "schemas" / "bench-run.schema.json"
SHOWN = 80
"""Characters of a wrong value that tell it from a right one."""


def _whole(_: object, value: object) -> bool:
    return type(value) is int


def _finite(_: object, value: object) -> bool:
    # Python reads NaN and Infinity from JSON, and no comparison refuses NaN.
    return type(value) is int or (type(value) is float and math.isfinite(value))


_TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _whole, "number": _finite})
_Validator = extend(Draft202012Validator, type_checker=_TYPES)


@cache
def _validator(form: str) -> Draft202012Validator:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return _Validator({"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": f"#/$defs/{form}"})


def problem(form: str, content: object) -> str | None:
    """The first thing that is wrong with a content, as a clause with a verb and without a full stop; None for nothing.

    ``form``: one of the definitions of the schema.
    """
    errors = sorted(_validator(form).iter_errors(content), key=lambda error: list(map(str, error.absolute_path)))
    return _clause(errors[0]) if errors else None


def _clause(error: ValidationError) -> str:
    at = _place(error.absolute_path)
    if error.validator == "required":
        lacking = ", ".join(key for key in error.validator_value if key not in error.instance)
        return f"lacks {lacking}{f' in {at}' if at else ''}"
    shown = json.dumps(error.instance)
    shown = shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 1]}…"
    return f"has {at + ' ' if at else ''}{shown}, not {error.schema['description']}"


def _place(path: Iterable[object]) -> str:
    words = [f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in path]
    return "".join(words).removeprefix(".")
