"""The processes of an all-reduce, with programs that stand for a rank."""

import os
import signal
import textwrap

import pytest

from blackwell.interconnect import ranks

TOLD = """
import json, sys, time
rank, total, kind, store, sizes = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], json.loads(sys.argv[5])
def tell(stage, **found):
    print(json.dumps({"stage": stage, **found}), flush=True)
"""


def ran(body, *, total=2, seconds=30.0):
    return ranks.run(TOLD + textwrap.dedent(body), total, "cpu", [4, 8], seconds)["ranks"]


def test_each_rank_is_told_who_it_is_and_says_how_far_it_came():
    found = ran("tell('begun', rank=rank, total=total, kind=kind, sizes=sizes); tell('done')", total=3)
    begun = [{"stage": "begun", "rank": rank, "total": 3, "kind": "cpu", "sizes": [4, 8]} for rank in range(3)]
    assert [rank["told"] for rank in found] == [[row, {"stage": "done"}] for row in begun]
    assert [rank["status"] for rank in found] == [0, 0, 0]


def test_all_meet_in_one_file_that_is_not_there_yet():
    found = ran("import os; tell(store); tell(os.path.exists(store))")
    (first, new), (second, _) = ([row["stage"] for row in rank["told"]] for rank in found)
    assert (first, new) == (second, False)


def test_one_that_hangs_is_ended_with_the_rest():
    found = ran(
        """
        import os
        tell(str(os.getpid()))
        if rank:
            import signal; signal.pause()
        """,
        seconds=3.0,
    )
    assert [rank["status"] for rank in found] == [0, None]
    with pytest.raises(ProcessLookupError):
        os.kill(int(found[1]["told"][0]["stage"]), 0)


def test_one_that_fails_does_not_keep_the_others_waiting():
    found = ran(
        """
        import signal
        if rank == 0:
            raise ValueError("no peers")
        signal.pause()
        """,
        seconds=600.0,
    )
    assert [rank["status"] for rank in found] == [1, None]
    assert found[0]["said"].endswith("ValueError: no peers\n")


def test_one_that_is_killed_says_by_what():
    found = ran("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert -signal.SIGKILL in [rank["status"] for rank in found]


def test_what_is_no_json_does_not_count_and_the_last_words_are_cut():
    found = ran("print('NCCL version 2'); sys.stderr.write('x' * 5000 + 'end'); tell('done')")
    assert [rank["told"] for rank in found] == [[{"stage": "done"}]] * 2
    assert [len(rank["said"]) for rank in found] == [ranks.LAST_WORDS] * 2
    assert found[0]["said"].endswith("xend")
