"""Waves of two servers: each is warmed, timed without the profiler and profiled, in turn."""

import types

import pytest


@pytest.fixture
def waves(load):
    load("tests/gpu/run.py")
    return load("tests/gpu/waves.py")


def test_servers_take_turns_and_a_profiled_wave_is_not_timed(waves, tmp_path, monkeypatch):
    said = []

    def server(name):
        return types.SimpleNamespace(port=name, profile=lambda *asked: said.append(("profile", name, asked[1])))

    def together(port, clients, asked):
        assert {(len(prompt), new) for prompt, new in asked} == {(256, 128)}
        said.append(("wave", port, clients))
        return [{"began": 1.0, "ended": 1.0 + len(said)}] * clients

    def events(_):
        return [
            {"cat": "kernel", "ts": at, "dur": 1, "name": name}
            for at, name in ((0, "_fwd_kernel"), *((at, "_fwd_grouped_kernel_stage1") for at in range(10, 74)))
        ]

    monkeypatch.setattr(waves, "together", together)
    monkeypatch.setattr(waves.profiles, "await_trace", events)
    place = types.SimpleNamespace(out=tmp_path)
    found = waves.at_level(place, {"base": server("base"), "plain": server("plain")}, 3)
    warm = [("wave", "base", 3), ("wave", "plain", 3)]
    turn = [
        one
        for name in ("base", "plain")
        for one in (("wave", name, 3), ("profile", name, waves.ROUNDS), ("wave", name, 3))
    ]
    assert said == [*warm, *turn, *turn]
    assert found["base"]["seconds"] == [3.0, 9.0]
    assert [part["rounds"] for part in found["plain"]["decode"]] == [2, 2]
    assert [part["launches"] for part in found["plain"]["prefill"]] == [1, 1]


def test_a_wave_always_holds_the_rounds_that_are_profiled(waves):
    assert waves.Workload().new_tokens > waves.ROUNDS
