"""What one client had of a load: pure functions over the whole answers that came in the window."""

import math
import statistics
from collections.abc import Sequence

from .records import Measurement, Record


def answered(measurement: Measurement) -> list[Record]:
    """The requests that ended in the window and were not aborted, wherever they began."""
    begin, end = measurement.window
    return [record for record in measurement.records if begin <= record.ended <= end and not record.aborted]


def tokens_per_second(measurement: Measurement) -> float | None:
    """Median over the answers of their tokens per second from sending to the last token; None if there is no answer."""
    speeds = [
        record.tokens / (record.ended - record.began) for record in answered(measurement) if record.ended > record.began
    ]
    return statistics.median(speeds) if speeds else None


def answer_seconds(measurement: Measurement, share: float) -> float | None:
    """Within how many seconds this share of the answers had come, by the nearest rank; None if there is no answer.

    ``share``: above 0 and at most 1, 0.95 for the 95th percentile.
    """
    seconds: Sequence[float] = sorted(record.ended - record.began for record in answered(measurement))
    return seconds[math.ceil(share * len(seconds)) - 1] if seconds else None
