"""Prompts of a given number of tokens."""

import itertools
import json
import tracemalloc

import pytest

from blackwell.bench import contexts
from blackwell.bench.contexts import LEAST_FILLER, Contexts, Conversation, Tokenized
from blackwell.bench.errors import BenchError

FILLER = tuple(range(1000, 2000))
SHORT = Conversation("short", (1, 2, 3), (4, 5))
MIDDLE = Conversation("middle", (11,), tuple(range(20, 60)))
LONG = Conversation("long", tuple(range(100, 300)), (7,))
TOKENIZED = Tokenized((SHORT, MIDDLE, LONG), FILLER, {"prompts": "coding"})
PINNED = [1, 2, 3, 1078]


def first(count, *key, context=100, tokenized=TOKENIZED):
    return list(itertools.islice(Contexts(tokenized, context, 8).stream(*key), count))


def parts(prompt):
    """The conversation of a prompt, and the tokens between its halves."""
    (one,) = (
        one
        for one in TOKENIZED.conversations
        if tuple(prompt[: len(one.prefix)]) == one.prefix and tuple(prompt[-len(one.rest) :]) == one.rest
    )
    return one, prompt[len(one.prefix) : -len(one.rest)]


@pytest.mark.parametrize("context", [SHORT.shortest, 57, 100, 1024, 131_072])
def test_every_prompt_has_exactly_so_many_tokens(context):
    asked = first(20, 250, 3, 249, context=context)
    assert {(len(prompt), new) for prompt, new in asked} == {(context, 8)}


def test_a_prompt_is_a_conversation_with_one_piece_of_the_files_in_it():
    for prompt, _ in first(50, 10, 1, 0, context=1024):
        _, piece = parts(prompt)
        assert all(other == FILLER[(one + 1 - 1000) % 1000] for one, other in itertools.pairwise(piece))


def test_conversations_that_are_too_long_are_not_cut_but_left_out():
    seen = {parts(prompt)[0].id for prompt, _ in first(100, 10, 1, 0, context=100)}
    assert seen == {"short", "middle"}
    assert {parts(prompt)[0].id for prompt, _ in first(100, 10, 1, 0, context=300)} == {"short", "middle", "long"}
    exact = MIDDLE.shortest
    assert {parts(prompt)[0].id for prompt, _ in first(100, 10, 1, 0, context=exact)} == {"short", "middle"}
    assert {parts(prompt)[0].id for prompt, _ in first(100, 10, 1, 0, context=exact - 1)} == {"short"}


def test_the_same_for_the_same_client_and_another_for_every_other():
    assert first(3, 10, 1, 0) == first(3, 10, 1, 0)
    others = [first(1, *key) for key in [(10, 1, 0), (10, 1, 1), (10, 2, 0), (11, 1, 0)]]
    assert all(one != other for one, other in itertools.combinations(others, 2))


def test_no_two_requests_of_a_load_begin_their_piece_alike():
    wide = Tokenized((SHORT,), tuple(range(10, 1_000_010)))
    begun = [prompt[3] for client in range(250) for prompt, _ in first(4, 250, 1, client, context=40, tokenized=wide)]
    # A thousand places out of a million: hardly ever two alike.
    assert len(set(begun)) >= 995


def test_it_stays_the_same_from_one_run_to_the_next():
    (prompt, _), *_ = first(1, 10, 1, 0)
    assert prompt[:4] == PINNED


def test_250_clients_share_the_files():
    wide = Tokenized((SHORT,), tuple(range(1_000_000)))
    tracemalloc.start()
    try:
        streams = [Contexts(wide, 1024, 8).stream(250, 1, client) for client in range(250)]
        assert all(len(next(stream)[0]) == 1024 for stream in streams)
        # A copy for each would be 2 GB.
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_a_context_that_is_too_short_is_refused():
    with pytest.raises(BenchError) as caught:
        Contexts(TOKENIZED, 20)
    assert str(caught.value) == (
        f"contexts: 20 tokens are too few, the shortest prompt of this model, short, takes {5 + LEAST_FILLER}"
    )


def test_what_is_written_is_read_again():
    assert contexts.parsed(contexts.as_json(TOKENIZED), "f") == TOKENIZED


def changed(**parts):
    return json.dumps(json.loads(contexts.as_json(TOKENIZED)) | parts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f holds no tokenized prompts: "),
        ("[]", "f holds no tokenized prompts: "),
        ("{}", "f holds no tokenized prompts: 'conversations'"),
        (changed(filler=[1, "2"]), "f holds no tokenized prompts: a token id is no whole number from 0"),
        (changed(filler=[1, -2]), "f holds no tokenized prompts: a token id is no whole number from 0"),
        (changed(filler=[1, True]), "f holds no tokenized prompts: a token id is no whole number from 0"),
        (changed(conversations=[{"id": "x"}]), "f holds no tokenized prompts: 'prefix'"),
        (changed(format=2), "f holds tokenized prompts of format 2, not 1"),
        (changed(filler=[]), "f holds no conversations, or no source files"),
        (changed(conversations=[]), "f holds no conversations, or no source files"),
    ],
)
def test_another_file_is_refused(text, said):
    with pytest.raises(BenchError) as caught:
        contexts.parsed(text, "f")
    assert str(caught.value).startswith(said)
