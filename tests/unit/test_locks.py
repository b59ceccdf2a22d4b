"""Locks: held against other processes, and gone with their holder."""

import subprocess
import sys
from pathlib import Path

import pytest

from blackwell import locks, paths

HOLDER = """
import sys
from pathlib import Path
from blackwell import locks
path = Path(sys.argv[1])
with locks.held(path):
    print("held", flush=True)
    sys.stdin.readline()
    path.unlink()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds a lock; it removes the file and lets go when it reads a line."""
    command = [sys.executable, "-c", HOLDER, tmp_path / "lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=paths.ROOT) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_lock_is_held_against_other_processes_and_ends_with_its_holder(tmp_path, holder):
    waited = []

    def kill_holder():
        waited.append(holder.poll())
        holder.kill()

    with locks.held(tmp_path / "lock", kill_holder):
        assert holder.wait(5) == -9
    assert waited == [None]


def test_who_waited_for_a_lock_that_its_holder_removed_takes_the_new_one(tmp_path, holder):
    def release():
        holder.stdin.write(b"\n")
        holder.stdin.flush()

    with locks.held(tmp_path / "lock", release) as handle:
        assert Path(f"/proc/self/fd/{handle}").readlink() == tmp_path / "lock"
