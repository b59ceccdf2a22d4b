"""A point of a sweep: what it is told apart by, and what is kept of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blackwell.bench import raw, user_speed, window
from blackwell.bench.points import Name, mark
from blackwell.bench.records import Measurement

DYNAMIC, BASELINE = "dynamic", "baseline"

QUEUED_SHARE = 0.2
"""A server that lets more of its requests wait than that decodes another load than the one that is asked for."""


@dataclass(frozen=True, order=True)
class Key:
    """``settings``: name of the server settings. ``context``: tokens of a prompt. ``c``: clients. Repeats from 1."""

    settings: str
    context: int
    arm: str
    c: int
    repeat: int

    @property
    def name(self) -> Name:
        """The point among those of its settings and context."""
        return Name(self.arm, self.c, self.repeat)

    def __str__(self) -> str:
        """The point in words."""
        return f"{self.name}, {self.context} tokens, settings {self.settings}"


def content(key: Key, measurement: Measurement, machine: Mapping[str, object], began: float) -> dict:
    """What is kept of a point: figures, what ``machine`` says of the server and its cards, and the raw records.

    ``began``: seconds since the epoch.
    """
    begin, end = measurement.window
    # Of a request that was decoded plainly in part, tokens per verification mean nothing.
    accepted = None if key.arm == DYNAMIC else window.acceptance(measurement.records)
    return {
        "tok_s": round(window.tokens_per_second(measurement), 2),
        "user_tok_s": _rounded(user_speed.tokens_per_second(measurement)),
        "answer_s_p50": _rounded(user_speed.answer_seconds(measurement, 0.5)),
        "answer_s_p95": _rounded(user_speed.answer_seconds(measurement, 0.95)),
        "acceptance": None if accepted is None else round(accepted, 3),
        "running_batch": window.running_batch(measurement.polls),
        "queued": window.queued(measurement.polls),
        "in_flight_min": window.fewest_in_flight(measurement),
        "window_s": round(end - begin, 3),
        "requests": sum(record.ended > begin and record.began < end for record in measurement.records),
        "retracted": sum(record.retracted for record in measurement.records),
        **machine,
        "marked": mark(key.c, measurement) or saturated(key.c, measurement),
        "began": round(began, 1),
        **raw.content(measurement),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def saturated(clients: int, measurement: Measurement) -> str | None:
    """That the server decodes fewer requests than there are clients, because the others wait; None if it does not."""
    waiting = window.queued(measurement.polls)
    if waiting <= QUEUED_SHARE * clients:
        return None
    running = window.running_batch(measurement.polls)
    return f"over-saturated: the server decoded {running:g} of {clients} requests, the others waited in its queue"


def rows(points: Mapping[Key, Mapping], settings: str, context: int, arms: Iterable[str] | None = None) -> list[dict]:
    """The points of one server setting and one context as ``blackwell.bench.policy.derive`` takes them."""
    wanted = None if arms is None else set(arms)
    return [
        {**found, "arm": key.arm, "c": key.c, "repeat": key.repeat}
        for key, found in points.items()
        if (key.settings, key.context) == (settings, context) and (wanted is None or key.arm in wanted)
    ]


def contexts(points: Iterable[Key]) -> Sequence[tuple[str, int]]:
    """The settings and contexts of some points, in their order."""
    return list(dict.fromkeys((key.settings, key.context) for key in points))
