"""A sweep on servers that answer as SGLang does."""

import json
from contextlib import ExitStack

import pytest
from bench_fake import serving

from blackwell.bench import known_generator, store
from blackwell.bench.errors import BenchError
from blackwell.bench.fingerprint import made
from blackwell.bench.workload import Workload
from blackwell.sweep import cross_check, engine, events
from blackwell.sweep.cross_check import Checks
from blackwell.sweep.engine import Sweep
from blackwell.sweep.estimate import Guess
from blackwell.sweep.plan import Plan, Settings, expanded
from blackwell.sweep.points import Key
from blackwell.sweep.service import Server, TakenError

NEW = 10


def paces(steps, running):
    """Speculation pays up to four requests."""
    return 200 * (1 + steps) if running <= 4 else 200 / (1 + steps)


class Fakes:
    """The two servers of a sweep; ``dies``: the starts whose server ends after so many requests, by number from 1."""

    def __init__(self, stack, *, dies=None, stay_down=False, **settings):
        self.stack, self.dies, self.stay_down, self.settings = stack, dies or {}, stay_down, settings
        self.started, self.running, self.fakes = [], None, []

    def start(self, settings, *, speculates):
        assert self.running is None
        self.started.append((settings.name, speculates))
        dying = {"lose_from": self.dies[len(self.started)]} if len(self.started) in self.dies else {}
        options = {"steps": 2 if speculates else 0, "paces": paces} | self.settings | dying
        self.running = self.stack.enter_context(serving(**options))
        self.fakes.append(self.running)
        return Server(self.running.url, 1, 1.0)

    def stop(self):
        self.running = None

    def ended(self):
        if self.running.lose_from and self.running.requests >= self.running.lose_from:
            if self.stay_down:
                raise TakenError("sglang.service was started by somebody")
            return "it was killed"
        return None


def plan(arms=("baseline", "full", "plain", "dynamic"), **changes):
    values = {"levels": (1, 8), "contexts": (16,), "repeats": 2, "window_s": 0.1, "new_tokens": NEW}
    return Plan("run", "host", 2, tuple(expanded(arms, 2)), **(values | {"prompts": "random"} | changes))


class Swept:
    def __init__(self, directory, asked_plan, known=None, **fakes):
        self.directory, self.plan, self.known, self.fakes = directory, asked_plan, known, fakes

    def run(self):
        with ExitStack() as stack, store.writing(self.directory) as writer:
            kept = writer.open("points.jsonl", Key, made({"host": "one"}))
            self.servers = Fakes(stack, **self.fakes)
            checks = Checks(self.directory, asked, self.known) if self.known else None
            log = events.Events(self.directory)
            self.sweep = Sweep(self.plan, kept, self.servers, asked, log, Guess(1.0, 0.01), checks)
            self.sweep.run()
        return kept.points

    @property
    def events(self):
        return events.after(self.directory, 0)[0]


def asked(context, clients, repeat, client):
    return Workload(context, NEW).stream(clients, repeat, client)


def test_every_arm_is_measured_and_the_policy_is_proven(tmp_path):
    swept = Swept(tmp_path, plan())
    found = swept.run()
    assert swept.servers.started == [("deployed", False), ("deployed", True)]
    assert {(key.arm, key.c) for key in found if key.repeat == 1} == {
        (arm, c) for arm in ("baseline", "full", "plain") for c in (1, 8)
    }
    policy = next(event for event in swept.events if event["event"] == "policy")["policy"]
    assert [tier["steps"] for tier in policy["tiers"]] == ["full", 0]
    assert 1 <= policy["tiers"][0]["max_batch"] < 8
    levels = swept.sweep.levels("deployed", 16)
    assert [(level.c, level.best) for level in levels] == [(1, "full"), (8, "plain")]
    assert all(0.5 < level.ratio < 1.5 for level in levels)
    assert swept.events[-1]["event"] == "measured"
    assert swept.events[-1]["left_s"] == 0
    assert swept.events[-1]["done"] == swept.events[-1]["all"] == len(found)


def test_arms_are_what_was_held_and_caches_are_empty(tmp_path):
    swept = Swept(tmp_path, plan(("full", "plain", "reduced"), levels=(2,), contexts=(16, 32)))
    found = swept.run()
    assert swept.servers.started == [("deployed", True)]
    accepted = {(key.arm, point["acceptance"] and round(point["acceptance"], 1)) for key, point in found.items()}
    assert accepted == {("full", 1.8), ("reduced1", 1.8), ("plain", None)}
    assert swept.servers.fakes[0].flushed >= len(found)
    assert {len(body["input_ids"]) for body in swept.servers.fakes[0].bodies} == {16, 32}


def test_a_second_run_measures_what_is_missing_alone(tmp_path):
    first = Swept(tmp_path, plan()).run()
    lines = (tmp_path / "points.jsonl").read_text().splitlines(keepends=True)
    gone = json.loads(lines[2])
    (tmp_path / "points.jsonl").write_text("".join(lines[:2] + lines[3:]))
    again = Swept(tmp_path, plan())
    found = again.run()
    assert found.keys() == first.keys()
    assert again.servers.started == [("deployed", gone["arm"] != "baseline")]
    measured = [event for event in again.events if event["event"] == "point"][len(first) :]
    assert [(event["arm"], event["c"], event["repeat"]) for event in measured] == [
        (gone["arm"], gone["c"], gone["repeat"])
    ]


def test_a_server_that_ends_costs_a_point_and_not_the_sweep(tmp_path):
    swept = Swept(tmp_path, plan(("full", "plain"), levels=(2, 3)), dies={1: 30})
    found = swept.run()
    assert swept.servers.started == [("deployed", True)] * 2
    marked = [point["marked"] for point in found.values() if point["marked"]]
    assert marked == ["the server ended: it was killed"]
    assert [event["reason"] for event in swept.events if event["event"] == "died"] == ["it was killed"]


def test_a_server_that_was_started_again_is_warmed_again(tmp_path):
    swept = Swept(tmp_path, plan(("full", "plain"), levels=(2,), repeats=4), dies={1: 60})
    swept.run()
    told = [(event["event"], event.get("arm")) for event in swept.events if event["event"] in ("warm", "started")]
    again = told.index(("started", None), 1)
    assert told[:again] == [("started", None), ("warm", "full"), ("warm", "plain")]
    assert sorted(told[again + 1 :]) == [("warm", "full"), ("warm", "plain")]


def test_a_server_that_always_ends_fails_the_sweep(tmp_path):
    swept = Swept(tmp_path, plan(("full", "plain"), levels=(1, 2, 3)), lose_from=1)
    with pytest.raises(BenchError, match=f"servers ended {engine.MOST_DEATHS + 1} times in this sweep"):
        swept.run()
    assert swept.servers.running is None


def test_a_server_that_has_to_stay_down_ends_the_sweep_and_loses_no_point(tmp_path):
    swept = Swept(tmp_path, plan(("full", "plain"), levels=(1, 2)), dies={1: 60}, stay_down=True)
    with pytest.raises(TakenError, match="started by somebody"):
        swept.run()
    assert all(point["marked"] is None for point in swept.sweep.store.points.values())
    assert swept.servers.running is None


def test_points_that_do_not_count_give_no_policy_and_no_error(tmp_path):
    swept = Swept(tmp_path, plan(levels=(16,)), most=4)
    found = swept.run()
    assert all(point["marked"] for point in found.values())
    assert {key.arm for key in found} == {"baseline", "full", "plain"}
    (event,) = [event for event in swept.events if event["event"] == "no policy"]
    assert (
        "full and plain cannot be compared: at 16 clients no point of full and none of plain counts" in event["reason"]
    )
    assert swept.sweep.policies == {}


def test_a_level_that_will_not_count_is_warmed_once(tmp_path):
    swept = Swept(tmp_path, plan(("full", "plain"), levels=(2, 16)), most=4)
    swept.run()
    passes = [(event["arm"], event["c"], event["passes"]) for event in swept.events if event["event"] == "warm"]
    assert sorted(row for row in passes if row[1] == 16) == [("full", 16, 1), ("plain", 16, 1)]
    assert all(count > 1 for _, level, count in passes if level == 2)


def test_settings_have_servers_of_their_own(tmp_path):
    settings = (Settings(), Settings("ring", environment={"NCCL_ALGO": "Ring"}))
    swept = Swept(tmp_path, plan(("baseline", "full", "plain"), levels=(1,), repeats=1, settings=settings))
    found = swept.run()
    assert swept.servers.started == [
        ("deployed", False),
        ("deployed", True),
        ("ring", False),
        ("ring", True),
    ]
    assert {key.settings for key in found} == {"deployed", "ring"}


def test_each_server_is_checked_once_by_the_known_generator(tmp_path):
    seen = []

    def known(url, clients, stream, **_):
        seen.append((url, clients, len(next(stream(0))[0])))
        return known_generator.Found(100.0, clients, 1.0)

    swept = Swept(tmp_path, plan(("baseline", "full", "plain"), levels=(1, 2), repeats=1), known)
    swept.run()
    assert [clients for _, clients, _ in seen] == [2, 2]
    assert [url for url, _, _ in seen] == [fake.url for fake in swept.servers.fakes]
    found = json.loads((tmp_path / cross_check.FILE).read_text())
    assert [(one["arm"], one["c"], one["bench_serving_tok_s"]) for one in found] == [
        ("baseline", 2, 100),
        ("full", 2, 100),
    ]
    assert all(one["ratio"] == round(one["tok_s"] / 100, 3) for one in found)
    assert swept.servers.fakes[1].forced == 2
    again = Swept(tmp_path, swept.plan, known)
    again.run()
    assert len(seen) == 2
    assert again.servers.started == []


def test_a_check_that_fails_costs_no_point(tmp_path):
    def known(*_, **__):
        raise BenchError("sglang.bench_serving failed: no such option")

    swept = Swept(tmp_path, plan(("full", "plain"), levels=(1,), repeats=1), known)
    assert len(swept.run()) == 2
    (found,) = json.loads((tmp_path / cross_check.FILE).read_text())
    assert (found["problem"], found["ratio"]) == ("sglang.bench_serving failed: no such option", None)
