"""Prompts tokenized by transformers, for models whose tokenizers are like those of real ones.

Run by the Python of a release, with the checkout on its path: python -m unittest tests/release/test_prompts.py
"""

import functools
import itertools
import json
import os
import pwd
import tempfile
import unittest
from pathlib import Path

import transformers
from sglang_cpu_standin import models
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers import models as algorithms

from blackwell.bench import chat, dialogues, sources, tokenizing
from blackwell.bench.contexts import Contexts, Tokenized
from blackwell.bench.errors import BenchError

SPECIAL = ("<|begin|>", "<|end|>", "<|header|>", "<|media|>")
LLAMA = (
    "{{ bos_token }}{% for m in messages %}<|header|>{{ m.role }}\n\n{{ m.content | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|header|>assistant\n\n{% endif %}"
)
ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}"
    "{{ '[Q] ' if m.role == 'user' else '[A] ' }}{{ m.content }}{{ eos_token if m.role == 'assistant' }}{% endfor %}"
)


def write_tokenizer(directory: Path, template: str, size: int = 3000) -> None:
    """A byte-level BPE, trained on source files, which begins every text by itself as that of Llama does."""
    made = Tokenizer(algorithms.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(sources.standard_library(300_000).texts, trainer)
    directory.mkdir()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<|begin|>",
        eos_token="<|end|>",
        additional_special_tokens=["<|header|>", "<|media|>"],
        chat_template=template,
    )
    fast.save_pretrained(directory)


class Prompts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.out = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.out.chmod(0o755)
        write_tokenizer(cls.out / "llama", LLAMA)
        write_tokenizer(cls.out / "alternating", ALTERNATING)
        models.write_models(cls.out / "counting")

    @classmethod
    @functools.cache
    def made(cls, name: str) -> Tokenized:
        """The prompts of a model; a process for each takes seconds."""
        return tokenizing.tokenized(cls.out / name, "mixed")

    def check_texts(self, name: str, openings: tuple[str, str]):
        """The prompts of a model, written out again; ``openings`` begin those of coding and of agentic ones."""
        made = self.made(name)
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.out / name)
        every = dialogues.read("mixed")
        self.assertEqual([one.id for one in made.conversations], [one.id for one in every])
        for one, dialogue in zip(made.conversations, every, strict=True):
            before, after = tokenizer.decode(one.prefix), tokenizer.decode(one.rest)
            self.assertTrue(before.startswith(openings[dialogue.kind == "agentic"]), before)
            self.assertTrue(before.endswith(chat.OPENING))
            self.assertTrue(after.startswith(chat.CLOSING))
            for message in dialogue.messages:
                self.assertIn(message.content, before + after)
            whole = tokenizer(before + after, add_special_tokens=False)["input_ids"]
            self.assertLessEqual(abs(len(whole) - len(one.prefix) - len(one.rest)), 2)
        self.assertFalse(set(made.filler) & set(tokenizer.all_special_ids))
        self.assertIn("\ndef ", tokenizer.decode(made.filler[:20_000]))
        return made

    def test_a_template_of_headers(self):
        begin = "<|begin|><|header|>"
        made = self.check_texts("llama", (f"{begin}user\n\n", f"{begin}system\n\nYou"))
        tokens = [one.prefix.count(0) + one.rest.count(0) for one in made.conversations]
        self.assertEqual(set(tokens), {1}, "the token that begins a text is there once")

    def test_a_template_without_a_system_prompt(self):
        self.check_texts("alternating", ("[Q] Some files", "[Q] Some files"))

    def test_contexts_have_exactly_as_many_tokens(self):
        made = self.made("llama")
        for context in (512, 1024, 65_536, 131_072):
            asked = list(itertools.islice(Contexts(made, context, 4).stream(250, 1, 0), 5))
            self.assertEqual({(len(prompt), new) for prompt, new in asked}, {(context, 4)})
            self.assertEqual(len({tuple(prompt) for prompt, _ in asked}), 5)
        with self.assertRaisesRegex(
            BenchError, r"^contexts: 40 tokens are too few, the shortest prompt of this model, "
        ):
            Contexts(made, 40)

    def test_a_text_is_joined_as_it_would_be_tokenized_but_for_a_few_tokens(self):
        made = self.made("llama")
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.out / "llama")
        for prompt, _ in itertools.islice(Contexts(made, 4096, 4).stream(1, 1, 0), 20):
            whole = tokenizer(tokenizer.decode(prompt), add_special_tokens=False)["input_ids"]
            self.assertLessEqual(abs(len(whole) - len(prompt)), 4)

    def test_it_is_the_same_each_time_and_says_what_it_was_made_from(self):
        made = self.made("llama")
        self.assertEqual(made, tokenizing.tokenized(self.out / "llama", "mixed"))
        digest = dialogues.digest(dialogues.read("mixed"))
        files = sources.standard_library().digest
        self.assertEqual(made.described, {"prompts": "mixed", "conversations": digest, "source_files": files})

    def test_the_counting_model_reads_every_prompt(self):
        made = self.made("counting/target")
        for prompt, _ in itertools.islice(Contexts(made, 1024).stream(8, 1, 0), 20):
            self.assertEqual(len(prompt), 1024)
            self.assertTrue(all(2 <= token < 1026 for token in prompt))

    def refusal(self, path: Path, **options: object) -> str:
        with self.assertRaises(BenchError) as caught:
            tokenizing.tokenized(path, "coding", **options)
        return str(caught.exception)

    def broken(self, name: str, **config: object) -> Path:
        directory = self.out / name
        directory.mkdir()
        (directory / "tokenizer.json").write_bytes((self.out / "llama" / "tokenizer.json").read_bytes())
        (directory / "tokenizer_config.json").write_text(
            json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"} | config)
        )
        return directory

    def test_a_model_without_a_tokenizer_is_named_with_the_way_out(self):
        (self.out / "empty").mkdir()
        self.assertEqual(
            self.refusal(self.out / "empty"),
            f"{self.out}/empty has no tokenizer, none of tokenizer_config.json, tokenizer.json, tokenizer.model: "
            "measure with --prompts random",
        )
        self.assertEqual(self.refusal(self.out / "none"), f"{self.out}/none is no directory of a model")

    def test_a_model_without_a_chat_template_is_named_with_the_way_out(self):
        directory = self.broken("plain")
        self.assertEqual(
            self.refusal(directory),
            f"{directory} has a tokenizer without a chat template: measure with --prompts random",
        )

    def test_a_tokenizer_that_is_cut_off_is_named(self):
        directory = self.broken("cut")
        (directory / "tokenizer.json").write_text("{")
        self.assertRegex(
            self.refusal(directory),
            rf"^{directory} has no tokenizer that can be read \(.+\): measure with --prompts random$",
        )

    def test_a_template_that_raises_is_named(self):
        directory = self.broken("raises", chat_template="{{ raise_exception('Only for cats') }}")
        self.assertEqual(
            self.refusal(directory),
            f"{directory}: the chat template refuses {dialogues.read('coding')[0].id}: Only for cats: "
            "measure with --prompts random",
        )

    def own_code(self) -> Path:
        classes = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": [None, "own.Own"]}}
        directory = self.broken("own", **classes, chat_template=ALTERNATING)
        (directory / "own.py").write_text(
            "import os\n"
            "from transformers import PreTrainedTokenizerFast\n"
            "class Own(PreTrainedTokenizerFast):\n"
            "    def __init__(self, *words, **options):\n"
            "        super().__init__(*words, **options)\n"
            "        home = os.stat(os.getcwd()).st_uid\n"
            "        self.eos_token = f'<user {os.geteuid()} groups {os.getgroups()} home {home}>'\n"
        )
        return directory

    def test_a_models_own_code_runs_only_if_it_is_trusted_and_as_the_other_user(self):
        directory = self.own_code()
        self.assertRegex(self.refusal(directory), r"^.* has no tokenizer that can be read \(.*custom code.*\): measure")
        user = "nobody" if os.geteuid() == 0 else None
        uid = pwd.getpwnam(user).pw_uid if user else os.geteuid()
        made = tokenizing.tokenized(
            directory, "agentic", user=user, group="nogroup" if user else None, trust_remote_code=True
        )
        tokenizer = transformers.AutoTokenizer.from_pretrained(self.out / "llama")
        # An assistant's turn ends with what the code put there.
        said = tokenizer.decode(made.conversations[0].rest)
        self.assertIn(f"<user {uid} ", said)
        if user:
            self.assertIn(f"groups [] home {uid}>", said)


if __name__ == "__main__":
    unittest.main()
