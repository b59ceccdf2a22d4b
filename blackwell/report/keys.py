"""What points of a run are told apart by."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Key:
    """``settings``: name of the server settings. ``context``: tokens of a prompt. ``c``: clients. Repeats from 1."""

    settings: str
    context: int
    arm: str
    c: int
    repeat: int

    def __str__(self) -> str:
        """The point in words."""
        return f"{self.arm} at {self.c}, repeat {self.repeat}, {self.context} tokens, settings {self.settings}"
