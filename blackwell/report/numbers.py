"""Numbers as a reader wants them: with as many digits as say something, and a dash for what is not known."""

import time
from collections.abc import Callable, Sequence

from .layout import Value
from .series import Estimate

NONE = "-"
NOISE = 100
"""An interval whose ends are more times apart says nothing."""


def shown(value: float | None) -> str:
    """A speed, a time or a batch: three digits at least, no decimals from 100 on."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    size = abs(value)
    return f"{value:.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def whole(value: float | None) -> str:
    """A count, with its thousands apart from five digits on."""
    return NONE if value is None else f"{value:,.0f}".replace(",", " " if value >= 10000 else "")


def batch(value: float | None) -> str:
    """Requests, which a median may halve."""
    return NONE if value is None else f"{value:g}"


def share(value: float | None) -> str:
    """A ratio, or tokens per verification."""
    return NONE if value is None else f"{value:.3f}"


def estimate(found: Estimate | None, kind: str = "") -> Value:
    """A median with its interval beside it."""
    if found is None:
        return Value(NONE)
    return Value(shown(found.middle), between(shown, found.low, found.high), kind)


def ratio(found: Estimate | None, kind: str = "") -> Value:
    """A ratio with its interval beside it."""
    if found is None:
        return Value(NONE)
    return Value(share(found.middle), between(share, found.low, found.high), kind)


def between(words: Callable[[float], str], low: float | None, high: float | None) -> str:
    """An interval in words; empty if there is none."""
    if low is None or high is None:
        return ""
    return f"{words(low)} to {words(high)}" if high <= NOISE * low else "too noisy to tell"


def moment(seconds: float) -> str:
    """Seconds since the epoch as a date and time in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def sentence(clause: str) -> str:
    """A clause as a sentence of its own."""
    text = clause.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?', ':')) else '.'}"
