"""The conversations that come with the project."""

import json

import pytest
from zipped import printed

from blackwell.bench import chat, dialogues, package
from blackwell.bench.errors import BenchError

LINE = {"id": "one", "kind": "coding", "messages": [{"role": "user", "content": "Why?"}]}


def line(*turns, **other):
    messages = [{"role": role, "content": f"words of {role}"} for role in turns or ("user",)]
    return json.dumps(LINE | {"messages": messages} | other)


@pytest.mark.parametrize("kind", dialogues.KINDS)
def test_there_are_enough_of_each_kind_and_of_many_lengths(kind):
    found = dialogues.read(kind)
    assert len(found) >= 24
    assert {one.kind for one in found} == {kind}
    lengths = sorted(sum(len(message.content) for message in one.messages) for one in found)
    assert lengths[-1] > 4 * lengths[0]


def test_agents_have_a_system_prompt_with_tools_and_are_at_work():
    for one in dialogues.read("agentic"):
        first, *turns = one.messages
        assert first.role == "system", one.id
        assert "ools" in first.content, one.id
        assert any("```call" in message.content for message in turns if message.role == "assistant"), one.id


def test_none_has_what_a_tokenizer_or_the_place_for_source_files_would_be_confused_by():
    for one in dialogues.read("mixed"):
        for message in one.messages:
            for mark in ("<|", "<s>", "[INST]", chat.PLACE):
                assert mark not in message.content, (one.id, mark)


def test_mixed_is_all_of_them():
    mixed = dialogues.read("mixed")
    assert mixed == dialogues.read("coding") + dialogues.read("agentic")
    assert len({one.id for one in mixed}) == len(mixed)


def test_they_are_read_from_a_zip_archive(tmp_path):
    archive = tmp_path / "program.zip"
    archive.write_bytes(package.zipped(["__init__.py", "bench"]))
    program = (
        "from blackwell.bench import dialogues; print(dialogues.digest(dialogues.read('mixed')), dialogues.__file__)"
    )
    told, file = printed(archive, program).split()
    assert file.startswith(str(archive))
    assert told == dialogues.digest(dialogues.read("mixed"))


def test_the_digest_is_that_of_every_word():
    made = [dialogues.parsed(line("user", id=name), "f", "coding") for name in ("one", "two", "one")]
    assert dialogues.digest(made[0]) == dialogues.digest(made[2])
    assert dialogues.digest(made[0]) != dialogues.digest(made[1])
    other = dialogues.parsed(line("user").replace("words", "Words"), "f", "coding")
    assert dialogues.digest(made[0]) != dialogues.digest(other)


def test_turns():
    (one,) = dialogues.parsed(line("system", "user", "assistant", "user"), "f", "coding")
    assert [message.role for message in one.messages] == ["system", "user", "assistant", "user"]


def test_a_line_may_have_characters_that_separate_lines_elsewhere():
    text = json.dumps(LINE | {"messages": [{"role": "user", "content": "a\u2028b\x85c"}]}, ensure_ascii=False)
    (one,) = dialogues.parsed(f"{text}\n", "f", "coding")
    assert one.messages[0].content == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f.jsonl: line 1 holds no conversation with id, kind and messages: "),
        (f"{line()}\n{{", "f.jsonl: line 2 holds no conversation with id, kind and messages: "),
        (f"{line()}\n[]", "f.jsonl: line 2 holds no conversation with id, kind and messages: "),
        (f"{line()}\n{line()}", "f.jsonl: line 2 has one a second time"),
        (line(kind="agentic"), "f.jsonl: line 1 is of kind 'agentic', not 'coding'"),
        (line(id=""), "f.jsonl: line 1: id, kind or a message is no text, or an empty one"),
        (line(id=7), "f.jsonl: line 1: id, kind or a message is no text, or an empty one"),
        (
            line(messages=[{"role": "user", "content": ["x"]}]),
            "f.jsonl: line 1: id, kind or a message is no text, or an empty one",
        ),
        (line(messages=[]), "f.jsonl: line 1: user and assistant do not take turns from a user to a user: nothing"),
        *(
            (line(*turns), f"line 1: user and assistant do not take turns from a user to a user: {', '.join(turns)}")
            for turns in (
                ("system",),
                ("assistant",),
                ("user", "assistant"),
                ("user", "user"),
                ("user", "system", "user"),
                ("user", "tool", "user"),
                ("assistant", "user"),
            )
        ),
    ],
)
def test_a_line_that_is_no_conversation_is_named(text, said):
    with pytest.raises(BenchError) as caught:
        dialogues.parsed(text, "f.jsonl", "coding")
    assert said in str(caught.value)


def test_an_unknown_kind_is_refused():
    with pytest.raises(BenchError, match=r"^prompts: poetry is none of coding, agentic, mixed$"):
        dialogues.read("poetry")
