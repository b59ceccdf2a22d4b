"""What on_host returned for a host with a server that runs, shortened, for tests to change."""

from blackwell.inventory import Host

HOST = Host("box", "10.0.0.1", inventory="/inv")

UNIT = {
    "MainPID": "6488",
    "Result": "success",
    "NRestarts": "0",
    "MemoryCurrent": "1073741824",
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "UnitFileState": "enabled",
    "StateChangeTimestamp": "@1795960334",
    "NeedDaemonReload": "no",
}
NOT_FOUND = UNIT | {
    "MainPID": "0",
    "MemoryCurrent": "[not set]",
    "LoadState": "not-found",
    "ActiveState": "inactive",
    "SubState": "dead",
    "UnitFileState": "",
    "StateChangeTimestamp": "",
}
ADDRESS = {"host": "127.0.0.1", "port": 30000}
GOOD = '{"deployment": "5f778176afecd71f", "release": "0.5.9-c1e502af0b3c.3"}\n'
RUNNING = '{"deployment": "5f778176afecd71f", "release": "0.5.9-c1e502af0b3c.3", "pid": 6488, "seconds": 64.9}\n'
PREVIOUS = '{"deployment": "b757bece3255c9fe", "release": "0.5.9-c1e502af0b3c.2"}\n'
RANK = {
    "last_gen_throughput": 3.9284362915038744,
    "effective_max_running_requests_per_dp": 8,
    "avg_spec_accept_length": 2.2375,
}
INFORMATION = {"served_model_name": "counting", "version": "0.5.9", "internal_states": [RANK]}
LOAD_STATE = {
    "version": 1,
    "tiers": [{"max_batch": 8, "steps": 3}, {"steps": 0}],
    "margin": 2,
    "dwell": 16,
    "captured_steps": [3, 0],
    "forced_steps": None,
    "steps": 3,
    "switches": 4,
    "rounds": {"3": 10, "0": 5},
}
# What a release with load policies reports on top.
BY_LOAD = {
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_disable_batch_threshold": 8,
    "max_running_requests": 32,
    "patch_tree": "c1e502af",
    "internal_states": [RANK | {"speculative_load_state": LOAD_STATE}],
}
QUEUE = {"dp_rank": None, "num_reqs": 5, "num_waiting_reqs": 2, "num_tokens": 70, "ts_tic": 2954.431902758}


def answer(body, status=200):
    return {"status": status, "seconds": 0.25, "body": body}


LOOK = {
    "now": 1795960714.8,
    "user": "root",
    "unit": UNIT,
    "address": ADDRESS,
    "running": {"text": RUNNING},
    "good": {"text": GOOD},
    "previous": {"text": PREVIOUS},
    "current": "/opt/sglang/releases/0.5.9-c1e502af0b3c.3",
    "disk": {"free": 75 * 2**30, "total": 250 * 2**30},
    "journal": [{"time": 1795960303.1, "text": "sglang.service: Failed with result 'exit-code'."}],
    "journal_readable": True,
    "health": answer(""),
    "information": answer(INFORMATION),
    "load": answer([QUEUE]),
}
