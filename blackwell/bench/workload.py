"""What clients ask for: the same requests in the same order for every server that is compared."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

Request = tuple[list[int], int]
"""Token ids of a prompt, and the number of tokens to generate."""


@dataclass(frozen=True)
class Workload:
    """Random prompts of ``prompt_tokens`` ids from ``first_token`` to ``last_token``.

    Answers are ``new_tokens`` long, all of them: clients that begin together go on together. ``mixed`` ones are so on
    average, evenly from half of it to one and a half.
    """

    prompt_tokens: int = 256
    new_tokens: int = 128
    first_token: int = 10
    last_token: int = 31000
    mixed: bool = False

    @property
    def longest(self) -> int:
        """Tokens of the longest answer."""
        return 3 * self.new_tokens // 2 if self.mixed else self.new_tokens

    def stream(self, clients: int, repeat: int, client: int) -> Iterator[Request]:
        """The endless requests of one client out of ``clients``.

        The first of mixed ones is cut to an even share of its length, as if it had begun before: clients that start
        together would otherwise end together, and the load would come in waves.
        """
        rng = random.Random(f"{clients} clients, repeat {repeat}, client {client}")
        known = range(self.first_token, self.last_token + 1)
        shortest, share = math.ceil(self.new_tokens / 2), rng.random()
        if not self.mixed:
            shortest, share = self.new_tokens, 1.0
        while True:
            new = rng.randint(shortest, self.longest)
            yield rng.choices(known, k=self.prompt_tokens), max(1, math.ceil(share * new))
            share = 1.0
