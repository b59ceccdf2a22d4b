"""Taking the fingerprint of a server: from a /proc that is laid out here, and from this host."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench_fake import serving

from blackwell.bench import gather
from blackwell.bench.fingerprint import Unknown
from blackwell.bench.gather import Host

SMI = {
    "--query-gpu=name,memory.total,power.limit": "NVIDIA H200, 143771 MiB, 700.00 W\n",
    "topo": "\tGPU0\tCPU Affinity\nGPU0\t X \t0-31\n",
    "--version": "CUDA Version        : 13.0\n",
}
WORKLOAD = {"prompt_tokens": 256}


@pytest.fixture
def host(tmp_path):
    """A host with one card, whose server is process 7 and has loaded NCCL in process 8, its child."""
    proc, lib, models = tmp_path / "proc", tmp_path / "lib", tmp_path / "models"
    files = {
        proc / "driver/nvidia/version": b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95  Release Build\n",
        proc / "7/environ": b"NCCL_ALGO=Ring\0SGLANG_X=1\0PATH=/bin\0",
        proc / "7/maps": b"7f01-7f02 r-xp 0 08:01 12 %s/libcudart.so.12\n" % os.fsencode(lib),
        proc / "7/task/7/children": b"8 ",
        proc / "8/maps": b"7f01-7f02 r-xp 0 08:01 13 %s/libnccl.so.2\n" % os.fsencode(lib),
        proc / "8/task/8/children": b"",
        lib / "libcudart.so.12": b"cudart",
        lib / "libnccl.so.2": b"NCCL version %d.%d\0\0NCCL version 2.27.3+cuda12.9\0",
        models / "target/config.json": b"{}",
        models / "target/model.safetensors": b"a" * 300000,
        models / "draft/config.json": b"{}",
    }
    for file, data in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return Host(proc, lambda command: SMI[command[1]])


def answer(host, **values):
    models = host.proc.parent / "models"
    server = {
        "model_path": str(models / "target"),
        "speculative_draft_model_path": str(models / "draft"),
        "speculative_draft_model_revision": "main",
        "version": "0.5.9",
        "patch_tree": "7ree",
        "tp_size": 1,
        "port": 30000,
    }
    return json.dumps(server | values)


def taken(host, **values):
    return gather.gather(7, answer(host, **values), WORKLOAD, host)


def test_the_fingerprint_of_a_server(host):
    found = taken(host)
    models = host.proc.parent / "models"
    assert found.unknown == {}
    assert found.parts == {
        "gpus": "1 x NVIDIA H200 (143771 MiB, 700.00 W)",
        "topology": {},
        "driver": "580.95",
        "cuda": "13.0",
        "cuda_runtime": "libcudart.so.12 (9e0ac68525dfccd5)",
        "nccl": "2.27.3+cuda12.9 libnccl.so.2 (ecd05679adc66721)",
        "nccl_environment": {"NCCL_ALGO": "Ring"},
        "sglang_environment": {"SGLANG_X": "1"},
        "model": f"{models}/target",
        "model_files": gather.content_digest(models / "target"),
        "draft": f"{models}/draft at main",
        "draft_files": gather.content_digest(models / "draft"),
        "sglang": "0.5.9",
        "patch_tree": "7ree",
        "flags": {"tp_size": 1},
        "workload": WORKLOAD,
    }
    assert taken(host, port=30001).digest == found.digest


def test_a_server_without_a_draft(host):
    found = taken(host, speculative_draft_model_path=None)
    assert {name: found.parts[name] for name in ("draft", "draft_files")} == {"draft": None, "draft_files": None}


def test_models_that_are_not_on_this_host_differ_by_name(host):
    one, other = taken(host, model_path="org/llama"), taken(host, model_path="org/qwen")
    assert list(one.unknown) == list(other.unknown) == ["model_files"]
    assert one.digest != other.digest


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (lambda file: file.write_bytes(b"a" * 299999 + b"b"), "model.safetensors"),
        (lambda file: file.write_bytes(b"a" * 150000 + b"b" + b"a" * 149999), "model.safetensors"),
        (lambda file: file.write_bytes(b"b" + b"a" * 299999), "model.safetensors"),
        (lambda file: file.write_bytes(b"a" * 299999), "model.safetensors"),
        (lambda file: file.write_bytes(b"{ }"), "config.json"),
        (lambda file: file.rename(file.with_name("another.json")), "config.json"),
    ],
)
def test_another_model_under_the_same_path_is_another(host, change, file):
    before = taken(host)
    change(host.proc.parent / "models" / "target" / file)
    assert taken(host).parts["model_files"] != before.parts["model_files"]


def test_a_host_without_a_card_has_a_fingerprint(host):
    (host.proc / "driver/nvidia/version").unlink()
    (host.proc / "7/maps").write_text("")
    (host.proc / "8/maps").write_text("")
    found = taken(host)
    assert found.unknown == {}
    none = ("gpus", "topology", "driver", "cuda", "cuda_runtime", "nccl")
    assert {name: found.parts[name] for name in none} == dict.fromkeys(none)


def test_what_cannot_be_read_is_unknown_with_its_reason(host):
    proc, lib = host.proc, host.proc.parent / "lib"
    (proc / "7/environ").unlink()
    (lib / "libnccl.so.2").unlink()
    with (proc / "7/maps").open("a") as maps:
        maps.write("7f01-7f02 r-xp 0 08:01 12 /usr/lib/libcudart.so.12 (deleted)\n")
    silent = Host(proc, lambda _: Unknown("nvidia-smi cannot be run: No such file or directory"))
    found = gather.gather(7, answer(host, patch_tree=None, model_path="org/llama"), WORKLOAD, silent)
    no_environ = f"{proc}/7/environ cannot be read: No such file or directory"
    assert found.unknown == {
        **dict.fromkeys(("gpus", "topology", "cuda"), "nvidia-smi cannot be run: No such file or directory"),
        **dict.fromkeys(("nccl_environment", "sglang_environment"), no_environ),
        "cuda_runtime": "/usr/lib/libcudart.so.12 was replaced since the server loaded it",
        "nccl": f"{lib}/libnccl.so.2 cannot be read: No such file or directory",
        "patch_tree": "/server_info has no patch_tree",
        "model_files": "org/llama cannot be read: No such file or directory",
    }


def test_a_server_that_does_not_answer_and_is_gone(host):
    gone = Unknown("/server_info was not answered: Connection refused")
    found = gather.gather(9, gone, WORKLOAD, host)
    assert set(found.parts) == {"gpus", "topology", "driver", "cuda", "workload"}
    assert {found.unknown[name] for name in ("model", "draft", "sglang", "patch_tree", "flags")} == {gone.reason}
    assert found.unknown["nccl"] == f"{host.proc}/9/maps cannot be read: No such file or directory"


def test_what_a_command_says():
    assert gather.output([sys.executable, "-c", "print(7)"]) == "7\n"
    assert gather.output(["no-such-command"]) == Unknown("no-such-command cannot be run: No such file or directory")
    failing = [sys.executable, "-c", "import sys; print('mismatch', file=sys.stderr); sys.exit(9)"]
    assert gather.output(failing) == Unknown(f"{sys.executable} ended with 9: mismatch")
    assert gather.output(["false"]) == Unknown("false ended with 1: without a word")


def test_a_command_that_says_nothing(monkeypatch):
    monkeypatch.setattr(gather, "COMMAND_SECONDS", 0.1)
    assert gather.output(["sleep", "20"]) == Unknown("sleep said nothing within 0.1 s")


def test_a_server_that_is_asked():
    with serving() as fake:
        assert gather.server_info(f"{fake.url}/nowhere") == Unknown("/server_info was answered with 404")
    told = gather.server_info(fake.url)
    assert told == Unknown("/server_info was not answered: [Errno 111] Connection refused")


def test_this_host_is_read_through_the_kernel():
    """A process that waits, its child, and a library that both have mapped."""
    program = "import subprocess, sys; subprocess.run(['cat'])"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, env={"NCCL_ALGO": "Tree", "HOME": "/"}
    ) as process:
        proc = Path("/proc")
        while len(family := gather.family(process.pid, proc)) < 2:
            assert process.poll() is None
        found = gather.gather(process.pid, json.dumps({"version": "0.5.9"}), WORKLOAD)
        process.stdin.close()
    assert family[0] == process.pid
    assert found.parts["nccl_environment"] == {"NCCL_ALGO": "Tree"}
    assert found.parts["nccl"] is None
    assert found.parts["sglang"] == "0.5.9"
