"""What was typed for a sweep, as the values of a plan."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from blackwell.host_errors import HostError
from blackwell.sweep.plan import PROMPTS

SETTINGS_KEYS = ("name", "flags", "environment")


def wanted(typed: Mapping[str, str]) -> dict:
    """The values of a plan, by the names of the options; an empty text leaves the default of the plan.

    Raises HostError, naming the option, for a value that cannot be.
    """
    found: dict = {}
    for name in ("levels", "contexts"):
        if typed[name]:
            found[name] = [_whole(f"--{name}", part) for part in _parts(typed[name])]
    for name in ("repeats", "new-tokens"):
        if typed[name]:
            found[name.replace("-", "_")] = _whole(f"--{name}", typed[name])
    for name, key in (("window", "window_s"), ("margin", "margin")):
        if typed[name]:
            found[key] = _number(f"--{name}", typed[name])
    if typed["arms"]:
        found["arms"] = _parts(typed["arms"])
    if typed["prompts"]:
        if typed["prompts"] not in PROMPTS:
            raise HostError(f"--prompts is {typed['prompts']!r}, none of {', '.join(PROMPTS)}")
        found["prompts"] = typed["prompts"]
    if typed["settings"]:
        found["settings"] = settings(Path(typed["settings"]))
    return found


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _whole(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise HostError(f"{option}: {text!r} is no whole number from 1")
    return int(text)


def _number(option: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # nan is above nothing
    if not 0 < value < float("inf"):
        raise HostError(f"{option}: {text!r} is no number above 0")
    return value


def settings(file: Path) -> list[dict]:
    """The server settings of a YAML file: a list of ``name``, ``flags`` and ``environment``.

    Raises HostError, naming the file, if it is none of that.
    """
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise HostError(f"--settings: {file} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise HostError(f"--settings: {file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, list) or not content:
        raise HostError(f"--settings: {file} holds no list of settings")
    return [_one(file, number, found) for number, found in enumerate(content, start=1)]


def _one(file: Path, number: int, found: object) -> dict:
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        raise HostError(f"--settings: {file}: entry {number} has no name")
    if unknown := sorted(map(str, set(found) - set(SETTINGS_KEYS))):
        raise HostError(
            f"--settings: {file}: {found['name']} has {', '.join(unknown)}, but may have flags, environment"
        )
    for key in SETTINGS_KEYS[1:]:
        if not isinstance(found.get(key, {}), dict):
            raise HostError(f"--settings: {file}: {key} of {found['name']} is no mapping")
    flags = {
        str(flag): value if isinstance(value, bool) else str(value) for flag, value in found.get("flags", {}).items()
    }
    environment = {
        str(name): None if value is None else str(value) for name, value in found.get("environment", {}).items()
    }
    return {"name": found["name"], "flags": flags, "environment": environment}
