"""In which order points are measured, so that no arm gains from what was measured before it."""

from collections.abc import Iterator, Sequence

from .points import Name


def interleaved(arms: Sequence[str], levels: Sequence[int], repeats: Sequence[int]) -> Iterator[Name]:
    """All points: repeat by repeat and level by level, the arms each time in another order.

    The orders are those of a balanced square: over all of them an arm comes first, and after every other one, equally
    often.
    """
    orders = balanced(arms)
    for turn, repeat in enumerate(repeats):
        for number, level in enumerate(levels):
            # At one level the order differs from repeat to repeat, with two arms too.
            for arm in orders[(number + turn) % len(orders)]:
                yield Name(arm, level, repeat)


def balanced(arms: Sequence[str]) -> list[list[str]]:
    """Orders in which each arm follows each other one equally often (a Williams square)."""
    count = len(arms)
    zigzag = [(step + 1) // 2 if step % 2 else (count - step // 2) % count for step in range(count)]
    square = [[arms[(place + turn) % count] for place in zigzag] for turn in range(count)]
    # With an odd number of arms it takes the orders backwards, too.
    return [order for row in square for order in (row, row[::-1])] if count % 2 else square
