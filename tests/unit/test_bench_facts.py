"""Parts of a fingerprint, from what commands, files and servers print."""

import json

import pytest

from blackwell.bench import facts
from blackwell.bench.fingerprint import Unknown

TWO_CARDS = """\
\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tPXB\t0-55,112-167\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t56-111\t1\t\tN/A
NIC0\tPXB\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
"""
THREE_CARDS = """\
\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity
GPU0\t X \tPIX\tSYS\t0-23\t0
GPU1\tPIX\t X \tNODE\t0-23\t0
GPU2\tSYS\tNODE\t X \t24-47\t1
"""


def test_equal_cards_are_counted():
    text = "NVIDIA H200, 143771 MiB, 700.00 W\n" * 2 + "NVIDIA L4, 23034 MiB, 72.00 W\n"
    assert facts.gpus(text) == "2 x NVIDIA H200 (143771 MiB, 700.00 W), 1 x NVIDIA L4 (23034 MiB, 72.00 W)"


def test_how_cards_are_connected():
    assert facts.topology(TWO_CARDS) == {"GPU0-GPU1": "NV18"}
    assert facts.topology(THREE_CARDS) == {"GPU0-GPU1": "PIX", "GPU0-GPU2": "SYS", "GPU1-GPU2": "NODE"}
    assert facts.topology("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-31\t0\n") == {}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (x@y)  Tue Sep 23",
            "580.95.05",
        ),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.135  Fri Jan 10\nGCC version:  gcc version 11.4.0",
            "550.135",
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.71.05", "595.71.05"),
    ],
)
def test_the_version_of_a_driver(text, version):
    assert facts.driver(text) == version


@pytest.mark.parametrize("name", ["CUDA Version", "CUDA UMD Version"])
def test_the_cuda_of_a_driver(name):
    text = f"NVIDIA-SMI version  : 580.95.05\nDRIVER version      : 580.95.05\n{name}        : 13.0\n"
    assert facts.cuda(text) == "13.0"


def test_variables_by_their_first_letters_and_none_that_opens_something():
    data = b"NCCL_ALGO=Ring\0NCCL_DEBUG=\0SGLANG_X=a=b\0SGLANG_API_KEY=secret\0HF_TOKEN=secret\0MY_NCCL_X=1\0"
    assert facts.environment(data, "NCCL_") == {"NCCL_ALGO": "Ring", "NCCL_DEBUG": ""}
    assert facts.environment(data, "SGLANG_") == {"SGLANG_X": "a=b"}
    assert facts.environment(b"", "NCCL_") == {}


def test_libraries_that_are_loaded():
    one = "7f01-7f02 r-xp 00000000 08:01 12 /venv/nvidia/nccl/lib/libnccl.so.2\n7f03-7f04 rw-p 00000000 00:00 0 \n"
    other = (
        "7f01-7f02 r--p 00000000 08:01 12                 /venv/nvidia/nccl/lib/libnccl.so.2\n"
        "7f01-7f02 r-xp 00000000 08:01 13 /opt/my nccl/libnccl.so.2.28.3 (deleted)\n"
        "7f01-7f02 r-xp 00000000 08:01 14 /opt/plugins/libnccl-net.so\n"
        "7f01-7f02 r-xp 00000000 08:01 15 /opt/plugins/libnccl.so.d/other.so\n"
    )
    assert facts.libraries([one, other], "libnccl.so") == [
        "/opt/my nccl/libnccl.so.2.28.3 (deleted)",
        "/venv/nvidia/nccl/lib/libnccl.so.2",
    ]
    assert facts.libraries([one], "libcudart.so") == []


def test_flags_without_what_differs_from_start_to_start_and_what_a_policy_sets():
    server = {
        "tp_size": 8,
        "kv_cache_dtype": "auto",
        "host": "127.0.0.1",
        "port": 30000,
        "api_key": "secret",
        "random_seed": 7,
        "max_total_num_tokens": 500000,
        "internal_states": [{"last_gen_throughput": 3.8}],
        "speculative_load_policy": "{}",
        "speculative_disable_batch_threshold": 12,
        "model_path": "/models/llama",
        "version": "0.5.9",
        "patch_tree": "7ree",
    }
    assert facts.flags(server) == {"tp_size": 8, "kv_cache_dtype": "auto"}


def test_what_the_server_says():
    server = facts.information(json.dumps({"version": "0.5.9", "patch_tree": None}))
    assert facts.told(server, "version") == "0.5.9"
    assert facts.told(server, "patch_tree") == Unknown("/server_info has no patch_tree")
    assert facts.told({}, "version") == Unknown("/server_info has no version")


@pytest.mark.parametrize(
    ("read", "text", "reason"),
    [
        (facts.gpus, "", "nvidia-smi --query-gpu answered in another form"),
        (facts.gpus, "NVIDIA H200, 143771 MiB\n", "nvidia-smi --query-gpu answered in another form"),
        (facts.topology, "", "nvidia-smi topo -m answered in another form"),
        (facts.topology, "\tGPU0\tGPU1\nGPU0\t X \tNV18\n", "nvidia-smi topo -m answered in another form"),
        (facts.topology, "\tGPU0\tGPU1\nGPU0\t X \nGPU1\tNV18\t X\n", "nvidia-smi topo -m answered in another form"),
        (facts.driver, "NVRM version: new\n", "/proc/driver/nvidia/version names no version"),
        (facts.cuda, "CUDA Version : N/A\n", "nvidia-smi --version names no CUDA"),
        (facts.information, "<html>", "/server_info is not JSON"),
        (facts.information, "[]", "/server_info is no object"),
    ],
)
def test_another_text_than_expected_is_unknown_with_a_reason(read, text, reason):
    assert read(text) == Unknown(reason)
