"""What is computed from the records of a load, with answers known beforehand."""

import pytest

from blackwell.bench import window
from blackwell.bench.records import Measurement, Poll, Record


def record(began, ended, tokens=10, client=0, verified=0, *, aborted=False):
    return Record(client, began, ended, tokens, verified, aborted)


def measured(*records, begin=1.0, end=3.0):
    return Measurement((begin, end), [], records)


@pytest.mark.parametrize(
    ("began", "ended", "tokens"),
    [
        (1.0, 3.0, 10),  # all of it
        (1.5, 2.0, 10),
        (0.0, 2.0, 5),  # its second half
        (2.0, 4.0, 5),  # its first half
        (0.0, 4.0, 5),  # the middle
        (0.0, 1.0, 0),  # before
        (3.0, 4.0, 0),  # after
        (2.0, 2.0, 10),  # no time at all
        (0.5, 0.5, 0),
    ],
)
def test_tokens_count_by_the_part_of_a_life_that_lies_in_the_window(began, ended, tokens):
    found = measured(record(began, ended))
    assert window.tokens_per_second(found) == pytest.approx(tokens / 2)


def test_aborted_requests_count():
    assert window.tokens_per_second(measured(record(1.0, 3.0, 6, aborted=True))) == 3


@pytest.mark.parametrize(
    ("records", "fewest"),
    [
        ([], 0),
        ([record(0, 4)], 1),
        ([record(0, 4), record(0, 4, client=1)], 2),
        ([record(0, 2), record(2, 4)], 1),  # the next one at once
        ([record(0, 2), record(2.04, 4)], 1),
        ([record(0, 2), record(2.06, 4)], 0),  # 60 ms without one
        ([record(0, 4), record(0, 2, client=1), record(2.5, 4, client=1)], 1),
        ([record(0, 4), record(0, 2, client=1), record(2, 4, client=2)], 2),
        ([record(0, 4), record(0, 2, client=1)], 1),
        ([record(0, 4), record(2, 4, client=1)], 1),
        ([record(0, 4), record(0, 0.5, client=1), record(3.5, 4, client=1)], 1),  # gone outside of the window
        ([record(0, 3), record(1, 4, client=1)], 2),  # until and from the very ends of the window
    ],
)
def test_fewest_in_flight(records, fewest):
    assert window.fewest_in_flight(measured(*records)) == fewest


def test_acceptance_leaves_out_the_token_of_the_prompt_and_requests_that_were_not_verified():
    # 1 + 3 * 4 tokens in 4 rounds, 1 + 6 in 3, and one decoded plainly.
    records = [record(0, 1, 13, verified=4), record(0, 1, 7, verified=3), record(0, 1, 100)]
    assert window.acceptance(records) == pytest.approx((12 + 6) / 7)
    assert window.acceptance(records[2:]) is None


def test_the_batch_is_the_median_of_what_the_server_counted():
    polls = [Poll(0.1, 7, 3), Poll(0.2, 1, 9), Poll(0.3, 8, 0)]
    assert (window.running_batch(polls), window.held(polls)) == (7, 10)
    assert (window.running_batch([]), window.held([])) == (0, 0)


def test_the_life_of_an_answer():
    assert window.life([record(0, 1, 10), record(0, 4, 20), record(0, 9, 30), record(0, 9, 0)], 100) == 20
    aborted = Record(0, 0.0, 9.0, 1, 0, aborted=True)
    assert window.life([record(0, 1, 10), aborted, aborted], 100) == 10
    assert window.life([aborted], 100) == 0
    assert window.life([], 100) == 0
