"""The program that runs scenarios on a machine with cards: its options, its servers on several cards, its verdicts."""

from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import pytest


@pytest.fixture(scope="module")
def gpu(load):
    """The program's modules."""
    run = load("tests/gpu/run.py")
    return SimpleNamespace(
        run=run, **{name: __import__(name) for name in ("machine", "models", "ranks", "scenarios", "server")}
    )


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Puts an nvidia-smi that shows a number of cards on PATH; none at all for None."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def shows(cards):
        program = folder / "nvidia-smi"
        program.write_text("#!/bin/sh\n" + "echo 'NVIDIA H200, 580.1'\n" * cards)
        program.chmod(0o755)

    return shows


@pytest.mark.parametrize(
    ("cards", "arguments", "said"),
    [
        (4, ["ranks", "--tp", "3"], "--tp is 3, and the models can be shared by 1, 2, 4, 8 cards"),
        (4, ["ranks", "--tp", "0"], "--tp is 0, and the models can be shared by 1, 2, 4, 8 cards"),
        (16, ["ranks", "--tp", "16"], "--tp is 16, and the models can be shared by 1, 2, 4, 8 cards"),
        (2, ["ranks", "--tp", "4"], "--tp is 4, and nvidia-smi shows 2 cards"),
        (None, ["dense"], "--tp is 1, and nvidia-smi shows 0 cards"),
        (2, ["ranks", "--tp", "two"], "argument --tp: invalid int value: 'two'"),
    ],
)
def test_a_wrong_number_of_cards_is_said_before_anything_is_made(
    gpu, nvidia_smi, tmp_path, capsys, *, cards, arguments, said
):
    if cards is not None:
        nvidia_smi(cards)
    try:
        status = gpu.run.main([str(tmp_path / "out"), *arguments])
    except SystemExit as stopped:
        status = stopped.code
    assert (status, *capsys.readouterr()) == (2, "", f"run.py: {said}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("there", "tp", "said"),
    [
        (["NVIDIA H200, 580.1"] * 2, 1, "NVIDIA H200"),
        (["NVIDIA H200, 580.1"] * 2, 2, "2 x NVIDIA H200"),
        ([], 1, ""),
    ],
)
def test_the_cards_that_are_used(gpu, there, tp, said):
    assert gpu.machine.used(there, tp) == said


def test_the_help_names_the_scenario_and_the_option(gpu, capsys):
    with pytest.raises(SystemExit) as stopped:
        gpu.run.main(["--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "ranks" in shown
    assert "--tp TP" in shown


def test_a_card_is_named_once_however_many_there_are(gpu, nvidia_smi):
    nvidia_smi(2)
    assert gpu.machine.cards() == ["NVIDIA H200, 580.1"] * 2


@pytest.mark.parametrize("cards", [1, 2, 4, 8])
def test_every_model_can_be_shared_by_every_number_of_cards(gpu, cards):
    assert cards in gpu.machine.SHARED_BY
    for name, config in gpu.models.MODELS.items():
        assert config["num_attention_heads"] % cards == 0, name
        assert config["num_key_value_heads"] % cards == 0 or cards % config["num_key_value_heads"] == 0, name
        assert config["intermediate_size"] % cards == 0, name


def test_servers_on_several_cards_have_multicast_off_whatever_this_process_has(gpu, tmp_path, monkeypatch):
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    off = {"NCCL_NVLS_ENABLE": "0", "NVSHMEM_DISABLE_NVLS": "1", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1"}
    server = gpu.server.Server(tmp_path / "log", 31000, (), {}, tp=2)
    assert "--tp-size 2" in " ".join(server.command)
    assert off.items() <= server.environment.items()
    one = gpu.server.Server(tmp_path / "log", 31000, (), {})
    assert "--tp-size 1" in " ".join(one.command)
    assert one.environment["NCCL_NVLS_ENABLE"] == "1"


def test_every_server_of_a_scenario_gets_the_number_of_cards(gpu, tmp_path, monkeypatch):
    started = []

    def start(server):
        started.append(server.command)
        raise gpu.server.ServerError("only its command is wanted")

    monkeypatch.setattr(gpu.server.Server, "__enter__", start)
    place = gpu.scenarios.Place(tmp_path, tmp_path, 31000, tp=2)
    trees = {"stock": "/stock", "patched": "/patched"}
    compared = [partial(scenario, trees=trees) for scenario in gpu.run.COMPARED.values()]
    for scenario in (*gpu.run.SCENARIOS.values(), *compared):
        before = len(started)
        with suppress(gpu.server.ServerError):
            assert "error" in scenario(place)
        assert len(started) > before
        for command in started[before:]:
            assert "--tp-size 2" in " ".join(command)


@pytest.fixture
def result():
    """What a run of the scenario of ranks gives if all is well."""
    phases = {"phases": [{"failed": 0}, {"failed": 0}], "forced": {"failed": 0}}
    aborted = {"requests": 96, "cut_short": 90, "failed_after": 0}
    return {
        "hysteresis": phases,
        "hysteresis_aborted": aborted,
        "no_hysteresis": phases,
        "no_hysteresis_aborted": aborted,
        "changed": {"failed": 0},
        "crowd": {"failed": 0},
        "retractions": 3,
        "decode_rounds": {"0": 5, "1": 5, "3": 5},
        "same": True,
    }


def test_a_result_without_a_fault(gpu, result):
    assert gpu.ranks.problems(result) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"same": False}, "the ranks decided differently"),
        ({"decode_rounds": {"0": 5, "3": 5}}, "no decode round had 1 steps"),
        ({"retractions": 0}, "no request was taken back"),
        ({"crowd": {"failed": 2}}, "requests of crowd that failed: 2"),
        ({"hysteresis": {"phases": [{"failed": 1}], "forced": {"failed": 2}}}, "requests of hysteresis that failed: 3"),
        ({"no_hysteresis_aborted": {"cut_short": 0, "failed_after": 0}}, "no request of no_hysteresis was cut short"),
        ({"hysteresis_aborted": {"cut_short": 9, "failed_after": 1}}, "hysteresis answers nothing after the abort"),
    ],
)
def test_what_a_result_lacks_is_said(gpu, result, change, said):
    assert gpu.ranks.problems({**result, **change}) == [said]
