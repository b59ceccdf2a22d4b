"""What the clients of a load ask for."""

import itertools
import statistics

from blackwell.bench.workload import Workload

WORKLOAD = Workload(mixed=True)
PINNED = ([8273, 27131, 303, 7881], 60)


def first(count, *key, workload=WORKLOAD):
    return list(itertools.islice(workload.stream(*key), count))


def test_the_same_for_the_same_client_and_another_for_every_other():
    assert first(3, 10, 1, 0) == first(3, 10, 1, 0)
    others = [first(1, *key) for key in [(10, 1, 0), (10, 1, 1), (10, 2, 0), (11, 1, 0)]]
    assert all(one != other for one, other in itertools.combinations(others, 2))


def test_it_stays_the_same_from_one_run_to_the_next():
    (prompt, new), *_ = first(1, 10, 1, 0)
    assert (prompt[:4], new) == PINNED


def test_prompts_and_lengths_are_within_their_bounds():
    asked = first(400, 1, 1, 0)
    assert {len(prompt) for prompt, _ in asked} == {256}
    assert all(10 <= token <= 31000 for prompt, _ in asked for token in prompt)
    lengths = [new for _, new in asked[1:]]
    assert (min(lengths), max(lengths)) == (64, 192)
    assert 120 < statistics.mean(lengths) < 136


def test_the_first_request_is_cut_to_an_even_share():
    cut = [first(1, 250, 1, client)[0][1] for client in range(250)]
    assert min(cut) >= 1
    assert 55 < statistics.mean(cut) < 73
    assert sum(new < 32 for new in cut) > 40


def test_answers_are_equally_long_from_the_first_on():
    asked = first(20, 10, 1, 3, workload=Workload(new_tokens=77))
    assert {new for _, new in asked} == {77}
    assert len({tuple(prompt) for prompt, _ in asked}) == 20


def test_the_smallest_workload():
    smallest = Workload(prompt_tokens=1, new_tokens=1, first_token=5, last_token=5)
    assert first(2, 1, 1, 0, workload=smallest) == [([5], 1), ([5], 1)]
