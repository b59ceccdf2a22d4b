"""The source files that prompts are lengthened with."""

import pytest

from blackwell.bench import sources
from blackwell.bench.errors import BenchError


def write(folder, **texts):
    for name, text in texts.items():
        file = folder / name.replace("__", "/")
        file = file.with_name(f"{file.name}.py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_the_standard_library_is_there_and_the_same_each_time():
    found = sources.standard_library()
    length = sum(map(len, found.texts))
    assert sources.CHARACTERS <= length < sources.CHARACTERS + 1_000_000
    assert found == sources.standard_library()
    assert any("def " in text for text in found.texts)


def test_files_have_a_heading_and_come_in_the_order_of_their_paths(tmp_path):
    write(tmp_path, b="b = 1\n", a__z="z = 1", a__b__c="c = 1")
    found = sources.read(tmp_path, 1000)
    assert [text.splitlines()[0] for text in found.texts] == ["### a/b/c.py", "### a/z.py", "### b.py"]
    assert found.texts[2] == "### b.py\n\n```python\nb = 1\n```\n\n"


def test_it_ends_with_the_file_that_reaches_the_number_of_characters(tmp_path):
    write(tmp_path, a="a" * 100, b="b" * 100, c="c")
    assert len(sources.read(tmp_path, 120).texts) == 1
    assert len(sources.read(tmp_path, 150).texts) == 2
    assert sources.read(tmp_path, 120).digest != sources.read(tmp_path, 150).digest


def test_what_is_no_code_of_the_library_or_differs_between_hosts_is_left_out(tmp_path):
    write(
        tmp_path, json__test__big="no", test__x="no", _sysconfigdata_linux="no", encodings__cp1="no", json__decoder="y"
    )
    write(tmp_path / "config-3.11-x86_64-linux-gnu", made="no")
    assert [text.splitlines()[0] for text in sources.read(tmp_path, 1000).texts] == ["### json/decoder.py"]


def test_the_digest_tells_another_content_and_another_name(tmp_path):
    digests = set()
    for number, texts in enumerate([{"a": "x"}, {"a": "y"}, {"b": "x"}, {"a": "x", "b": ""}]):
        write(tmp_path / str(number), **texts)
        digests.add(sources.read(tmp_path / str(number), 1000).digest)
    assert len(digests) == 4


def test_a_host_without_sources_is_refused(tmp_path):
    with pytest.raises(BenchError) as caught:
        sources.read(tmp_path / "none", 1000)
    assert str(caught.value) == (
        f"{tmp_path}/none holds no sources of Python's standard library, which prompts are lengthened with"
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "a.py").symlink_to("nowhere")
    with pytest.raises(BenchError) as caught:
        sources.read(tmp_path, 1000)
    assert str(caught.value) == f"{tmp_path}/a.py cannot be read: No such file or directory"
