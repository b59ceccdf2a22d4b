"""Rows and raw records: written, read, recomputed, and refused with one sentence."""

import gzip
import json

import pytest

from blackwell.bench import points, raw
from blackwell.bench.errors import BenchError
from blackwell.bench.points import Name, Origin
from blackwell.bench.records import Measurement, Poll, Record

NAME = Name("full", 2, 1)
RECORDS = (
    Record(1, 0.0, 2.0, 21, 10, aborted=False),
    Record(0, 0.0, 1.5, 16, 5, aborted=False, retracted=1),
    Record(0, 1.5001, 4.0, 26, 10, aborted=True),
    Record(1, 2.0, 4.0, 21, 10, aborted=True),
)
MEASURED = Measurement((2.0, 3.0), [Poll(2.1, 2, 0), Poll(2.3, 1, 0), Poll(2.5, 2, 0)], RECORDS)
ORIGIN = Origin("c0ffee", "7ree", "NVIDIA H200")
ROW = {
    "arm": "full",
    "c": 2,
    "repeat": 1,
    "tok_s": 20.9,
    "acceptance": 2.286,
    "running_batch": 2,
    "in_flight_min": 2,
    "commit": "c0ffee",
    "patch_tree": "7ree",
    "gpu": "NVIDIA H200",
    "window_s": 1.0,
    "requests": 2,
    "retracted": 1,
    "marked": None,
}


def sentence(call, *arguments):
    with pytest.raises(BenchError) as caught:
        call(*arguments)
    return str(caught.value)


def test_the_row_of_a_point():
    made = points.row(NAME, MEASURED, ORIGIN)
    assert made == ROW
    assert tuple(made) == points.KEYS


def test_an_arm_that_mixes_has_no_acceptance():
    assert points.row(Name("dynamic", 2, 1), MEASURED, ORIGIN)["acceptance"] is None


@pytest.mark.parametrize(
    ("clients", "polls", "said"),
    [
        (2, [Poll(2.5, 2, 0)], None),
        (2, [Poll(2.5, 0, 2)], None),
        (3, [Poll(2.5, 3, 0)], "only 2 of 3 requests were in flight at one moment of the window"),
        (2, [Poll(2.5, 1, 0)], "the server counted 1 requests of 2: something held them back"),
        (2, [], "the server counted 0 requests of 2: something held them back"),
    ],
)
def test_a_point_is_marked_if_the_load_was_not_there(clients, polls, said):
    assert points.mark(clients, Measurement((2.0, 3.0), polls, RECORDS)) == said


def test_rows_are_written_and_read(tmp_path):
    file = tmp_path / "rows.json"
    rows = [ROW, ROW | {"repeat": 2, "extra": 1}]
    points.write(file, rows)
    assert points.read(file) == rows
    assert len(file.read_text().splitlines()) == 4
    points.write(file, [])
    assert points.read(file) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "is not JSON: "),
        ("{}", "holds no list of rows"),
        ("[1]", ": row 1 is not an object"),
        (json.dumps([ROW, {"arm": "full"}]), ": row 2 lacks c, repeat, tok_s"),
        (json.dumps([ROW | {"arm": "fast"}]), ": row 1 has arm 'fast', none of base, full_stock"),
        (json.dumps([ROW | {"c": 0}]), ": row 1 has c 0, which is no such number"),
        (json.dumps([ROW | {"tok_s": None}]), ": row 1 has tok_s None, which is no such number"),
        (json.dumps([ROW, ROW]), " has full at 2, repeat 1 twice"),
    ],
)
def test_what_is_no_file_of_rows(tmp_path, text, said):
    file = tmp_path / "rows.json"
    file.write_text(text)
    assert f"{file}{said if said[0] in ': ' else ' ' + said}" in sentence(points.read, file)


def test_rows_that_are_not_there(tmp_path):
    assert sentence(points.read, tmp_path / "no") == f"{tmp_path / 'no'} cannot be read: No such file or directory"


def line(name, measurement=MEASURED, **more):
    """A line of raw records, as a store writes it."""
    return json.dumps({"arm": name.arm, "c": name.c, "repeat": name.repeat, **more, **raw.content(measurement)}) + "\n"


def test_raw_records_are_read_compressed_or_not_and_whatever_else_a_line_has(tmp_path):
    file, other = tmp_path / "raw.jsonl", Name("base", 1, 3)
    file.write_text(line(NAME) + line(other, fingerprint="aa", origin={}))
    found = raw.read(file)
    assert list(found) == [NAME, other]
    assert found[NAME].window == MEASURED.window
    assert found[NAME].polls == MEASURED.polls
    assert sorted(found[NAME].records, key=str) == sorted(RECORDS, key=str)
    assert points.row(NAME, found[NAME], ORIGIN) == ROW
    raw.pack(file)
    assert raw.read(tmp_path / "raw.jsonl.gz") == found


def test_what_a_line_has_of_a_measurement():
    assert raw.content(MEASURED) == {
        "window": [2.0, 3.0],
        "polls": [[2.1, 2, 0], [2.3, 1, 0], [2.5, 2, 0]],
        "records": [
            [0, 0.0, 1.5, 16, 5, 0, 1],
            [1, 0.0, 2.0, 21, 10, 0],
            [0, 1.5001, 4.0, 26, 10, 1],
            [1, 2.0, 4.0, 21, 10, 1],
        ],
    }


def test_the_same_records_are_the_same_bytes(tmp_path):
    for name, records in (("one", RECORDS), ("other", RECORDS[::-1])):
        (tmp_path / name).write_text(line(NAME, Measurement(MEASURED.window, MEASURED.polls, records)))
        raw.pack(tmp_path / name)
    assert (tmp_path / "one.gz").read_bytes() == (tmp_path / "other.gz").read_bytes()
    assert (tmp_path / "one.gz").read_bytes()[3:8] == b"\0\0\0\0\0"  # neither a name nor a time


def test_a_file_is_packed_and_unpacked(tmp_path):
    file = tmp_path / "raw.jsonl"
    raw.pack(file)
    raw.unpack(file)
    assert list(tmp_path.iterdir()) == []
    file.write_text("one\n")
    raw.pack(file)
    assert [found.name for found in tmp_path.iterdir()] == ["raw.jsonl.gz"]
    raw.unpack(file)
    assert file.read_text() == "one\n"
    # What was added since it was unpacked stays.
    file.write_text("one\ntwo\n")
    raw.unpack(file)
    assert file.read_text() == "one\ntwo\n"


def test_a_line_that_was_cut_is_refused(tmp_path):
    file = tmp_path / "raw.jsonl"
    file.write_text(line(NAME) + line(NAME)[:40])
    assert f"{file}: line 2 is cut off or holds no point of raw records: " in sentence(raw.read, file)


@pytest.mark.parametrize(
    "change",
    [
        {"arm": "fast"},
        {"c": "2"},
        {"window": [2.0]},
        {"window": [2.0, 2.0]},
        {"polls": [[1, 2]]},
        {"records": [[0, 0.0, 1.5, 16, 5]]},
        {"records": [[0, 0.0, 1.5, 16, 5, 0, 1, 1]]},
        {"records": [[0, 0.0, None, 16, 5, 0]]},
        {"records": [[0, 0.0, 1.5, -1, 5, 0]]},
        {"records": [7]},
    ],
)
def test_a_line_of_another_shape_is_refused(tmp_path, change):
    file = tmp_path / "raw.jsonl"
    file.write_text(json.dumps(json.loads(line(NAME)) | change) + "\n")
    assert f"{file}: line 1 is cut off or holds no point of raw records: " in sentence(raw.read, file)


def test_other_files_that_hold_no_raw_records(tmp_path):
    file = tmp_path / "raw.jsonl.gz"
    file.write_bytes(gzip.compress(line(NAME).encode())[:-12])
    assert f"{file} is cut off or not compressed text: " in sentence(raw.read, file)
    file.write_bytes(b"\xff")
    assert f"{file} is cut off or not compressed text: " in sentence(raw.read, file)
    file.write_bytes(gzip.compress(b"\xff"))
    assert f"{file} is cut off or not compressed text: " in sentence(raw.read, file)
    file.write_bytes(gzip.compress(line(NAME).encode() * 2))
    assert sentence(raw.read, file) == f"{file}: line 2 has full at 2, repeat 1 a second time"
    file.unlink()
    assert sentence(raw.read, file) == f"{file} cannot be read: No such file or directory"


def test_rows_are_recomputed_from_the_raw_records():
    assert points.recomputed([ROW | {"tok_s": 99.0}], {NAME: MEASURED}) == [ROW]


@pytest.mark.parametrize(
    ("rows", "measurements", "said"),
    [
        ([ROW], {}, "full at 2, repeat 1: there are no raw records"),
        ([], {NAME: MEASURED}, "full at 2, repeat 1: there are raw records and no row"),
    ],
)
def test_rows_and_raw_records_that_do_not_belong_together(rows, measurements, said):
    assert sentence(points.recomputed, rows, measurements) == said
