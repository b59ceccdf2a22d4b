"""How long a load is looked at."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Length:
    """How long a window stays open: ``seconds``, and until every client has had so many ``answers`` more.

    Clients that go together are seen through whole answers: the beginning of one is not like its end.
    """

    seconds: float = 0.0
    answers: int = 0


def whole_answers(seconds: float, life: float) -> Length:
    """Whole answers that together last about so many seconds; ``life``: seconds of one, 0 if nobody knows."""
    return Length(answers=max(1, round(seconds / life)) if life > 0 else 1)
