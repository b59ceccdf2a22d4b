import pytest

from blackwell import journal
from blackwell.host_errors import HostError

START = ["journalctl", "--unit=sglang.service", "--no-pager", "--output=short-iso"]


@pytest.mark.parametrize(
    ("lines", "since", "follow", "words"),
    [
        ("", "", False, ["--lines=100"]),
        ("7", "", True, ["--lines=7", "--follow"]),
        ("", "-1h", False, ["--since=-1h"]),
        # journalctl --follow would show ten lines only.
        ("", "-1h", True, ["--no-tail", "--since=-1h", "--follow"]),
        ("7", "-1h", False, ["--lines=7", "--since=-1h"]),
    ],
)
def test_command(lines, since, follow, words):
    assert journal.command(lines, since, follow=follow) == [*START, *words]


@pytest.mark.parametrize("lines", ["0", "-3", "many"])
def test_lines_must_be_a_number(lines):
    with pytest.raises(HostError, match=f"--lines is '{lines}', not a number of lines"):
        journal.command(lines, "", follow=False)
