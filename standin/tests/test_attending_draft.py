"""The draft that attends, step by step in plain torch: its guesses with a right KV cache, and with one that is not."""

import math
import unittest
from collections.abc import Iterator

import torch

from sglang_cpu_standin import counting, models, weights

EMBEDDING = weights.embedding(torch.arange(counting.VOCABULARY)).bfloat16()
LENGTH = 400
HOLE = slice(200, 232)
KNOWN = 232
"""Places of the text that are known where the hole ends."""

STALE = 874
"""A token that has no circle near those of the token in its place."""

HALF = weights.ATTENDING_HEAD_SIZE // 2


def rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    mean = x.float().pow(2).mean(-1, keepdim=True)
    return (x / (mean + models.LLAMA["rms_norm_eps"]).sqrt()).bfloat16() * weight


def turned(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Return x [positions, heads, head size] with the rotary embedding of its positions."""
    speed = models.LLAMA["rope_theta"] ** (-torch.arange(HALF) / HALF)
    angle = positions[:, None, None] * speed
    cos, sin = angle.cos().bfloat16(), angle.sin().bfloat16()
    first, second = x[..., :HALF], x[..., HALF:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Draft:
    """The draft's layer in bfloat16, with a KV cache for one text."""

    def __init__(self):
        tensors = weights.eagle3_attending()
        self.tensors = {name: t.bfloat16() if t.is_floating_point() else t for name, t in tensors.items()}
        self.keys = torch.zeros(LENGTH, 1, weights.ATTENDING_HEAD_SIZE, dtype=torch.bfloat16)
        self.values = torch.zeros_like(self.keys)

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return x @ self.tensors[f"midlayer.self_attn.{name}_proj.weight"].T

    def states_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the states that the target hands over at these tokens, after ``fc``."""
        return EMBEDDING[tokens].repeat(1, 3) @ self.tensors["fc.weight"].T

    def run(
        self, tokens: torch.Tensor, states: torch.Tensor, start: int, ahead: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write the KV cache from place ``start`` on; return guesses and next states there.

        ``ahead`` is the distance from a place to its rotary position.
        """
        places, heads = torch.arange(start, start + len(tokens)), (-1, weights.ATTENDING_HEAD_SIZE)
        positions = places + ahead
        x = rms(EMBEDDING[tokens], self.tensors["midlayer.input_layernorm.weight"])
        x = torch.cat([x, rms(states, self.tensors["midlayer.hidden_norm.weight"])], dim=-1)
        query = turned(self.linear(x, "q").unflatten(-1, heads), positions)
        self.keys[places] = turned(self.linear(x, "k").unflatten(-1, heads), positions)
        self.values[places] = self.linear(x, "v").unflatten(-1, heads)
        scores = torch.einsum("phd,qd->hpq", query, self.keys[:, 0]) / math.sqrt(weights.ATTENDING_HEAD_SIZE)
        later = torch.arange(LENGTH) > places[:, None]
        picked = scores.masked_fill(later, -torch.inf).float().softmax(-1).bfloat16() @ self.values[:, 0]
        states = states + self.linear(picked.transpose(0, 1).flatten(1), "o")
        best = (rms(states, self.tensors["norm.weight"]) @ self.tensors["lm_head.weight"].T).argmax(-1)
        return best + self.tensors["d2t"][best], states

    def read(self, text: torch.Tensor, start: int, end: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Run over positions ``start`` to ``end`` as a draft extend does."""
        return self.run(text[start + 1 : end + 1], self.states_of(text[start:end]), start)


def lengths(draft: Draft, text: torch.Tensor, known: int, n: int, steps: int) -> Iterator[int]:
    """Yield the length of each round of speculation until ``n`` tokens follow the ``known`` ones and the next."""
    end = known + n
    guess, state = (x[-1:] for x in draft.read(text, known - 1, known))
    while known < end:
        accepted, right = 0, True
        for step in range(steps):
            right = right and int(guess) == int(text[known + 1 + accepted])
            accepted += right
            if step < steps - 1:
                guess, state = draft.run(guess, state, known + step, weights.DRAFT_STEP_AHEAD)
        yield accepted + 1
        guess, state = (x[-1:] for x in draft.read(text, known, known + accepted + 1))
        known += accepted + 1


class AttendingDraft(unittest.TestCase):
    def setUp(self):
        self.draft = Draft()
        self.text = torch.tensor(counting.counting_prompt(500, LENGTH))

    def mean_after(self, known: int, n: int) -> float:
        found = list(lengths(self.draft, self.text, known, n, 3))
        return sum(found) / len(found)

    def test_it_guesses_where_it_is_said_to(self):
        for first in (2, 12, 500, 1025):
            text = torch.tensor(counting.counting_prompt(first, LENGTH))
            guesses, _ = Draft().read(text, 0, LENGTH - 1)
            for place in range(2, LENGTH):
                right = int(guesses[place - 2]) == int(text[place])
                said = counting.attending_draft_guesses(text.tolist(), place)
                self.assertEqual(right, said, f"place {place} of the text from n{first}")

    def test_a_wrong_guess_is_one_that_the_target_never_says(self):
        guesses, _ = self.draft.read(self.text, 0, LENGTH - 1)
        wrong = {int(guess) for guess, token in zip(guesses[:-1], self.text[2:], strict=True) if guess != token}
        self.assertEqual(wrong, {0})

    def test_rounds_are_the_predicted_ones(self):
        for steps in (1, 3, counting.DISTANCES[1] + 1):
            with self.subTest(steps):
                draft, prompt = Draft(), self.text[:150].tolist()
                draft.read(self.text, 0, 150)
                found = list(lengths(draft, self.text, 150, 200, steps))
                said = counting.attending_accepted_lengths(prompt, 201, steps)
                self.assertEqual(found, said)

    def test_a_hole_is_felt_as_long_as_a_head_reaches_it(self):
        stale = Draft()
        stale.read(torch.tensor(counting.counting_prompt(77, LENGTH)), 0, LENGTH - 1)
        self.draft.read(self.text, 0, KNOWN)
        self.assertGreater(self.mean_after(KNOWN, 60), 3)
        for what, keys, values in (
            ("of another text", stale.keys, stale.values),
            ("zero", torch.zeros_like(stale.keys), torch.zeros_like(stale.keys)),
        ):
            with self.subTest(what):
                self.draft.read(self.text, 0, KNOWN)
                self.draft.keys[HOLE], self.draft.values[HOLE] = keys[HOLE], values[HOLE]
                self.assertLess(self.mean_after(KNOWN, counting.DISTANCES[-1]), 1.1)

    def test_one_stale_position_is_felt_at_every_distance(self):
        for what in ("token", "state"):
            with self.subTest(what):
                draft = Draft()
                draft.read(self.text, 0, LENGTH - 1)
                part = slice(0, weights.HIDDEN) if what == "token" else slice(weights.HIDDEN, None)
                draft.values[200, 0, part] = EMBEDDING[STALE]
                guesses, _ = draft.run(self.text[202:], draft.states_of(self.text[201:-1]), 201)
                told = [d for d in counting.DISTANCES if what == "token" or d != counting.DISTANCES[0]]
                for distance in told:
                    place = 200 + distance + 2
                    if counting.attending_draft_knows(int(self.text[place])):
                        self.assertNotEqual(int(guesses[place - 203]), int(self.text[place]), f"distance {distance}")

    def test_states_of_another_text_are_felt_in_every_layer(self):
        for layer in range(3):
            with self.subTest(layer):
                states = EMBEDDING[self.text[:-1]].repeat(1, 3)
                part = slice(layer * weights.HIDDEN, (layer + 1) * weights.HIDDEN)
                states[:, part] = states[:, part].flip(0)
                self.assertLess(self.right_guesses(states), LENGTH // 20)

    def test_missing_states_are_felt(self):
        self.assertEqual(self.right_guesses(torch.zeros(LENGTH - 1, 3 * weights.HIDDEN, dtype=torch.bfloat16)), 0)

    def right_guesses(self, states: torch.Tensor) -> int:
        """Return how many guesses are right if the target hands over these states, [positions, 3 * hidden]."""
        guesses, _ = self.draft.run(self.text[1:], states @ self.draft.tensors["fc.weight"].T, 0)
        return int((guesses[:-1] == self.text[2:]).sum())


if __name__ == "__main__":
    unittest.main()
