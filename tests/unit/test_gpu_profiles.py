"""What a profile says of the GPU."""

import gzip
import json

import pytest


@pytest.fixture(scope="module")
def profiles(load):
    return load("tests/gpu/profiles.py")


def event(name, begin, took, category="kernel"):
    return {"name": name, "ts": begin, "dur": took, "cat": category}


def test_what_runs_at_once_is_busy_once_and_what_the_host_does_is_left_out(profiles):
    events = [
        event("gemm", 100, 10),
        event("copy", 105, 10, "gpu_memcpy"),
        event("gemm", 130, 20),
        event("launch", 0, 500, "cuda_runtime"),
        {"name": "of no category", "ts": 0},
    ]
    assert profiles.summary(events, 2) == {
        "busy_us": 17.5,
        "span_us": 25.0,
        "launches": 1.5,
        "kernels": [["gemm", 1.0, 15.0], ["copy", 0.5, 5.0]],
    }


def test_a_trace_without_work_on_the_gpu(profiles):
    assert profiles.summary([], 2)["kernels"] == []


def test_a_trace_that_is_still_being_written_is_waited_for(profiles, tmp_path):
    whole = gzip.compress(json.dumps({"traceEvents": [event("gemm", 1, 2)]}).encode())
    trace = tmp_path / "x.trace.json.gz"
    trace.write_bytes(whole[: len(whole) // 2])
    with pytest.raises((EOFError, ValueError)):
        profiles.read(trace)
    trace.write_bytes(whole)
    assert profiles.await_trace(tmp_path) == [event("gemm", 1, 2)]


def test_a_wave_decodes_from_the_first_round_after_the_last_prefill(profiles):
    events = [
        event("_fwd_grouped_kernel_stage1", 40, 5),  # a round of those that came first
        event("_fwd_kernel", 30, 5),
        event("_fwd_kernel", 50, 10),
        event("gemm", 60, 10),
        *(event("_fwd_grouped_kernel_stage1", begin, 2) for begin in (80, 90, 100, 110)),
        event("gemm", 112, 10),
    ]
    wave = profiles.of_wave(events, layers=2)
    assert (wave["prefill"]["busy_us"], wave["prefill"]["launches"]) == (30, 4)
    assert (wave["decode"]["rounds"], wave["decode"]["busy_us"], wave["decode"]["launches"]) == (2, 9, 2.5)


def test_a_wave_without_decoding_is_all_prefill(profiles):
    wave = profiles.of_wave([event("_fwd_kernel", 0, 5), event("gemm", 5, 5)], layers=2)
    assert (wave["prefill"]["busy_us"], wave["decode"]["busy_us"]) == (10, 0)


def test_only_the_longest_kernels_are_listed(profiles):
    events = [event(f"kernel {number}", 100 * number, number) for number in range(1, 31)]
    kernels = profiles.summary(events, 1)["kernels"]
    assert [took for _, _, took in kernels] == list(range(30, 30 - profiles.LONGEST, -1))
