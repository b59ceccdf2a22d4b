"""What the records of a load say of the server: pure functions."""

import statistics
from collections.abc import Iterable, Sequence

from .records import Measurement, Poll, Record

GAP_SECONDS = 0.05
"""A client whose next request begins so soon after an answer was never idle: both times come from one process, which
has 250 clients and, on two cores with a server beside it, was seen to take 24 ms."""


def tokens_between(records: Iterable[Record], begin: float, end: float) -> float:
    """Tokens that were generated from ``begin`` to ``end``, those of a request spread evenly over its life."""
    return sum(record.tokens * _share(record, begin, end) for record in records)


def _share(record: Record, begin: float, end: float) -> float:
    if record.ended <= record.began:
        return float(begin <= record.ended < end)
    return max(0.0, min(record.ended, end) - max(record.began, begin)) / (record.ended - record.began)


def tokens_per_second(measurement: Measurement) -> float:
    """Output tokens per second in the window."""
    begin, end = measurement.window
    return tokens_between(measurement.records, begin, end) / (end - begin)


def fewest_in_flight(measurement: Measurement) -> int:
    """The smallest number of clients that had a request in flight at one moment of the window."""
    begin, end = measurement.window
    changes = []
    for first, last in _busy(measurement.records):
        if first < end and last > begin:
            changes += [(max(first, begin), 1), (last, -1)] if last < end else [(max(first, begin), 1)]
    # At the same moment, what begins counts before what ends.
    changes.sort(key=lambda change: (change[0], -change[1]))
    flying = sum(change for at, change in changes if at == begin and change > 0)
    fewest = flying
    for at, change in changes:
        if at > begin or change < 0:
            flying += change
            fewest = min(fewest, flying)
    return fewest


def _busy(records: Iterable[Record]) -> list[tuple[float, float]]:
    """Spans of time in which one client always had a request in flight."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for record in sorted(records, key=lambda record: record.began):
        of_client = spans.setdefault(record.client, [])
        if of_client and record.began - of_client[-1][1] < GAP_SECONDS:
            of_client[-1] = (of_client[-1][0], record.ended)
        else:
            of_client.append((record.began, record.ended))
    return [span for of_client in spans.values() for span in of_client]


def acceptance(records: Iterable[Record]) -> float | None:
    """Tokens per verification of a draft, the model's own token included; None if nothing was verified.

    The first token of a request comes from its prompt, not from a verification, and is left out. (SGLang's own
    ``spec_accept_length`` of a request counts it.) Of requests that were decoded plainly in part it says nothing.
    """
    speculative = [record for record in records if record.verified > 0]
    if not speculative:
        return None
    return sum(record.tokens - 1 for record in speculative) / sum(record.verified for record in speculative)


def running_batch(polls: Sequence[Poll]) -> float:
    """Median of the requests that the server decoded at once; 0 if it was never asked."""
    return statistics.median(poll.running for poll in polls) if polls else 0


def held(polls: Sequence[Poll]) -> float:
    """Median of the requests that the server had, decoding or queued; 0 if it was never asked."""
    return statistics.median(poll.running + poll.queued for poll in polls) if polls else 0


def life(records: Sequence[Record], tokens: float) -> float:
    """Seconds that an answer of ``tokens`` tokens takes, by the median time per token; 0 without a whole answer.

    An aborted one has waited for its first token like a whole one, and has few tokens to spread that over.
    """
    whole = [record for record in records if record.tokens and not record.aborted]
    paces = [(record.ended - record.began) / record.tokens for record in whole]
    return statistics.median(paces) * tokens if paces else 0.0


def queued(polls: Sequence[Poll]) -> float:
    """Median of the requests that waited in the server's queue; 0 if it was never asked."""
    return statistics.median(poll.queued for poll in polls) if polls else 0
