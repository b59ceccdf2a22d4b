"""Names: what may become a host name, and what the command line makes of names and --count."""

import pytest

from blackwell.sandbox import api, cli, names
from blackwell.sandbox.errors import SandboxError


def test_valid_names_keep_their_order_and_come_once():
    assert names.checked(["web", "a", "t-1", "web"]) == ["web", "a", "t-1"]


@pytest.mark.parametrize("name", ["", "Web", "1a", "-a", "a-", "a_b", "a.b", "../x", "a b", "a" * 33, "a\n"])
def test_names_that_cannot_be_host_names_are_refused(name):
    with pytest.raises(SandboxError, match="bad host name"):
        names.checked(["fine", name])


def test_without_names_one_host_is_meant():
    assert cli.chosen_names([], None) == ["sandbox1"]


def test_a_count_means_numbered_hosts():
    assert cli.chosen_names([], 3) == ["sandbox1", "sandbox2", "sandbox3"]


@pytest.mark.parametrize(
    ("given", "count", "words"), [(["a"], 2, "not both"), ([], 0, "at least 1"), ([], -1, "at least 1")]
)
def test_names_and_count_that_contradict_are_refused(given, count, words):
    with pytest.raises(SandboxError, match=words):
        cli.chosen_names(given, count)


def test_the_table_has_a_line_for_each_host_under_its_heads():
    lines = cli.table((api.Host("web", "10.213.0.2", "bookworm", "up"),)).splitlines()
    assert lines[0].split() == ["NAME", "ADDRESS", "SUITE", "STATE"]
    assert lines[1].index("10.213.0.2") == lines[0].index("ADDRESS")


def test_a_bad_name_is_one_sentence_and_changes_nothing(capsys):
    assert cli.main(["up", "Bad"]) == 1
    assert capsys.readouterr().err == f"sandbox: bad host name 'Bad': {names.RULE}\n"
