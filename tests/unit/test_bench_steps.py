"""A load that steps, against a server whose pace is known."""

import itertools

import pytest
from bench_fake import serving

from blackwell.bench import steps
from blackwell.bench.errors import LoadError
from blackwell.bench.steps import Phase

PHASES = (Phase(1, 0.5), Phase(20, 0.5), Phase(1, 0.5), Phase(20, 0.5))


def asked(_):
    return itertools.repeat(([1], 10))


def test_the_number_of_clients_changes_at_once_and_all_tokens_are_counted():
    with serving(pace=100) as fake:
        found = steps.measure(fake.url, PHASES, asked)
    assert fake.most == 20
    assert sum(record.tokens for record in found.records) == fake.given
    one, many, again, more = found.phases
    assert 0 < one <= 100
    # It begins with what the twenty had left to be answered.
    assert one < again < many
    assert 500 < many <= 2000
    assert 500 < more <= 2000
    assert found.tok_s == pytest.approx(sum(found.phases) / 4)


def test_clients_that_come_again_go_on_with_their_requests():
    with serving(pace=100) as fake:
        steps.measure(
            fake.url, (Phase(2, 0.3), Phase(1, 0.3), Phase(2, 0.3)), lambda n: (([n], k) for k in range(1, 99))
        )
    news = [body["sampling_params"]["max_new_tokens"] for body in fake.bodies if body["input_ids"] == [1]]
    assert news == list(range(1, len(news) + 1))


def test_a_server_that_fails_ends_the_load():
    with serving(pace=100, fail_from=30) as fake, pytest.raises(LoadError, match="answered 500: out of memory"):
        steps.measure(fake.url, (Phase(20, 60),), asked)
