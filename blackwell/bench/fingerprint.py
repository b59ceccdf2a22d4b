"""What a measurement is valid for, as a value: named parts, a digest of them, and what differs from another, in words.

Parts are what JSON can hold. A part that could not be read is unknown, with the reason. An unknown part is not what a
known one is; two unknown ones are the same, so that what was begun on a host that hides something can go on there.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import BenchError

NOUNS: Mapping[str, tuple[str, bool]] = {
    "model": ("the model", False),
    "model_files": ("the files of the model", True),
    "draft": ("the draft", False),
    "draft_files": ("the files of the draft", True),
    "gpus": ("the GPUs", True),
    "topology": ("the topology of the GPUs", False),
    "driver": ("the driver", False),
    "cuda": ("the CUDA of the driver", False),
    "cuda_runtime": ("the CUDA runtime", False),
    "nccl": ("NCCL", False),
    "nccl_environment": ("the NCCL_* variables", True),
    "sglang": ("SGLang", False),
    "sglang_environment": ("the SGLANG_* variables", True),
    "patch_tree": ("the patch tree", False),
    "flags": ("the server's flags", True),
    "workload": ("the workload", False),
}
"""A noun for each part, and whether it is plural; a part that is not here is called by its name."""

NOT_RECORDED = "it was not recorded"


@dataclass(frozen=True)
class Unknown:
    """Why a part could not be read: a clause without a full stop."""

    reason: str


@dataclass(frozen=True)
class Fingerprint:
    """``parts``: those that are known, by name. ``unknown``: why each of the others is not."""

    parts: Mapping[str, Any]
    unknown: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """SHA-256 of the parts, as hexadecimal digits; of unknown ones only the name counts."""
        return hashlib.sha256(_canonical({"parts": self.parts, "unknown": sorted(self.unknown)}).encode()).hexdigest()

    @property
    def text(self) -> str:
        """The canonical JSON form, without a line feed."""
        return _canonical({"parts": self.parts, "unknown": self.unknown})


def made(parts: Mapping[str, Any]) -> Fingerprint:
    """The fingerprint of some parts, each of them a value that JSON can hold or Unknown."""
    known = {name: value for name, value in parts.items() if not isinstance(value, Unknown)}
    # Tuples and lists, which JSON does not tell apart, are equal once they have been through it.
    return Fingerprint(
        json.loads(_canonical(known)),
        {name: value.reason for name, value in parts.items() if isinstance(value, Unknown)},
    )


def parsed(text: str) -> Fingerprint:
    """The fingerprint of a JSON form; raises BenchError if it is none."""
    try:
        found = json.loads(text)
        made_of = found["parts"], found["unknown"]
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"this is no fingerprint: {text[:80]!r}") from error
    if not all(isinstance(part, dict) for part in made_of):
        raise BenchError(f"this is no fingerprint: {text[:80]!r}")
    return Fingerprint(*made_of)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def differences(old: Fingerprint, new: Fingerprint) -> list[str]:
    """What changed, a sentence a part without a full stop; empty if the digests are equal, and only then."""
    names = {*old.parts, *old.unknown, *new.parts, *new.unknown}
    order = {name: number for number, name in enumerate(NOUNS)}
    return [
        _sentence(name, old, new)
        for name in sorted(names, key=lambda name: (order.get(name, len(order)), name))
        if not _same(name, old, new)
    ]


def unread(fingerprint: Fingerprint) -> list[str]:
    """What is not known, a sentence a part without a full stop."""
    return [f"{_noun(name)} {_was(name)} unknown: {reason}" for name, reason in sorted(fingerprint.unknown.items())]


def _same(name: str, old: Fingerprint, new: Fingerprint) -> bool:
    if name in old.parts and name in new.parts:
        return _canonical(old.parts[name]) == _canonical(new.parts[name])
    return name in old.unknown and name in new.unknown


def _sentence(name: str, old: Fingerprint, new: Fingerprint) -> str:
    before, after = old.parts.get(name), new.parts.get(name)
    if isinstance(before, dict) and isinstance(after, dict):
        changed = [key for key in sorted({*before, *after}) if _differ(before, after, key)]
        told = "; ".join(f"{key} was {_of(before, key)}, it is {_of(after, key)}" for key in changed)
        return f"{_noun(name)} changed: {told}"
    pronoun, verb = ("they", "are") if _plural(name) else ("it", "is")
    return f"{_noun(name)} {_was(name)} {_told(name, old)}, {pronoun} {verb} {_told(name, new)}"


def _differ(before: Mapping, after: Mapping, key: str) -> bool:
    return (key in before) != (key in after) or _canonical(before.get(key)) != _canonical(after.get(key))


def _of(mapping: Mapping, key: str) -> str:
    return _words(mapping[key]) if key in mapping else "not there"


def _told(name: str, fingerprint: Fingerprint) -> str:
    if name in fingerprint.parts:
        value = fingerprint.parts[name]
        # All of a part that has parts itself would be no sentence.
        return "known" if isinstance(value, dict) and value else _words(value)
    return f"unknown ({fingerprint.unknown.get(name, NOT_RECORDED)})"


def _words(value: object) -> str:
    if value is None or value in ("", {}, []):
        return "none"
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return value if isinstance(value, str) else _canonical(value)


def _noun(name: str) -> str:
    return NOUNS[name][0] if name in NOUNS else name


def _plural(name: str) -> bool:
    return name in NOUNS and NOUNS[name][1]


def _was(name: str) -> str:
    return "were" if _plural(name) else "was"
