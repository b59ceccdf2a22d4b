"""Headers of patches: what they must have, and what of them says that a patch was changed."""

import pytest
from patches_fixtures import FIRST_PATCH, HEADER, SECOND_PATCH

from blackwell.patches import header

TEXT = HEADER.format(what="Count", day=1)


@pytest.mark.parametrize("patch", [FIRST_PATCH, SECOND_PATCH, TEXT, "", "--- a/x\n+++ b/x\n"])
def test_header_and_changes_are_the_patch(patch):
    words, diff = header.split(patch.encode())
    assert (words + diff).decode() == patch
    assert header.text_of(words) + header.separator(words) in (words.decode(), words.decode().rstrip() + "\n\n")
    assert b"Last-Update" not in diff


def test_dashes_in_a_header_do_not_end_it():
    words, diff = header.split(b"Description: x\n--- an aside\n---\n--- a/x\n+++ b/x\n")
    assert (words, diff) == (b"Description: x\n--- an aside\n---\n", b"--- a/x\n+++ b/x\n")


def test_a_complete_header_has_no_problem():
    assert header.problems(TEXT) == []
    assert header.title(TEXT) == "Count"
    assert header.author(TEXT) == ("Ann Author", "ann@example.org")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("Description:", "About:"), "has no Description or Subject in its header"),
        (("Author:", "By:"), "has no Author or From in its header"),
        (("Forwarded:", "Sent:"), "has no Forwarded or Origin in its header"),
        (("Last-Update:", "Updated:"), "has no Last-Update in its header"),
        (("not-needed", ""), "has no Forwarded or Origin in its header"),
        (("<ann@example.org>", "ann@example.org"), "has an author that is not written as NAME <MAIL>"),
        (("2026-01-01", "2026-1-1"), "has a Last-Update that is not a date (YYYY-MM-DD): 2026-1-1"),
        (("2026-01-01", "2026-02-31"), "has a Last-Update that is not a date (YYYY-MM-DD): 2026-02-31"),
    ],
)
def test_what_a_header_lacks_is_named(change, problem):
    assert header.problems(TEXT.replace(*change)) == [problem]


def test_the_other_names_of_the_fields():
    text = "From: A B <a@b>\nSubject: [PATCH] x\nOrigin: vendor\nLast-Update: 2026-01-01\n"
    assert header.problems(text) == []


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (TEXT.replace("2026-01-01", "2026-12-31"), True),
        (TEXT.replace("Count\n", "Count  \n\n\n") + "\n", True),
        (TEXT.replace("second", "third"), False),
        (TEXT.replace("not-needed", "no"), False),
    ],
)
def test_a_date_and_white_space_are_no_change(other, same):
    assert (header.comparable(TEXT) == header.comparable(other)) == same


def test_the_date_is_replaced():
    assert header.updated(TEXT, "2027-03-04") == TEXT.replace("2026-01-01", "2027-03-04")
