"""What nvidia-smi tells while a server is measured."""

import itertools
import sys
import time
from pathlib import Path

import pytest

from blackwell.bench import telemetry
from blackwell.bench.telemetry import Sample, Summary, parsed, summary

SCRIPT = Path(__file__).with_name("nvidia_smi.py")
ROUNDS = """\
0, 412.37, 2317, 61, 98, 91034, 0x0000000000000004
1, 398.02, 2250, 64, 97, 91034, 0x0000000000000004

0, 415.00, 2310, 62, 99, 91034, 0x0000000000000004
Unable to determine the device handle for GPU1: 0000:C1:00.0: Unknown Error
1, 401.50, 2190, 66, 99, 91034, 0x0000000000000044
"""


def sample(at, card, **other):
    told = {"power_w": 300.0, "sm_mhz": 2000.0, "temperature_c": 60.0, "busy": 99.0, "memory_mib": 1.0, "reasons": 0}
    return Sample(at=at, card=card, **(told | other))


def test_a_line():
    assert parsed("1, 398.02, 2250, 64, 97, 91034, 0x0000000000000004\n", 7.5) == Sample(
        7.5, 1, 398.02, 2250, 64, 97, 91034, 4
    )


@pytest.mark.parametrize("nothing", ["[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "N/A", ""])
def test_what_a_card_does_not_tell_is_none(nothing):
    line = ", ".join(["3", *[nothing] * 6])
    assert parsed(line, 1.0) == Sample(1.0, 3, None, None, None, None, None, None)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\n",
        "No devices were found",
        'Field "clocks_event_reasons.active" is not a valid field to query.',
        "index, power.draw [W], clocks.current.sm [MHz], temperature.gpu, utilization.gpu [%], memory.used [MiB], x",
        "0, 412.37, 2317, 61, 98, 91034",
        "Unable to determine the device handle for GPU1: 0000:C1:00.0: Unknown Error",
    ],
)
def test_another_line_is_no_sample(line):
    assert parsed(line, 1.0) is None


def test_a_window_of_two_cards():
    found = summary(
        [
            sample(9.9, 0, power_w=9000.0, temperature_c=99.0, sm_mhz=1.0, reasons=0xFF),
            sample(10.0, 0, power_w=300.0, sm_mhz=2000.0, temperature_c=60.0),
            sample(10.0, 1, power_w=500.0, sm_mhz=2400.0, temperature_c=70.0),
            sample(11.0, 0, power_w=310.0, sm_mhz=2100.0, temperature_c=61.0),
            sample(11.0, 1, power_w=520.0, sm_mhz=1200.0, temperature_c=75.0),
            sample(20.1, 1, power_w=9000.0, temperature_c=99.0, sm_mhz=1.0, reasons=0xFF),
        ],
        10.0,
        20.0,
    )
    # The slowest card by its mean, not the slowest moment.
    assert found == Summary(power_w=815.0, sm_mhz=1800.0, temperature_c=75.0, note=None)


def test_what_one_card_does_not_tell_is_told_of_none():
    found = summary([sample(1, 0), sample(1, 1, power_w=None, temperature_c=None)], 0, 2)
    assert found == Summary(power_w=None, sm_mhz=2000.0, temperature_c=None, note=None)


def test_a_card_that_misses_a_value_once_is_counted_by_the_others():
    assert summary([sample(1, 0, power_w=None), sample(2, 0, power_w=200.0)], 0, 3).power_w == 200


def test_no_samples_tell_nothing():
    assert summary([], 0, 1) == Summary() == summary([sample(5, 0)], 0, 1)


@pytest.mark.parametrize(
    ("reasons", "word"),
    [
        (0x8, "hardware slowdown"),
        (0x20, "software thermal slowdown"),
        (0x40, "hardware thermal slowdown"),
        (0x80, "hardware power brake"),
    ],
)
def test_a_card_that_is_slowed_down_is_noted(reasons, word):
    samples = [sample(1, 0), sample(1, 5, reasons=reasons | 0x4), sample(2, 0), sample(2, 5, reasons=None)]
    assert summary(samples, 0, 3).note == f"card 5 was slowed down in 1 of 2 samples: {word}"


def test_all_that_slowed_cards_down_is_named():
    samples = [sample(1, 0, reasons=0x48), sample(2, 0, reasons=0x40), sample(1, 2, reasons=0x80)]
    assert summary(samples, 0, 3).note == (
        "card 0 was slowed down in 2 of 2 samples: hardware slowdown, hardware thermal slowdown; "
        "card 2 was slowed down in 1 of 1 samples: hardware power brake"
    )


@pytest.mark.parametrize("reasons", [0x0, 0x1, 0x2, 0x4, 0x10, 0x100, 0x200])
def test_idling_and_a_power_limit_are_not_noted(reasons):
    assert summary([sample(1, 0, reasons=reasons)], 0, 2).note is None


def wait_for(holds):
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_process_in_the_background(tmp_path):
    (tmp_path / "lines").write_text(ROUNDS)
    begin = time.monotonic()
    with telemetry.sampled([sys.executable, str(SCRIPT), str(tmp_path / "lines")]) as samples:
        wait_for(lambda: len(samples) == 4)
    end = time.monotonic()
    assert [(found.card, found.sm_mhz) for found in samples] == [(0, 2317), (1, 2250), (0, 2310), (1, 2190)]
    assert all(one.at <= other.at for one, other in itertools.pairwise(samples))
    assert summary(samples, begin, end) == Summary(
        power_w=813.4,
        sm_mhz=2220.0,
        temperature_c=66.0,
        note="card 1 was slowed down in 1 of 2 samples: hardware thermal slowdown",
    )


def test_the_process_ends_with_the_block_whatever_it_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(telemetry, "STOP_SECONDS", 0.2)
    (tmp_path / "lines").write_text(ROUNDS)
    command = [sys.executable, str(SCRIPT), str(tmp_path / "lines"), "stubborn"]

    def broken():
        with telemetry.sampled(command) as samples:
            wait_for(lambda: len(samples) == 4)
            raise KeyError("measured")

    with pytest.raises(KeyError):
        broken()
    pid = (tmp_path / "lines.pid").read_text()
    wait_for(lambda: not Path("/proc", pid).exists())


def test_a_process_that_ends_early_has_told_what_it_told():
    with telemetry.sampled(
        [sys.executable, "-c", f"print({ROUNDS.splitlines()[0]!r}); raise SystemExit(9)"]
    ) as samples:
        wait_for(lambda: samples)
    assert len(samples) == 1


def test_a_host_without_nvidia_smi_has_no_samples():
    with telemetry.sampled(["nvidia-smi-that-is-nowhere"]) as samples:
        assert samples == []


def test_the_command_asks_for_what_is_read():
    assert telemetry.COMMAND == (
        "nvidia-smi",
        "--query-gpu=index,power.draw,clocks.sm,temperature.gpu,utilization.gpu,memory.used,clocks_event_reasons.active",
        "--format=csv,noheader,nounits",
        "--loop-ms=1000",
    )
