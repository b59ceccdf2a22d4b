"""The program that compares speeds: its options, its plan, and a run against servers whose pace is known."""

import itertools
import json
import os
import threading
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from bench_fake import serving

from blackwell.bench import points, raw, table
from blackwell.bench.errors import BenchError
from blackwell.bench.fingerprint import made
from blackwell.bench.load import Length
from blackwell.bench.points import ARMS, Name, Origin
from blackwell.bench.records import Measurement, Poll, Record
from blackwell.bench.steps import Phase
from blackwell.bench.workload import Workload


@pytest.fixture(scope="module")
def gpu(load):
    """The program's modules."""
    speed = load("tests/gpu/speed.py")
    names = ("speed_files", "speed_options", "speed_plan", "speed_run", "speed_servers", "server")
    return SimpleNamespace(speed=speed, **{name: __import__(name) for name in names})


def run(gpu, capsys, *arguments):
    """Exit status, output and errors of the command."""
    try:
        status = gpu.speed.main([str(argument) for argument in arguments])
    except SystemExit as error:
        status = error.code
    return status, *capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--levels", "0"], "--levels: 0 is no number of clients from 1"),
        (["--levels", "257"], "--levels: 257 is more than the 256 requests that a server decodes at once"),
        (["--levels", "1", "1"], "--levels: 1 is there twice"),
        (["--levels", "many"], "argument --levels: invalid int value: 'many'"),
        (["--arms", "fast"], "--arms: fast is none of base, full_stock, full, plain, reduced1, reduced2, dynamic"),
        (["--arms", "dynamic", "full"], "--arms: dynamic needs full and plain, by which its threshold is found"),
        (["--repeats", "0"], "--repeats is 0, not above 0"),
        (["--seconds-budget", "0"], "--seconds-budget is 0.0, not above 0"),
        (["--tp", "3"], "--tp is 3, and the models can be shared by 1, 2, 4, 8 cards"),
        (["--memory", "1"], "--memory is 1.0, not a share below 1"),
        (
            ["--mixed", "--new-tokens", "256"],
            "250 requests of up to 640 tokens do not fit into the 131072 tokens of the KV cache",
        ),
        (
            ["--levels", "1", "--prompt-tokens", "1000"],
            "120 requests of up to 1192 tokens do not fit into the 131072 tokens of the KV cache",
        ),
        (
            ["--mixed", "--new-tokens", "8000"],
            "a request of up to 12256 tokens is longer than the model's context of 8192",
        ),
        ([], "--stock is '/nowhere', where there is no sglang package"),
        (["--stock", ""], "--stock is missing: base and full_stock are measured on the unpatched SGLang that it finds"),
    ],
)
def test_nonsense_is_refused_with_one_sentence_before_anything_starts(gpu, capsys, tmp_path, arguments, said):
    out = tmp_path / "out"
    assert run(gpu, capsys, out, "--stock", "/nowhere", *arguments) == (2, "", f"speed.py: {said}\n")
    assert not out.exists()


def package(folder, *, patched):
    speculative = folder / "sglang" / "srt" / "speculative"
    speculative.mkdir(parents=True)
    (folder / "sglang" / "__init__.py").touch()
    if patched:
        (speculative / "load_policy.py").touch()
        (folder / "sglang" / "_patch_tree").write_text("7ree\n")
    return str(folder)


def test_packages_are_told_apart(gpu, tmp_path, monkeypatch):
    stock, patched = package(tmp_path / "stock", patched=False), package(tmp_path / "patched", patched=True)
    monkeypatch.setenv("PYTHONPATH", f"/nowhere{os.pathsep}{patched}")
    wanted = ["base", "stock", "patched"]
    assert gpu.speed.trees(stock, wanted) == {"base": "", "stock": "", "patched": "7ree"}
    with pytest.raises(BenchError) as caught:
        gpu.speed.trees(patched, wanted)
    assert str(caught.value) == f"--stock is '{patched}', whose sglang is patched"
    monkeypatch.setenv("PYTHONPATH", stock)
    with pytest.raises(BenchError) as caught:
        gpu.speed.trees(stock, wanted)
    assert str(caught.value) == f"PYTHONPATH is '{stock}', whose sglang is not patched"


def test_a_dry_run_prints_the_plan_and_starts_nothing(gpu, capsys, tmp_path):
    status, said, errors = run(gpu, capsys, tmp_path / "out", "--stock", "/nowhere", "--dry-run", "--levels", "1", "30")
    first, *names = said.splitlines()
    assert (status, errors) == (0, "")
    assert first.startswith(
        "3 servers (base, stock, patched), 12 points for the threshold, then 42 points of 7 arms at levels 1, 30, then "
    )
    assert first.endswith(" minutes, by guesses")
    assert len(names) == 12 + 42
    assert not (tmp_path / "out").exists()


def test_the_order_of_the_points(gpu):
    plan = gpu.speed_plan.Plan()
    names = plan.points()
    assert len(set(names)) == len(names) == 7 * 8 * 3
    assert {name.repeat for name in names[:56]} == {1}
    for level in plan.levels:
        orders = [[n.arm for n in names if (n.c, n.repeat) == (level, repeat)] for repeat in (1, 2, 3)]
        assert len({order[0] for order in orders}) > 1
        after = [dict(itertools.pairwise(order)) for order in orders]
        assert all(len({follower.get(arm) for follower in after}) > 1 for arm in ARMS)


def test_only_the_dynamic_arm_needs_a_calibration(gpu):
    names = gpu.speed_plan.Plan(levels=(1, 30)).calibration()
    assert len(names) == 2 * 2 * 3
    assert {(name.arm, name.c, name.repeat) for name in names} == set(
        itertools.product(("full", "plain"), (1, 30), (1, 2, 3))
    )
    assert gpu.speed_plan.Plan(arms=("full", "plain")).calibration() == []


def test_the_calibration_has_short_windows(gpu):
    long = gpu.speed_plan.Plan(window_s=6.0, window_lives=4.0, repeats=5)
    assert long.of_calibration() == gpu.speed_plan.Plan(window_s=2.0, window_lives=1.0, repeats=5)
    short = gpu.speed_plan.Plan(window_s=0.5, window_lives=0.7)
    assert short.of_calibration() == short


def calibrated(gains):
    """Rows of the calibration: by level, how many times as fast ``full`` was, repeat by repeat."""
    return [
        {"arm": arm, "c": level, "repeat": repeat, "tok_s": speed, "marked": None}
        for level, ratios in gains.items()
        for repeat, ratio in enumerate(ratios, 1)
        for arm, speed in (("full", 100.0 * ratio), ("plain", 100.0))
    ]


@pytest.mark.parametrize(
    ("gains", "levels"),
    [
        pytest.param({1: [2, 2, 2], 10: [1.1, 1.1, 1.1]}, [], id="wins everywhere"),
        pytest.param({1: [2, 2, 2], 10: [1.2, 1.1, 1.3], 30: [0.8, 0.9, 0.7], 70: [0.5] * 3}, [10, 30], id="crosses"),
        pytest.param({1: [2, 2, 2], 10: [1.1] * 3, 30: [1.1, 0.9, 1.2], 70: [0.5] * 3}, [10, 30, 70], id="split"),
        pytest.param({1: [2, 0.9, 2]}, [1], id="alone"),
        # A tie is no win.
        pytest.param({1: [2, 2, 2], 10: [1, 1, 1]}, [1, 10], id="tie"),
        pytest.param({}, [], id="nothing counts"),
    ],
)
def test_levels_that_the_calibration_leaves_in_doubt_are_measured_again(gpu, gains, levels):
    plan = gpu.speed_plan.Plan()
    names = plan.in_doubt(calibrated(gains))
    assert len(names) == len(set(names)) == 2 * len(levels) * gpu.speed_plan.MORE_REPEATS
    assert sorted({name.c for name in names}) == levels
    assert {name.repeat for name in names} == ({4, 5, 6, 7} if levels else set())


def test_what_is_measured_again_leaves_nothing_else_in_doubt(gpu):
    plan = gpu.speed_plan.Plan()
    rows = calibrated({10: [1.2] * 3, 30: [0.8] * 3, 70: [0.5] * 3})
    more = [row for row in calibrated({70: [1.5] * 7}) if row["repeat"] > 3]
    assert plan.in_doubt([*rows, *more]) == plan.in_doubt(rows)


def test_the_estimate_of_a_whole_run_counts_a_warm_up_once(gpu):
    plan = gpu.speed_plan.Plan(arms=("full", "plain", "dynamic"), levels=(1,), repeats=1, window_s=6.0)
    life = plan.guess("full", 1)
    calibrating = 2 * (gpu.speed_plan.WARM_UP.seconds + 0.5 + life) + 2 * (0.5 + life * (1 + round(2 / life)))
    calibrating += 4 * 2 * (0.5 + life * (1 + round(2 / life)))
    points = gpu.speed_plan.WARM_UP.seconds + 0.5 + life + 3 * (0.5 + life * (1 + round(6 / life)))
    assert gpu.speed_plan.all_seconds(plan) == pytest.approx(calibrating + points)


def test_the_estimate_of_equal_answers(gpu):
    plan = gpu.speed_plan.Plan(arms=("base", "full"), levels=(1, 100), repeats=2)
    life = {1: 1.0, 100: 4.0}
    # Ramp of one life, a window of 2 lives (2.5 s, or 1.5 lives, in whole ones), and 0.5 s; the same four warm-ups.
    wanted = 4 * (1 + 2 + 0.5) + 4 * (4 + 8 + 0.5) + 2 * (1 + 1) + 2 * (4 + 1)
    assert gpu.speed_plan.seconds(plan, plan.points(), lambda _, level: life[level], {}) == pytest.approx(wanted)


def test_the_estimate_of_mixed_answers(gpu):
    plan = gpu.speed_plan.Plan(arms=("base", "full"), levels=(1, 100), repeats=2, workload=Workload(mixed=True))
    life = {1: 1.0, 100: 4.0}
    # Ramp of 1.5 lives, a window of 2.5 s or 1.5 lives, and 0.5 s; four warm-ups with 0.5 s in place of the window.
    wanted = 4 * (1.5 + 2.5 + 0.5) + 4 * (6 + 6 + 0.5) + 2 * (1.5 + 1) + 2 * (6 + 1)
    assert gpu.speed_plan.seconds(plan, plan.points(), lambda _, level: life[level], {}) == pytest.approx(wanted)


def test_what_is_set_for_an_arm(gpu):
    forced = [gpu.speed_servers.change(arm, 7) for arm in ("full", "plain", "reduced1", "reduced2")]
    assert forced == [{"speculative_force_steps": steps} for steps in (3, 0, 1, 2)]
    released = {"speculative_force_steps": None}
    threshold = "speculative_disable_batch_threshold"
    assert gpu.speed_servers.change("dynamic", 7) == released | {threshold: 7}
    assert gpu.speed_servers.change("dynamic", None) == released | {threshold: 0}  # always
    never = {"version": 1, "tiers": [{"steps": 0}]}
    assert gpu.speed_servers.change("dynamic", 0) == released | {"speculative_load_policy": never}


def test_the_servers(gpu, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/patched")
    settings = gpu.speed_servers.Settings("/stock", tp=2, by_steps=True)
    servers = gpu.speed_servers.made(settings, ["base", "stock", "patched"], tmp_path, tmp_path)
    base, stock, patched = (" ".join(server.command) for server in servers.values())
    for command in (base, stock, patched):
        assert "--cuda-graph-max-bs 256 --max-running-requests 256 " in command
        assert "--max-total-tokens 131072 " in command
        assert "--tp-size 2 " in command
    assert [("--speculative-algorithm" in command) for command in (base, stock, patched)] == [False, True, True]
    assert [("--speculative-load-policy" in command) for command in (base, stock, patched)] == [False, False, True]
    paths = [server.environment["PYTHONPATH"].split(os.pathsep)[-1] for server in servers.values()]
    assert paths == ["/stock", "/stock", "/patched"]
    simulated = [server.environment.get("SGLANG_SIMULATE_ACC_LEN") for server in servers.values()]
    assert simulated == [None, "2.88", "2.88"]
    assert {server.environment["NCCL_NVLS_ENABLE"] for server in servers.values()} == {"0"}
    assert len({server.port for server in servers.values()}) == 3


def test_if_one_of_the_servers_does_not_start_none_is_left(gpu):
    ended, other_ended = [], threading.Event()

    class Fake:
        def __init__(self, name, *, fails):
            self.name, self.fails = name, fails

        def __enter__(self):
            if self.fails:
                raise gpu.server.ServerError("not ready")
            # As one that is still starting: until it is ended.
            assert other_ended.wait(10)

        def stop(self):
            ended.append(self.name)
            other_ended.set()

    servers = [Fake("slow", fails=False), Fake("broken", fails=True)]
    with pytest.raises(gpu.server.ServerError, match="not ready"), gpu.server.side_by_side(*servers):
        raise AssertionError("the block began")
    assert ended == ["slow", "broken"]


def test_a_server_that_decodes_fewer_requests_at_once_is_refused(gpu):
    capped = SimpleNamespace(state=lambda: {"effective_max_running_requests_per_dp": 48, "memory_usage": {}})
    with pytest.raises(gpu.server.ServerError) as caught:
        gpu.speed_servers.checked("stock", capped, "")
    assert str(caught.value) == "stock decodes 48 requests at once, not 256: it would hold the load back"


def test_acceptance_by_steps(load, monkeypatch):
    monkeypatch.syspath_prepend("standin/src")
    hook = load("tests/gpu/acceptance_by_steps/sitecustomize.py")
    asked = []
    module = SimpleNamespace(generate_simulated_accept_index=lambda **arguments: asked.append(arguments))
    hook.patch(module)
    for steps in (1, 2, 3):
        module.generate_simulated_accept_index(bs=1, spec_steps=steps, simulate_acc_len=2.88)
    assert [round(found["simulate_acc_len"], 2) for found in asked] == [1.78, 2.4, 2.88]


class Patched:
    """Drives a fake server as the patched one is driven: a pace for each forced number of steps."""

    def __init__(self, fake, *, deaf=False):
        self.fake, self.url, self.deaf = fake, fake.url, deaf
        self.forced, self.switches, self.changes = None, 0, []

    def change(self, **values):
        self.changes.append(values)
        if not self.deaf:
            self.forced = values["speculative_force_steps"]
        self.switches += 1
        self.fake.pace = {3: 400.0, 2: 350.0, 1: 300.0, 0: 200.0, None: 400.0}[self.forced]

    def state(self):
        return {"speculative_load_state": {"forced_steps": self.forced, "switches": self.switches}}


PLAN = {
    "levels": (1, 4),
    "repeats": 2,
    "window_s": 0.1,
    "window_lives": 0.1,
    "workload": Workload(prompt_tokens=4, new_tokens=8),
}


@pytest.fixture
def runs(gpu, tmp_path, monkeypatch):
    """Makes runs that go on in one directory, against three fakes."""
    monkeypatch.setattr(gpu.speed_run, "PHASES", (Phase(1, 0.1), Phase(4, 0.1)))
    monkeypatch.setattr(gpu.speed_run, "WARM_UP", Length(0.05))
    with ExitStack() as stack, ExitStack() as before:
        fakes = {name: stack.enter_context(serving(pace=200.0)) for name in ("base", "stock", "patched")}

        def begun(*, resume=False, patched=None, until=float("inf"), **plan):
            # The run before has ended, as far as the directory can tell.
            before.close()
            kept = before.enter_context(gpu.speed_files.begun(tmp_path, {"tp": 1}, resume=resume))
            kept.started({"base": {}})
            servers = {name: SimpleNamespace(url=fake.url) for name, fake in fakes.items()}
            servers["patched"] = patched or Patched(fakes["patched"])
            said = []
            plan = gpu.speed_plan.Plan(**(PLAN | plan))
            origins = {name: Origin("c0ffee", name, "card") for name in servers}
            made = gpu.speed_run.Run(plan, kept, servers, origins, said.append, until)
            return SimpleNamespace(run=made, said=said, patched=servers["patched"], fakes=fakes, out=tmp_path)

        yield begun


def test_a_whole_run(gpu, runs, capsys):
    it = runs(levels=(4,))
    assert gpu.speed.measure(it.run, steps=True) == 0
    rows = points.read(it.out / "rows.json")
    assert [points.name(row) for row in rows] == it.run.plan.points()
    assert {row["patch_tree"] for row in rows if row["arm"] == "base"} == {"base"}
    assert {row["patch_tree"] for row in rows if row["arm"] == "dynamic"} == {"patched"}
    assert points.recomputed(rows, raw.read(it.out / "requests.jsonl.gz")) == rows
    assert (it.out / "table.md").read_text() == table.render(rows) == capsys.readouterr().out
    calibration = points.read(it.out / "calibration.json")
    assert [points.name(row) for row in calibration] == it.run.plan.calibration()
    assert points.recomputed(calibration, raw.read(it.out / "calibration-requests.jsonl.gz")) == calibration
    assert not list(it.out.glob("*.jsonl"))
    # The fake is twice as fast with all steps as with none, at any load.
    assert it.run.threshold is None
    assert "speculation pays at every level" in it.said
    steps = json.loads((it.out / "steps.json").read_text())
    assert list(steps["results"]) == ["base", "full", "plain", "dynamic"]
    assert steps["results"]["base"]["switches"] is None
    assert sum(line.startswith("warm-up") for line in it.said) == 7
    assert sum(" tok/s in " in line for line in it.said) == len(calibration) + len(rows)


def test_a_run_goes_on_with_what_is_missing(gpu, runs):
    it = runs(arms=("base",), repeats=1)
    assert gpu.speed.measure(it.run, steps=False) == 0
    before = points.read(it.out / "rows.json")
    it = runs(resume=True, arms=("base", "plain"), repeats=1)
    assert gpu.speed.measure(it.run, steps=False) == 0
    after = points.read(it.out / "rows.json")
    assert after[:2] == before
    assert {points.name(row) for row in after[2:]} == {Name("plain", 1, 1), Name("plain", 4, 1)}
    assert len(json.loads((it.out / "servers.json").read_text())["starts"]) == 2


def test_a_killed_run_keeps_what_it_has(runs):
    it = runs(arms=("base",), repeats=3)

    class KilledError(BaseException):
        pass

    def say(line):
        if "base at 1, repeat 2:" in line:
            raise KilledError

    it.run.say = say
    with pytest.raises(KilledError):
        it.run.points()
    # Killed before it wrote the row of one, and while it wrote the next one.
    rows = points.read(it.out / "rows.json")
    points.write(it.out / "rows.json", rows[:-1])
    with (it.out / "requests.jsonl").open("a") as lines:
        lines.write('{"arm":"base","c":4,"repeat":2,"fingerpr')
    it = runs(resume=True, arms=("base",), repeats=3)
    assert it.run.kept.compared.rows == points.read(it.out / "rows.json") == rows
    assert len(rows) == 3
    left = [Name("base", 4, 2), Name("base", 1, 3), Name("base", 4, 3)]
    assert it.run.kept.compared.missing(it.run.plan.points()) == left


MEASURED = Measurement((0.0, 1.0), [Poll(0.5, 1, 0)], [Record(0, 0.0, 1.0, 5, 0, aborted=False)])


def test_it_stops_before_a_point_that_does_not_fit_into_the_budget(gpu, runs, capsys):
    it = runs(until=0.0)
    assert gpu.speed.measure(it.run, steps=True) == 3
    assert not (it.out / "rows.json").exists()
    assert "the time is up; go on with --resume" in capsys.readouterr().out


def test_a_directory_that_holds_something(gpu, runs, tmp_path):
    it = runs(arms=("base",), repeats=1)
    it.run.points()
    with pytest.raises(BenchError) as caught:
        runs()
    assert str(caught.value) == f"{tmp_path} holds rows.json already: name another directory, or go on with --resume"
    with pytest.raises(BenchError) as caught:
        gpu.speed_files.begun(tmp_path, {"tp": 2}, resume=True).__enter__()
    assert str(caught.value) == (
        f"{tmp_path}/requests.jsonl keeps 2 points of fingerprint {made({'tp': 1}).digest[:12]}, not counted here: "
        "tp was 1, it is 2: name another directory"
    )


def test_two_runs_into_one_directory(gpu, runs, tmp_path):
    runs(arms=("base",))
    with pytest.raises(BenchError) as caught:
        gpu.speed_files.begun(tmp_path, {"tp": 1}, resume=True).__enter__()
    assert str(caught.value).startswith(f"{tmp_path} is being written by process {os.getpid()} since ")


def test_points_that_do_not_say_what_they_were_measured_on(runs):
    it = runs(arms=("base",), repeats=1)
    it.run.kept.compared.store.add(Name("base", 1, 1), raw.content(MEASURED))
    with pytest.raises(BenchError) as caught:
        runs(resume=True)
    assert str(caught.value) == "base at 1, repeat 1 does not say what it was measured on"


@pytest.mark.parametrize("text", ["{", "[]", '{"starts": 1}'])
def test_a_directory_that_does_not_say_which_servers_started(runs, text):
    it = runs(arms=("base",), repeats=1)
    it.run.points()
    (it.out / "servers.json").write_text(text)
    with pytest.raises(BenchError) as caught:
        runs(resume=True)
    said = "cannot be read: Expecting property name" if text == "{" else "does not say which servers started"
    assert str(caught.value).startswith(f"{it.out}/servers.json {said}")


def test_a_server_that_fails_ends_the_run_with_the_point(gpu, runs):
    it = runs(arms=("base",), repeats=1)
    it.fakes["base"].fail_from = 1
    with pytest.raises(BenchError) as caught:
        gpu.speed.measure(it.run, steps=False)
    url = it.fakes["base"].url
    assert str(caught.value) == f"base at 1, repeat 0: {url}: /generate answered 500: out of memory"


def test_a_setting_that_is_not_in_force_ends_the_run(gpu, runs):
    with serving() as fake:
        it = runs(arms=("plain",), patched=Patched(fake, deaf=True))
        with pytest.raises(gpu.server.ServerError, match="is not in force: forced_steps is None"):
            it.run.points()


def test_a_crossing_is_measured_again_before_it_counts(runs):
    it = runs(arms=("full", "plain", "dynamic"), repeats=1)
    for level, full in ((1, 400.0), (4, 100.0)):
        for arm, speed in (("full", full), ("plain", 200.0)):
            it.run.kept.calibration.add(Name(arm, level, 1), MEASURED, Origin())
            it.run.kept.calibration.rows[-1] |= {"tok_s": speed, "marked": None}
    it.run.points()
    repeats = [(name.c, name.arm, name.repeat) for name in map(points.name, it.run.kept.calibration.rows)]
    assert sorted(repeats) == sorted(itertools.product((1, 4), ("full", "plain"), range(1, 6)))
    assert {row["repeat"] for row in it.run.kept.compared.rows} == {1}


def test_a_killed_calibration_goes_on(runs):
    it = runs(arms=("full", "plain", "dynamic"), repeats=1, levels=(1,), until=0.0)
    row = points.row(Name("full", 1, 1), MEASURED, Origin())
    it.run.kept.calibration.add(Name("full", 1, 1), MEASURED, Origin())
    it = runs(resume=True, arms=("full", "plain", "dynamic"), repeats=1, levels=(1,))
    assert it.run.kept.calibration.rows == [row]
    it.run.points()
    assert [found["arm"] for found in points.read(it.out / "calibration.json")] == ["full", "plain"]


def test_the_threshold_of_the_calibration_is_set_and_the_step_load_has_no_hysteresis_once(runs):
    it = runs(arms=("full", "plain", "dynamic"), repeats=1)
    # With the repeats of both levels of the crossing.
    for repeat, (level, full) in itertools.product(range(1, 6), ((1, 400.0), (4, 100.0))):
        for arm, speed in (("full", full), ("plain", 200.0)):
            it.run.kept.calibration.add(Name(arm, level, repeat), MEASURED, Origin())
            it.run.kept.calibration.rows[-1] |= {"tok_s": speed, "marked": None}
    it.run.points()
    assert it.run.threshold == 1
    assert len(it.run.kept.calibration.rows) == 20
    released = {"speculative_force_steps": None}
    assert released | {"speculative_disable_batch_threshold": 1} in it.patched.changes
    it.run.step_load()
    steps = json.loads((it.out / "steps.json").read_text())
    assert list(steps["results"])[-1] == "dynamic_without_hysteresis"
    assert it.patched.changes[-1]["speculative_load_policy"]["dwell"] == 1


def test_more_cards_than_there_are_are_refused_before_anything_starts(gpu, capsys, tmp_path, monkeypatch):
    stock, patched = package(tmp_path / "stock", patched=False), package(tmp_path / "patched", patched=True)
    monkeypatch.setenv("PYTHONPATH", patched)
    monkeypatch.setattr(gpu.speed.machine, "cards", lambda: ["NVIDIA H200, 580.1"] * 2)
    out = tmp_path / "out"
    said = "speed.py: --tp is 4, and nvidia-smi shows 2 cards\n"
    assert run(gpu, capsys, out, "--stock", stock, "--tp", "4") == (2, "", said)
    assert not out.exists()
