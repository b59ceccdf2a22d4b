"""The load against a server whose pace is known."""

import itertools
import time

import pytest
from bench_fake import serving

from blackwell.bench import load, window
from blackwell.bench.errors import LoadError
from blackwell.bench.load import Length


def asked(new):
    return lambda _: itertools.repeat(([1, 2, 3], new))


def test_250_clients_are_250_requests_in_flight():
    with serving(pace=1000, together=250) as fake:
        found = load.measure(fake.url, 250, asked(200), Length(0.5))
    assert fake.most == 250
    assert {record.client for record in found.records} == set(range(250))
    assert window.fewest_in_flight(found) == 250


def test_the_rate_in_the_window_is_the_servers_own():
    with serving(pace=100) as fake:
        found = load.measure(fake.url, 4, asked(30), Length(1.0))
    # A request takes as long as its tokens, and what lies between two requests on top.
    assert 0.7 * 400 < window.tokens_per_second(found) <= 400
    begin, end = found.window
    assert end - begin >= 1.0


def test_the_times_are_those_since_the_load_began():
    with serving(pace=100) as fake:
        before = time.monotonic()
        found = load.measure(fake.url, 1, asked(10), Length(0.2))
        after = time.monotonic()
    assert before <= found.origin < found.origin + found.window[0] < found.origin + found.window[1] <= after


def test_the_window_opens_when_all_have_had_an_answer():
    def longer(client):
        return itertools.repeat(([1], 10 if client else 60))

    with serving(pace=100) as fake:
        found = load.measure(fake.url, 3, longer, Length(0.2))
    first = [min(r.ended for r in found.records if r.client == client) for client in range(3)]
    assert max(first) <= found.window[0]
    assert first[0] > first[1]


def test_a_window_of_answers_closes_when_the_last_client_has_had_them():
    def longer(client):
        return itertools.repeat(([1], 10 if client else 40))

    with serving(pace=100) as fake:
        found = load.measure(fake.url, 3, longer, Length(answers=2))
    begin, end = found.window
    ended = [sorted(r.ended for r in found.records if r.client == client and not r.aborted) for client in range(3)]
    assert ended[0][0] <= begin
    assert ended[0][2] <= end < ended[0][2] + 0.1
    assert len(ended[0]) == 3
    assert all(len(others) > 6 for others in ended[1:])


def test_clients_that_go_together_have_no_gap_between_their_answers():
    with serving(pace=1000, together=100) as fake:
        found = load.measure(fake.url, 100, asked(100), Length(answers=3))
    assert window.fewest_in_flight(found) == 100
    assert 300 <= sum(not record.aborted for record in found.records) - 100 <= 400


def test_what_is_in_flight_at_the_end_is_aborted_and_its_tokens_count():
    with serving(pace=100) as fake:
        found = load.measure(fake.url, 2, lambda _: iter([([1], 5), ([1], 100_000)]), Length(0.5))
    aborted = [record for record in found.records if record.aborted]
    assert fake.aborts >= 1
    assert [record.client for record in sorted(aborted, key=lambda r: r.client)] == [0, 1]
    assert all(record.tokens >= 40 for record in aborted)
    assert sum(record.tokens for record in found.records) == fake.given
    assert window.tokens_per_second(found) > 100


def test_a_request_that_was_on_its_way_when_the_rest_was_aborted_is_aborted_too():
    with serving(pace=100, deaf=2) as fake:
        found = load.measure(fake.url, 1, lambda _: iter([([1], 5), ([1], 100_000)]), Length(0.1))
    assert fake.aborts == 3
    assert [record.aborted for record in found.records] == [False, True]


def test_the_server_is_asked_what_it_counts():
    with serving(pace=100) as fake:
        found = load.measure(fake.url, 5, asked(40), Length(0.6), poll_seconds=0.05)
    assert len(found.polls) >= 3
    assert window.held(found.polls) >= 4
    assert all(found.window[0] <= poll.at <= found.window[1] for poll in found.polls)


def test_a_server_whose_loads_fail_is_asked_as_before():
    with serving(pace=100, loads=False) as fake:
        found = load.measure(fake.url, 5, asked(40), Length(0.6), poll_seconds=0.05)
    assert len(found.polls) >= 3
    assert {poll.queued for poll in found.polls} == {3}
    assert 4 <= window.running_batch(found.polls) <= 5


def test_what_is_sent():
    with serving() as fake:
        load.measure(fake.url, 1, asked(3), Length(0.1))
    assert fake.bodies[0] == {
        "input_ids": [1, 2, 3],
        "sampling_params": {"max_new_tokens": 3, "temperature": 0, "ignore_eos": True},
    }


@pytest.mark.parametrize(
    ("failing", "said"),
    [
        ({"fail_from": 20}, "{url}: /generate answered 500: out of memory"),
        ({"fail_from": 1}, "{url}: /generate answered 500: out of memory"),
        ({"lose_from": 20}, "{url}: /generate was not answered: Server disconnected"),
    ],
)
def test_a_server_that_fails_ends_the_load_with_one_sentence(failing, said):
    with serving(pace=200, **failing) as fake:
        with pytest.raises(LoadError) as caught:
            load.measure(fake.url, 8, asked(10), Length(60))
        assert str(caught.value) == said.format(url=fake.url)


def test_a_server_that_is_not_there():
    with serving() as fake:
        url = fake.url
    with pytest.raises(LoadError, match=f"^{url}: /generate was not answered: Cannot connect to host"):
        load.measure(url, 2, asked(10), Length(1))
