"""Conversations in a chat template: where the source files go, and which token ids come of it."""

import jinja2
import pytest

from blackwell.bench import chat, dialogues
from blackwell.bench.dialogues import Dialogue, Message
from blackwell.bench.errors import BenchError

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ refuse('System role not supported') }}{% endif %}" + CHATML
TALK = Dialogue(
    "talk",
    "coding",
    (Message("system", "Be brief."), Message("user", "One?"), Message("assistant", "Yes."), Message("user", "Two?")),
)
QUESTION = f"{chat.OPENING}|{chat.CLOSING}One?"


class Letters:
    """A tokenizer whose ids are the numbers of letters, with the templates that transformers renders."""

    all_special_ids = (ord("$"),)

    def __init__(self, chat_template):
        self.chat_template = chat_template

    def apply_chat_template(self, conversation, *, tokenize, add_generation_prompt):
        def refuse(reason):
            raise jinja2.TemplateError(reason)

        assert not tokenize
        template = jinja2.Template(self.chat_template)
        return template.render(messages=conversation, add_generation_prompt=add_generation_prompt, refuse=refuse)

    def __call__(self, text, *, add_special_tokens):
        assert not add_special_tokens
        return {"input_ids": [[ord(letter) for letter in one] for one in text]}


def text(ids):
    return "".join(map(chr, ids))


def talked(template, dialogue=TALK):
    (one,) = chat.tokenized(Letters(template), [dialogue], ["file"]).conversations
    return f"{text(one.prefix)}|{text(one.rest)}"


def test_the_place_is_in_the_first_question_and_the_template_goes_on_to_the_answer():
    assert talked(CHATML) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        f"<|im_start|>user\n{QUESTION}<|im_end|>\n"
        "<|im_start|>assistant\nYes.<|im_end|>\n"
        "<|im_start|>user\nTwo?<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_system_prompt_that_the_template_refuses_goes_into_the_first_question():
    begin = talked(NO_SYSTEM)
    question = f"{chat.OPENING}|{chat.CLOSING}Be brief.\n\nOne?"
    assert begin.startswith(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\nYes.")


def test_the_conversations_of_the_project_in_both_templates():
    every = dialogues.read("mixed")
    for template in (CHATML, NO_SYSTEM):
        made = chat.tokenized(Letters(template), every, ["file"])
        assert [one.id for one in made.conversations] == [one.id for one in every]
        for one, dialogue in zip(made.conversations, every, strict=True):
            assert text(one.prefix).endswith(chat.OPENING)
            assert text(one.rest).startswith(chat.CLOSING)
            assert text(one.rest).endswith("<|im_end|>\n<|im_start|>assistant\n")
            assert dialogue.messages[-1].content.strip() in text(one.rest)


def test_files_become_one_text_without_what_would_end_it():
    made = chat.tokenized(Letters(CHATML), [TALK], ["a = '$'\n", "b"])
    assert text(made.filler) == "a = ''\nb"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ messages[-1].content }}", "the chat template writes the first question of talk 0 times, not once"),
        (CHATML + CHATML, "the chat template writes the first question of talk 2 times, not once"),
        ("{{ refuse('Only for cats') }}", "the chat template refuses talk: Only for cats"),
    ],
)
def test_a_template_that_does_not_do_is_refused_by_the_name_of_the_conversation(template, said):
    with pytest.raises(BenchError) as caught:
        talked(template)
    assert str(caught.value) == said
