"""The tables in docs/performance.md come from the rows that lie beside it, and these from the requests themselves."""

from pathlib import Path

import pytest

from blackwell.bench import points, raw, table

DOCS = Path(__file__).parents[2] / "docs"
COMPARISONS = sorted((DOCS / "data").glob("*-requests.jsonl.gz"))


@pytest.mark.parametrize("requests", COMPARISONS, ids=lambda file: file.name)
def test_a_table_is_what_its_requests_say(requests):
    rows = points.read(requests.with_name(requests.name.replace("-requests.jsonl.gz", ".json")))
    computed = points.recomputed(rows, raw.read(requests))
    assert computed == rows
    assert table.render(computed) in (DOCS / "performance.md").read_text()


def test_there_is_a_comparison():
    assert COMPARISONS
