"""What one client had of a load."""

import pytest

from blackwell.bench import user_speed
from blackwell.bench.records import Measurement, Record


def measured(*records, window=(10.0, 20.0)):
    return Measurement(
        window, [], [Record(0, began, ended, tokens, 0, aborted) for began, ended, tokens, aborted in records]
    )


def test_whole_answers_that_came_in_the_window_count():
    found = measured(
        (0, 9.9, 1, False),  # before
        (5, 10, 10, False),  # at its beginning
        (9, 19, 100, False),
        (19, 20, 3, False),  # at its end
        (12, 18, 600, True),  # aborted
        (15, 20.1, 1, False),  # after
    )
    assert [record.tokens for record in user_speed.answered(found)] == [10, 100, 3]
    assert user_speed.tokens_per_second(found) == 3
    assert user_speed.answer_seconds(found, 0.5) == 5


def test_the_median_is_of_the_speeds_not_of_their_parts():
    found = measured((10, 12, 200, False), (10, 20, 100, False), (10, 11, 50, False))
    assert user_speed.tokens_per_second(found) == 50


@pytest.mark.parametrize(("share", "seconds"), [(0.05, 1), (0.5, 10), (0.51, 11), (0.95, 19), (0.951, 20), (1.0, 20)])
def test_a_share_of_the_answers_by_the_nearest_rank(share, seconds):
    found = measured(*((0, ended, 1, False) for ended in range(20, 0, -1)), window=(0.0, 30.0))
    assert user_speed.answer_seconds(found, share) == seconds


def test_of_one_answer_every_share_is_that_one():
    found = measured((10, 14, 8, False))
    assert [user_speed.answer_seconds(found, share) for share in (0.01, 0.5, 0.95, 1)] == [4] * 4


def test_without_an_answer_there_is_nothing_to_tell():
    found = measured((10, 14, 8, True), (1, 2, 3, False))
    assert user_speed.tokens_per_second(found) is None
    assert user_speed.answer_seconds(found, 0.5) is None


def test_an_answer_within_one_tick_of_the_clock_has_no_speed():
    assert user_speed.tokens_per_second(measured((12, 12, 5, False))) is None
