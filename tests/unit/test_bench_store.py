"""Points that are written once, whatever kills the run or whoever else writes."""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from blackwell import paths
from blackwell.bench import durable, store
from blackwell.bench.errors import BenchError
from blackwell.bench.fingerprint import made
from blackwell.bench.points import Name

OURS = made({"driver": "580.95"})
OTHER = made({"driver": "585.10"})
PLAN = [Name("full", clients, 1) for clients in (1, 2, 5)]


@contextmanager
def opened(directory, fingerprint=OURS):
    with store.writing(directory) as writer:
        yield writer.open("points.jsonl", Name, fingerprint)


def sentence(call, *arguments):
    with pytest.raises(BenchError) as caught:
        call(*arguments)
    return str(caught.value)


def enter(directory):
    with store.writing(directory):
        raise AssertionError("the directory is there twice")


def test_points_come_back_and_what_is_missing_is_known(tmp_path):
    with opened(tmp_path / "new" / "run") as points:
        assert points.missing(PLAN) == PLAN
        points.add(PLAN[1], {"tok_s": 7.5})
        points.add(PLAN[0], {"tok_s": 8})
        assert points.missing(PLAN) == [PLAN[2]]
    with opened(tmp_path / "new" / "run") as points:
        assert points.points == {PLAN[1]: {"tok_s": 7.5}, PLAN[0]: {"tok_s": 8}}
        assert list(points.points) == [PLAN[1], PLAN[0]]
        assert points.missing(PLAN) == [PLAN[2]]
        assert points.left_out() == []


def test_the_line_of_a_point(tmp_path):
    with opened(tmp_path) as points:
        points.add(PLAN[0], {"tok_s": 8})
    line = f'{{"arm":"full","c":1,"repeat":1,"fingerprint":"{OURS.digest}","tok_s":8}}\n'
    assert (tmp_path / "points.jsonl").read_text() == line
    assert store.recorded(tmp_path, OURS.digest) == OURS


def test_a_point_that_is_there_is_not_written_twice(tmp_path):
    with opened(tmp_path) as points:
        points.add(PLAN[0], {"tok_s": 8})
    with opened(tmp_path) as points:
        before = points.file.read_bytes()
        assert sentence(points.add, PLAN[0], {"tok_s": 9}) == f"{points.file} has full at 1, repeat 1 already"
        assert points.file.read_bytes() == before


def test_points_of_another_fingerprint_are_kept_and_named_and_not_mixed_in(tmp_path):
    with opened(tmp_path) as points:
        points.add(PLAN[0], {"tok_s": 8})
    with opened(tmp_path, OTHER) as points:
        assert points.missing(PLAN) == PLAN
        assert points.left_out() == [
            (
                f"{points.file} keeps 1 point of fingerprint {OURS.digest[:12]}, not counted here: "
                "the driver was 580.95, it is 585.10"
            )
        ]
        points.add(PLAN[0], {"tok_s": 9})
        points.add(PLAN[1], {"tok_s": 9})
    with opened(tmp_path) as points:
        assert points.points == {PLAN[0]: {"tok_s": 8}}
        assert points.left_out() == [
            (
                f"{points.file} keeps 2 points of fingerprint {OTHER.digest[:12]}, not counted here: "
                "the driver was 585.10, it is 580.95"
            )
        ]
    (tmp_path / "fingerprints" / f"{OTHER.digest}.json").write_text("{")
    with opened(tmp_path) as points:
        assert points.left_out()[0].endswith(", not counted here: what it was is not recorded")


@pytest.mark.parametrize("torn", [b'{"arm":"full","c":2,"rep', b"\0" * 40, b"}"])
def test_a_torn_last_line_is_dropped_and_the_next_point_does_not_join_it(tmp_path, torn):
    with opened(tmp_path) as points:
        points.add(PLAN[0], {"tok_s": 8})
    with points.file.open("ab") as lines:
        lines.write(torn)
    assert list(store.read(points.file, Name, OURS.digest).points) == [PLAN[0]]
    assert points.file.read_bytes().endswith(torn)
    with opened(tmp_path) as points:
        points.add(PLAN[1], {"tok_s": 9})
    assert list(store.read(points.file, Name, OURS.digest).points) == PLAN[:2]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "7",
        "{}",
        '{"arm":"full","c":1,"repeat":1}',
        '{"arm":"full","c":1,"repeat":1,"fingerprint":7}',
        '{"arm":"full","c":[1],"repeat":1,"fingerprint":"aa"}',
    ],
)
def test_a_whole_line_that_is_no_point_is_refused(tmp_path, line):
    with opened(tmp_path) as points:
        points.add(PLAN[0], {"tok_s": 8})
    with points.file.open("a") as lines:
        lines.write(line + "\n")
    told = sentence(store.read, points.file, Name, OURS.digest)
    assert told == f"{points.file}: line 2 holds no point with arm, c, repeat, fingerprint"


def test_a_point_that_is_there_twice_is_refused(tmp_path):
    with opened(tmp_path) as points:
        points.add(PLAN[0], {"tok_s": 8})
    points.file.write_text(points.file.read_text() * 2)
    told = sentence(store.read, points.file, Name, OTHER.digest)
    assert told == f"{points.file}: line 2 has full at 1, repeat 1 a second time"


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "points.jsonl").mkdir()
    told = sentence(store.read, tmp_path / "points.jsonl", Name, OURS.digest)
    assert told == f"{tmp_path / 'points.jsonl'} cannot be read: Is a directory"


def test_a_directory_that_cannot_be_one(tmp_path):
    (tmp_path / "file").touch()
    assert sentence(enter, tmp_path / "file") == f"{tmp_path / 'file'} cannot be written: File exists"


WRITE = """
import sys
from pathlib import Path
from blackwell.bench import store
from blackwell.bench.fingerprint import made
from blackwell.bench.points import Name
with store.writing(Path(sys.argv[1])) as writer:
    points = writer.open("points.jsonl", Name, made({"driver": "580.95"}))
    for clients in range(int(sys.argv[2]), 1000000):
        points.add(Name("full", clients, 1), {"filling": "x" * 100000})
        print(clients, flush=True)
"""


@contextmanager
def writing_process(directory, first=1):
    command = [sys.executable, "-c", WRITE, directory, str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=paths.ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_run_that_is_killed_while_it_writes_goes_on_with_what_is_missing(tmp_path):
    done = 0
    for _ in range(3):
        with writing_process(tmp_path, done + 1) as process:
            while int(process.stdout.readline()) < done + 5:
                pass
            process.send_signal(signal.SIGKILL)
            told = [int(line) for line in process.stdout]
        with opened(tmp_path) as points:
            kept = [name.c for name in points.points]
            # Everything that it said was written, and perhaps one more that it had no time to tell of.
            assert kept == list(range(1, len(kept) + 1))
            assert len(kept) in {(last := max([*told, done + 5])), last + 1}
            assert {len(content["filling"]) for content in points.points.values()} == {100000}
            done = len(kept)


def test_a_second_writer_is_refused_and_told_who_is_writing(tmp_path):
    with writing_process(tmp_path) as process:
        assert process.stdout.readline() == "1\n"
        told = sentence(enter, tmp_path)
        said = rf"{tmp_path} is being written by process {process.pid} since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC: "
        assert re.fullmatch(said + "wait for it, or name another directory", told)
        process.kill()
        process.wait()
        with opened(tmp_path) as points:
            assert Name("full", 1, 1) in points.points
            assert f"is being written by process {os.getpid()} since " in sentence(enter, tmp_path)


def test_a_writer_that_has_not_said_who_it_is(tmp_path):
    with store.writing(tmp_path):
        (tmp_path / ".lock").write_text("")
        told = sentence(enter, tmp_path)
    assert told == f"{tmp_path} is being written by another process: wait for it, or name another directory"


FULL = """
import resource, sys
from pathlib import Path
from blackwell.bench import durable
from blackwell.bench.errors import BenchError
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
for write in (durable.append, durable.replace):
    try:
        write(Path(sys.argv[1]), "x" * 200 if write is durable.append else b"x" * 200)
    except BenchError as error:
        print(error)
"""


def test_what_cannot_be_written_whole_leaves_the_file_as_it_was(tmp_path):
    file = tmp_path / "lines"
    durable.append(file, "first")
    done = subprocess.run(
        [sys.executable, "-c", FULL, file], capture_output=True, text=True, cwd=paths.ROOT, check=True
    )
    assert done.stdout == f"{file} cannot be written: File too large\n" * 2
    assert file.read_text() == "first\n"
    assert list(tmp_path.iterdir()) == [file]
    durable.append(file, "second")
    assert file.read_text() == "first\nsecond\n"


def test_every_line_and_the_name_of_its_file_are_on_the_disk_before_it_is_said(tmp_path, monkeypatch):
    synced = []

    def sync(handle):
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))

    monkeypatch.setattr(os, "fsync", sync)
    durable.append(tmp_path / "lines", "first")
    assert synced == [str(tmp_path / "lines"), str(tmp_path)]
    synced.clear()
    durable.replace(tmp_path / "lines", b"other\n")
    assert synced == [str(tmp_path / ".lines.new"), str(tmp_path)]
    synced.clear()
    durable.cut(tmp_path / "lines", 2)
    assert synced == [str(tmp_path / "lines")]
    assert (tmp_path / "lines").read_text() == "ot"


def test_a_directory_that_is_not_there(tmp_path):
    file = tmp_path / "no" / "lines"
    for write, data in ((durable.append, "line"), (durable.replace, b"data"), (durable.cut, 0)):
        assert sentence(write, file, data) == f"{file} cannot be written: No such file or directory"


def test_the_fingerprint_is_there_before_the_first_point(tmp_path, monkeypatch):
    written = []
    for name in ("append", "replace"):
        monkeypatch.setattr(durable, name, lambda file, _: written.append(file.name))
    with opened(tmp_path) as points:
        points.add(PLAN[0], {"tok_s": 8})
        points.add(PLAN[1], {"tok_s": 8})
    assert written == [f"{OURS.digest}.json", "points.jsonl", "points.jsonl"]
    assert json.loads(OURS.text)["parts"] == {"driver": "580.95"}
