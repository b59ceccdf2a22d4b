"""What is kept of a point, by measurements that are made up."""

import json

import pytest

from blackwell.bench import policy
from blackwell.bench.records import Measurement, Poll, Record
from blackwell.sweep import points
from blackwell.sweep.points import Key

MACHINE = {"kv_tokens": 4096, "power_w": 512.5, "sm_mhz": None, "temperature_c": None, "note": None}


def busy(clients, *, running=None, verified=0, seconds=4.0):
    """Clients that each have an answer of 10 tokens a second, one after the other; the window is the middle."""
    records = [
        Record(client, float(second), second + 1.0, 10, verified, aborted=False)
        for client in range(clients)
        for second in range(int(seconds))
    ]
    running = clients if running is None else running
    return Measurement((1.0, seconds - 1), [Poll(at / 2, running, clients - running) for at in range(2, 6)], records)


def key(arm="full", c=4, repeat=1, **more):
    return Key(**({"settings": "deployed", "context": 64, "arm": arm, "c": c, "repeat": repeat} | more))


def test_a_point_has_what_its_records_say():
    found = points.content(key(), busy(4, verified=5), MACHINE, 1000.04)
    assert (found["tok_s"], found["user_tok_s"]) == (40.0, 10.0)
    assert (found["answer_s_p50"], found["answer_s_p95"]) == (1.0, 1.0)
    assert found["acceptance"] == 1.8
    assert (found["running_batch"], found["queued"], found["in_flight_min"]) == (4, 0, 4)
    assert (found["kv_tokens"], found["power_w"], found["began"]) == (4096, 512.5, 1000.0)
    assert found["marked"] is None
    assert len(found["records"]) == 16
    json.dumps(found)


def test_the_acceptance_of_the_policy_means_nothing():
    assert points.content(key("dynamic"), busy(4, verified=5), MACHINE, 0)["acceptance"] is None
    assert points.content(key("plain"), busy(4), MACHINE, 0)["acceptance"] is None


@pytest.mark.parametrize(
    ("clients", "running", "marked"),
    [
        (10, 8, None),
        (10, 7, "over-saturated: the server decoded 7 of 10 requests, the others waited in its queue"),
        (1, 0, "over-saturated: the server decoded 0 of 1 requests, the others waited in its queue"),
        (250, 8, "over-saturated: the server decoded 8 of 250 requests, the others waited in its queue"),
    ],
)
def test_a_level_whose_requests_wait_is_marked(clients, running, marked):
    assert points.content(key(c=clients), busy(clients, running=running), MACHINE, 0)["marked"] == marked


def test_a_client_that_was_idle_is_the_first_reason():
    measurement = busy(3, running=1)
    assert points.content(key(c=4), measurement, MACHINE, 0)["marked"].startswith("only 3 of 4 requests were in flight")


def test_rows_are_those_of_one_setting_and_context():
    found = {
        key(arm, c, repeat): points.content(key(arm, c, repeat), busy(c, verified=5), MACHINE, 0)
        for arm in ("full", "plain", "baseline")
        for c in (1, 4)
        for repeat in (1, 2)
    }
    others = [key(settings="ring"), key(context=128)]
    mixed = found | {other: found[key()] | {"tok_s": 1e6} for other in others}
    rows = points.rows(mixed, "deployed", 64, ("full", "plain"))
    assert {(row["arm"], row["c"], row["repeat"]) for row in rows} == {
        (arm, c, repeat) for arm in ("full", "plain") for c in (1, 4) for repeat in (1, 2)
    }
    assert policy.derive(rows).policy["tiers"] == [{"steps": 0}]
    assert points.contexts(mixed) == [("deployed", 64), ("ring", 64), ("deployed", 128)]


def test_a_point_is_named_in_words():
    assert str(key("plain", 10, 3)) == "plain at 10, repeat 3, 64 tokens, settings deployed"
