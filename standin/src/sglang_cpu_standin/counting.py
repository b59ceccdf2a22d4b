"""The behaviour of the counting models in plain numbers: what the target says after a token, what the draft guesses.

Token t is the word ``n<t>``. The target counts up inside blocks of ``BLOCK`` tokens and jumps ``JUMP`` blocks ahead
after the last token of a block. The draft counts on from the token before the one it continues, so it misses every
jump and the token after it; it also lacks every token t with ``t % 16 == 5``. The attending draft misses no jump and
lacks every token t with ``t % 7 == 5``; it guesses right only where all that it reads in its KV cache leads to the
guess. This module needs no torch: tests on the control machine use it too.
"""

from collections.abc import Callable, Sequence

FIRST = 2
"""The first token that is a word; 0 begins a text and 1 ends it, and neither is ever generated."""

BLOCK = 8
"""Tokens in a block."""

BLOCKS = 128
"""Number of blocks."""

JUMP = 5
"""Blocks from one that is finished to the next one, modulo ``BLOCKS``."""

VOCABULARY = FIRST + BLOCKS * BLOCK
"""Number of tokens."""

DISTANCES = (1, 8, 32, 64, 96, 128)
"""Positions back from its own at which the attending draft reads its KV cache."""

SEEN = (DISTANCES[0] + 1, *(distance + more for distance in DISTANCES[1:] for more in (1, 2)))
"""How many places before its guess the tokens stand that the attending draft reads.

The KV cache holds at each position the token after it and the target's state, which tells the token at it. The nearest
position may have been written by a draft step, which has no state of the target: there only the token is read.
"""


def word(token: int) -> str:
    """Return the word of a token."""
    return f"n{token}"


def next_token(token: int) -> int:
    """Return what the target says after ``token``; raise ValueError if it is no word of the vocabulary."""
    if not FIRST <= token < VOCABULARY:
        raise ValueError(f"token {token} is not in {FIRST}..{VOCABULARY - 1}")
    block, place = divmod(token - FIRST, BLOCK)
    if place < BLOCK - 1:
        return token + 1
    return (block + JUMP) % BLOCKS * BLOCK + FIRST


def previous_token(token: int) -> int:
    """Return the word that the target says ``token`` after; raise ValueError if it is no word of the vocabulary."""
    if not FIRST <= token < VOCABULARY:
        raise ValueError(f"token {token} is not in {FIRST}..{VOCABULARY - 1}")
    block, place = divmod(token - FIRST, BLOCK)
    if place > 0:
        return token - 1
    return (block - JUMP) % BLOCKS * BLOCK + BLOCK - 1 + FIRST


def expected(prompt_last_token: int, n: int) -> list[int]:
    """Return the ``n`` tokens that greedy decoding gives after a prompt that ends with ``prompt_last_token``."""
    tokens = []
    for _ in range(n):
        prompt_last_token = next_token(prompt_last_token)
        tokens.append(prompt_last_token)
    return tokens


def expected_text(prompt_last_token: int, n: int) -> str:
    """Return ``expected`` as the server writes it: each word with a blank before it."""
    return "".join(f" {word(token)}" for token in expected(prompt_last_token, n))


def counting_prompt(first: int, n: int) -> list[int]:
    """Return ``n`` tokens that count from ``first`` on as the target does."""
    return [first, *expected(first, n - 1)]


def counting_back(token: int, n: int) -> list[int]:
    """Return the ``n`` tokens that come before ``token`` where the target counts up to it, the nearest first."""
    tokens = []
    for _ in range(n):
        token = previous_token(token)
        tokens.append(token)
    return tokens


def draft_knows(token: int) -> bool:
    """Return whether a token is in the draft's reduced vocabulary."""
    return token % 16 != 5


def attending_draft_knows(token: int) -> bool:
    """Return whether a token is in the attending draft's reduced vocabulary."""
    return token % 7 != 5


def accepted_lengths(prompt_last_token: int, n: int, steps: int) -> list[int]:
    """Return how many tokens each round of greedy speculation gives, bonus token included, until there are ``n``.

    The first of the ``n`` tokens comes with the prompt's prefill and belongs to no round. ``steps`` is the number of
    draft tokens.
    """
    text = [prompt_last_token, *expected(prompt_last_token, n + steps)]

    def is_guessed(known: int, place: int) -> bool:
        return text[place] == text[known - 1] + place - known + 1 and draft_knows(text[place])

    return _rounds(1, n, steps, is_guessed)


def attending_accepted_lengths(prompt: Sequence[int], n: int, steps: int) -> list[int]:
    """Return ``accepted_lengths`` of the attending draft after a prompt of one or more tokens.

    It holds while the draft's KV cache is exact and ``steps`` is at most ``DISTANCES[1] + 1``.
    """
    text = [*prompt, *expected(prompt[-1], n + steps)]
    return _rounds(len(prompt), n, steps, lambda _known, place: attending_draft_guesses(text, place))


def attending_draft_guesses(text: Sequence[int], place: int) -> bool:
    """Return whether the attending draft guesses ``text[place]``, counted from 0, right after the text before it."""
    if place < SEEN[-1] or not attending_draft_knows(text[place]):
        return False
    before = counting_back(text[place], SEEN[-1])
    return all(text[place - back] == before[back - 1] for back in SEEN)


def _rounds(prompt_length: int, n: int, steps: int, is_guessed: Callable[[int, int], bool]) -> list[int]:
    """Return the length of each round; ``is_guessed(known, place)`` tells of the token at a place of the text.

    ``known`` is the number of tokens before the one that the target has chosen already.
    """
    lengths, given = [], 1
    while given < n:
        known = prompt_length + given - 1
        hits = (is_guessed(known, place) for place in range(known + 1, known + 1 + steps))
        lengths.append((*hits, False).index(False) + 1)
        given += lengths[-1]
    return lengths
