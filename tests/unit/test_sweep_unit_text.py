"""The text of a unit: what is read from it is what systemd reads, and what is written is read back."""

import pytest
from sweep_units import ARGV, rendered

from blackwell.bench.errors import BenchError
from blackwell.sweep import unit_text
from blackwell.sweep.unit_text import Assignment

NASTY = [
    "",
    " ",
    "two  blanks",
    'a "quoted" word',
    "it's",
    "'",
    '"',
    "back\\slash",
    "\\",
    '\\"',
    "100%",
    "%i %% %",
    "$HOME ${HOME} $$",
    "a;b ; c",
    ";",
    "#",
    '{"tiers": [{"max_batch": 8, "steps": "full"}, {"steps": 0}]}',
    "line\nbreak\ttab",
    "größer 模型",
    "\udcff no UTF-8",
]


@pytest.mark.parametrize("word", NASTY)
def test_a_word_comes_back_as_it_was(word):
    assert unit_text.split(unit_text.joined(["/bin/program", word, "--last"])) == ["/bin/program", word, "--last"]


@pytest.mark.parametrize("word", NASTY)
def test_a_word_is_one_line_of_its_own(word):
    text = unit_text.rendered([Assignment("Service", "ExecStart", unit_text.joined(["/bin/program", word]))])
    assert text.count("\n") == 2
    assert unit_text.command(unit_text.assignments(text)) == ["/bin/program", word]


def test_the_command_line_of_a_deployment_is_read_from_its_unit():
    assert unit_text.command(unit_text.assignments(rendered())) == list(ARGV)


def test_words_are_written_as_the_template_writes_them():
    lines = [line.strip().removesuffix(" \\") for line in rendered().splitlines()]
    assert f"--model-path {unit_text.quoted(ARGV[4])}" in lines


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/bin/a 'one word' two", ["/bin/a", "one word", "two"]),
        ('/bin/a --name="one word"', ["/bin/a", "--name=one word"]),
        (r"/bin/a a\x20b \101 \s", ["/bin/a", "a b", "A", " "]),
        (r"/bin/a 'it\'s' \"", ["/bin/a", "it's", '"']),
        ("/bin/a 'a \"b\" c'", ["/bin/a", 'a "b" c']),
        ("  /bin/a \t b  ", ["/bin/a", "b"]),
    ],
)
def test_quotes_and_escapes_of_systemd(line, words):
    assert unit_text.split(line) == words


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/bin/a --name %i", "%i"),
        ("/bin/a --name %%%", "%%%"),
        ("/bin/a $MAINPID", "$MAINPID"),
        ("/bin/a ${HOME}/x", "${HOME}/x"),
        ('/bin/a "open', '"open'),
        (r"/bin/a \q", r"\q"),
    ],
)
def test_what_the_text_alone_does_not_tell_is_refused_by_name(line, told):
    with pytest.raises(BenchError) as refused:
        unit_text.split(line)
    assert told in str(refused.value)


def test_continued_lines_and_comments():
    text = (
        "# a comment \\\n[Service]\nExecStart=/bin/a \\\n  # between\n  ; and here\n  b \\\\\nUser=me\n"
        "  [Install]  \nA = b\nno setting\n"
    )
    assert unit_text.assignments(text) == [
        Assignment("Service", "ExecStart", "/bin/a    b \\\\"),
        Assignment("Service", "User", "me"),
        Assignment("Install", "A", "b"),
    ]


def test_an_empty_value_forgets_those_before_it():
    text = "[Service]\nExecStart=/bin/a\nExecStart=\nExecStart=/bin/b\n[Unit]\nExecStart=/bin/c\n"
    assert unit_text.command(unit_text.assignments(text)) == ["/bin/b"]


@pytest.mark.parametrize("text", ["[Service]\n", "[Service]\nExecStart=/bin/a\nExecStart=/bin/b\n"])
def test_a_unit_has_one_command(text):
    with pytest.raises(BenchError, match="commands in ExecStart, not one"):
        unit_text.command(unit_text.assignments(text))


def test_settings_of_a_section_that_comes_twice_stand_together_in_their_order():
    text = "[Unit]\nA=1\n[Service]\nB=2\n[Unit]\nA=3\n"
    assert unit_text.rendered(unit_text.assignments(text)) == "[Unit]\nA=1\nA=3\n\n[Service]\nB=2\n"
