"""The behaviour of the counting models in plain numbers: what the target says after a token, what the draft guesses.

Token t is the word ``n<t>``. The target counts up inside blocks of ``BLOCK`` tokens and jumps ``JUMP`` blocks ahead
after the last token of a block. The draft counts on from the token before the one it continues, so it misses every
jump and the token after it; it also lacks every token t with ``t % 16 == 5``. This module needs no torch: tests on
the control machine use it too.
"""

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


def draft_knows(token: int) -> bool:
    """Return whether a token is in the draft's reduced vocabulary."""
    return token % 16 != 5


def accepted_lengths(prompt_last_token: int, n: int, steps: int) -> list[int]:
    """Return how many tokens each round of greedy speculation gives, bonus token included, until there are ``n``.

    The first of the ``n`` tokens comes with the prompt's prefill and belongs to no round. ``steps`` is the number of
    draft tokens.
    """
    text = [prompt_last_token, *expected(prompt_last_token, n + steps)]
    lengths, known = [], 1
    while known < n:
        guesses = [text[known - 1] + 2 + step for step in range(steps)]
        truth = text[known + 1 : known + 1 + steps]
        hits = [guess == token and draft_knows(token) for guess, token in zip(guesses, truth, strict=True)]
        lengths.append((*hits, False).index(False) + 1)
        known += lengths[-1]
    return lengths
