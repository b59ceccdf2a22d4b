"""Tokenizing in a process of its own, as far as it goes without transformers; tests/release has the rest."""

import os

import pytest
from zipped import printed

from blackwell.bench import dialogues, tokenizing
from blackwell.bench.errors import BenchError


def test_what_the_process_says_last_is_raised(tmp_path):
    with pytest.raises(BenchError, match=r"^ModuleNotFoundError: No module named 'transformers'$"):
        tokenizing.tokenized(tmp_path, "coding")


def test_an_unknown_user_is_refused(tmp_path):
    with pytest.raises(BenchError, match=r"^prompts cannot be tokenized: no such user: 'nobody-here'$"):
        tokenizing.tokenized(tmp_path, "coding", user="nobody-here")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may be anyone")
def test_to_be_another_user_takes_root(tmp_path):
    with pytest.raises(BenchError, match=r"^prompts cannot be tokenized as root: Operation not permitted$"):
        tokenizing.tokenized(tmp_path, "coding", user="root")


def test_the_program_is_packed_with_what_it_needs(tmp_path):
    archive = tmp_path / "program.zip"
    tokenizing.pack(archive)
    program = (
        "from blackwell.bench import chat, contexts, dialogues, durable, sources; print(dialogues.read('mixed')[0].id)"
    )
    assert printed(archive, program).strip() == dialogues.read("mixed")[0].id
    assert archive.stat().st_mode & 0o777 == 0o644


def test_only_a_regular_file_is_read(tmp_path):
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert tokenizing.content(tmp_path / "secret") == "{}"
    for name, said in (
        ("link", "left no link that can be read: Too many levels of symbolic links"),
        ("none", "left no none that can be read: No such file or directory"),
        ("pipe", "left a pipe that is no file"),
        ("folder", "left"),
    ):
        with pytest.raises(BenchError) as caught:
            tokenizing.content(tmp_path / name)
        assert said in str(caught.value)
