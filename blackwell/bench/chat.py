"""Conversations in the chat template of a model, with a place for source files, as token ids."""

from collections.abc import Sequence
from typing import Protocol

from jinja2 import TemplateError

from .contexts import Conversation, Tokenized
from .dialogues import SYSTEM, USER, Dialogue, Message
from .errors import BenchError

PLACE = "@@source-files@@"
OPENING = "Some files of the repository, for context:\n\n"
CLOSING = "\n\nThis is what I ask:\n\n"


class Tokenizer(Protocol):
    """What is used of a tokenizer of transformers."""

    chat_template: object
    all_special_ids: list[int]

    def apply_chat_template(
        self, conversation: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        """The text of a prompt."""

    def __call__(self, text: list[str], *, add_special_tokens: bool) -> dict[str, list[list[int]]]:
        """The token ids of texts under ``input_ids``."""


def tokenized(tokenizer: Tokenizer, dialogues: Sequence[Dialogue], texts: Sequence[str]) -> Tokenized:
    """Conversations and source files as token ids.

    Raises BenchError, naming the conversation, if the template does not write the first question once and as it is.
    """
    halves = [_halves(tokenizer, dialogue) for dialogue in dialogues]
    # The template has written the special tokens that a prompt begins with.
    prefixes = _ids(tokenizer, [before for before, _ in halves])
    rests = _ids(tokenizer, [after for _, after in halves])
    # What a file has between quotes may be read as the end of a text.
    special = set(tokenizer.all_special_ids)
    filler = [token for ids in _ids(tokenizer, texts) for token in ids if token not in special]
    conversations = (
        Conversation(dialogue.id, tuple(prefix), tuple(rest))
        for dialogue, prefix, rest in zip(dialogues, prefixes, rests, strict=True)
    )
    return Tokenized(tuple(conversations), tuple(filler))


def _ids(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    return tokenizer(list(texts), add_special_tokens=False)["input_ids"]


def _halves(tokenizer: Tokenizer, dialogue: Dialogue) -> tuple[str, str]:
    try:
        text = _text(tokenizer, _with_place(dialogue.messages))
    except TemplateError:
        # Some templates refuse a system prompt.
        try:
            text = _text(tokenizer, _with_place(_without_system(dialogue.messages)))
        except TemplateError as error:
            raise BenchError(f"the chat template refuses {dialogue.id}: {error}") from error
    before, *after = text.split(PLACE)
    if len(after) != 1:
        raise BenchError(f"the chat template writes the first question of {dialogue.id} {len(after)} times, not once")
    return before, after[0]


def _text(tokenizer: Tokenizer, messages: Sequence[Message]) -> str:
    return tokenizer.apply_chat_template(
        [{"role": message.role, "content": message.content} for message in messages],
        tokenize=False,
        add_generation_prompt=True,
    )


def _with_place(messages: Sequence[Message]) -> list[Message]:
    first = next(number for number, message in enumerate(messages) if message.role == USER)
    question = Message(USER, f"{OPENING}{PLACE}{CLOSING}{messages[first].content}")
    return [*messages[:first], question, *messages[first + 1 :]]


def _without_system(messages: Sequence[Message]) -> Sequence[Message]:
    if messages[0].role != SYSTEM:
        return messages
    system, question, *rest = messages
    return [Message(USER, f"{system.content}\n\n{question.content}"), *rest]
