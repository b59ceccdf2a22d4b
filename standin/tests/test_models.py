"""The counting models on disk: their weights say what ``counting`` says, and a directory is complete or absent."""

import contextlib
import io
import itertools
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch
import transformers
from safetensors.torch import load_file

from sglang_cpu_standin import counting, models

WORDS = torch.arange(counting.FIRST, counting.VOCABULARY)


def rms(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x / x.pow(2).mean(-1, keepdim=True).add(models.LLAMA["rms_norm_eps"]).sqrt() * weight


class Weights(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.out = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "models"
        models.write_models(cls.out)
        cls.target = transformers.AutoModelForCausalLM.from_pretrained(cls.out / "target", dtype=torch.bfloat16)
        cls.draft = {name: t.float() for name, t in load_file(cls.out / "eagle3/model.safetensors").items()}

    def states_after(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return what the target hands to the draft after one-token prompts: three states, [tokens, 3 * hidden]."""
        with torch.no_grad():
            layers = self.target(tokens[:, None], output_hidden_states=True).hidden_states
        return torch.cat([layers[number][:, -1] for number in (1, 2, 3)], dim=-1).float()

    def draft_step(self, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the guessed tokens and the draft's next state, without attention, which is multiplied by zero."""
        mlp = {name: self.draft[f"midlayer.mlp.{name}_proj.weight"] for name in ("gate", "up", "down")}
        x = rms(state, self.draft["midlayer.post_attention_layernorm.weight"])
        inside = torch.nn.functional.silu(x @ mlp["gate"].T) * (x @ mlp["up"].T)
        state = state + inside @ mlp["down"].T
        best = (rms(state, self.draft["norm.weight"]) @ self.draft["lm_head.weight"].T).argmax(-1)
        return best + self.draft["d2t"].long()[best], state

    def test_the_target_says_the_expected_word_after_every_word(self):
        with torch.no_grad():
            logits = self.target(WORDS[:, None]).logits[:, -1].float()
        self.assertEqual(logits.argmax(-1).tolist(), [counting.next_token(word) for word in WORDS.tolist()])
        first, second = logits.topk(2).values.unbind(-1)
        self.assertGreater(float((first - second).min()), 0.5, "bfloat16 must not decide")

    def test_a_long_text_is_the_expected_one(self):
        with torch.no_grad():
            text = self.target.generate(torch.tensor([[40, 12]]), max_new_tokens=100, do_sample=False)
        self.assertEqual(text[0, 2:].tolist(), counting.expected(12, 100))

    def test_tensor_parallel_ranks_can_share_every_model(self):
        for name, ranks in itertools.product(models.FIXTURES, (2, 4, 8)):
            with self.subTest(name=name, ranks=ranks):
                config = json.loads((self.out / name / "config.json").read_text())
                for size in ("num_attention_heads", "intermediate_size"):
                    self.assertEqual(config[size] % ranks, 0, size)
                # Fewer heads of the KV cache than ranks are held by several of them.
                few, many = sorted((ranks, config["num_key_value_heads"]))
                self.assertEqual(many % few, 0)

    def test_draft_attention_adds_nothing(self):
        self.assertFalse(self.draft["midlayer.self_attn.o_proj.weight"].any())

    def test_the_draft_counts_on_in_every_step(self):
        state = self.states_after(WORDS) @ self.draft["fc.weight"].T
        for step in range(4):
            guesses, state = self.draft_step(state)
            for word, guess in zip(WORDS.tolist(), guesses.tolist(), strict=True):
                wanted = word + 2 + step
                if wanted < counting.VOCABULARY and counting.draft_knows(wanted):
                    self.assertEqual(guess, wanted, f"step {step} after n{word}")
                else:
                    self.assertNotEqual(guess, wanted, f"step {step} after n{word}")

    def test_a_plain_loop_accepts_the_predicted_lengths(self):
        text = [12, *counting.expected(12, 203)]
        known, lengths = 1, []
        while known < 200:
            state, accepted = self.states_after(torch.tensor([text[known - 1]])) @ self.draft["fc.weight"].T, 0
            guess, state = self.draft_step(state)
            while accepted < 3 and int(guess) == text[known + 1 + accepted]:
                accepted += 1
                guess, state = self.draft_step(state)
            lengths.append(accepted + 1)
            known += accepted + 1
        self.assertEqual(lengths, counting.accepted_lengths(12, 200, 3))

    def test_the_tokenizer_reads_and_writes_words(self):
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.out / "target")
        chat = [{"role": "system", "content": "n40"}, {"role": "user", "content": "n12"}]
        self.assertEqual(tokenizer.apply_chat_template(chat, tokenize=True), [40, 12])
        self.assertEqual(tokenizer.decode(counting.expected(12, 5)), counting.expected_text(12, 5).strip())
        self.assertEqual(tokenizer("nothing known")["input_ids"], [counting.FIRST] * 2)


class Directory(unittest.TestCase):
    def setUp(self):
        self.parent = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.out = self.parent / "models"

    def content(self):
        return {path.relative_to(self.out): path.read_bytes() for path in self.out.rglob("*") if path.is_file()}

    def test_the_second_run_writes_nothing(self):
        self.assertTrue(models.write_models(self.out))
        before = {path: path.stat().st_mtime_ns for path in self.out.rglob("*")}
        self.assertFalse(models.write_models(self.out))
        self.assertEqual({path: path.stat().st_mtime_ns for path in self.out.rglob("*")}, before)

    def test_a_run_that_fails_leaves_nothing(self):
        with (
            mock.patch.object(models, "save_file", side_effect=[None, OSError("disk full")]),
            self.assertRaises(OSError),
        ):
            models.write_models(self.out)
        self.assertEqual(list(self.parent.iterdir()), [])

    def test_models_of_other_sources_are_replaced(self):
        models.write_models(self.out)
        (self.out / models.STAMP).write_text('{"sources": "older"}')
        (self.out / "target/config.json").write_text("{}")
        self.assertTrue(models.write_models(self.out))
        self.assertIn(b"LlamaForCausalLM", self.content()[Path("target/config.json")])
        self.assertEqual([path.name for path in self.parent.iterdir()], ["models"])

    def test_a_directory_of_someone_else_is_left_alone(self):
        self.out.mkdir()
        (self.out / "mine").touch()
        with self.assertRaisesRegex(FileExistsError, "holds no counting models"):
            models.write_models(self.out)
        self.assertEqual([path.name for path in self.out.iterdir()], ["mine"])

    def test_another_user_can_read_all_of_it(self):
        self.addCleanup(os.umask, os.umask(0o077))
        models.write_models(self.out)
        modes = {path.is_dir(): path.stat().st_mode & 0o777 for path in (self.out, *self.out.rglob("*"))}
        self.assertEqual(modes, {True: 0o755, False: 0o644})

    def test_two_runs_give_the_same_bytes(self):
        models.write_models(self.out)
        first = self.content()
        self.out.rename(self.parent / "before")
        models.write_models(self.out)
        self.assertEqual(self.content(), first)

    def test_the_command_line_says_what_it_did(self):
        for word in ("wrote", "unchanged"):
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                self.assertEqual(models.main([str(self.out)]), 0)
            self.assertEqual(
                said.getvalue(), f"{word}: {self.out}/target, {self.out}/eagle3, {self.out}/eagle3-attending\n"
            )

    def test_the_command_line_fails_with_one_sentence(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(models.main([str(self.parent)]), 1)
        self.assertRegex(said.getvalue(), r"\Amodels: .* holds no counting models; .*\n\Z")


if __name__ == "__main__":
    unittest.main()
