"""Fingerprints: digest, form, and what changed, in words."""

import json
import re

import pytest

from blackwell.bench import fingerprint
from blackwell.bench.errors import BenchError
from blackwell.bench.fingerprint import Unknown, differences, made, parsed, unread

PARTS = {
    "model": "/models/llama",
    "model_files": "aa",
    "draft": "/models/eagle3",
    "draft_files": "bb",
    "gpus": "8 x NVIDIA H200 (143771 MiB, 700.00 W)",
    "topology": {"GPU0-GPU1": "NV18"},
    "driver": "580.95",
    "cuda": "13.0",
    "cuda_runtime": "libcudart.so.12 (01)",
    "nccl": "2.27.3+cuda12.9 libnccl.so.2 (02)",
    "nccl_environment": {"NCCL_ALGO": "Ring"},
    "sglang": "0.5.9",
    "sglang_environment": {},
    "patch_tree": "7ree",
    "flags": {"tp_size": 8, "kv_cache_dtype": "auto", "cuda_graph_bs": [1, 2]},
    "workload": {"prompt_tokens": 256},
}


def changed(**parts):
    return differences(made(PARTS), made(PARTS | parts))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"driver": "585.10"}, "the driver was 580.95, it is 585.10"),
        ({"driver": None}, "the driver was 580.95, it is none"),
        (
            {"gpus": "4 x NVIDIA H200 (143771 MiB, 700.00 W)"},
            "the GPUs were 8 x NVIDIA H200 (143771 MiB, 700.00 W), they are 4 x NVIDIA H200 (143771 MiB, 700.00 W)",
        ),
        ({"topology": {"GPU0-GPU1": "SYS"}}, "the topology of the GPUs changed: GPU0-GPU1 was NV18, it is SYS"),
        ({"cuda": "13.1"}, "the CUDA of the driver was 13.0, it is 13.1"),
        ({"cuda_runtime": None}, "the CUDA runtime was libcudart.so.12 (01), it is none"),
        (
            {"nccl": "2.28.3+cuda12.9 libnccl.so.2 (03)"},
            "NCCL was 2.27.3+cuda12.9 libnccl.so.2 (02), it is 2.28.3+cuda12.9 libnccl.so.2 (03)",
        ),
        (
            {"nccl_environment": {"NCCL_CUMEM": "0"}},
            "the NCCL_* variables changed: NCCL_ALGO was Ring, it is not there; NCCL_CUMEM was not there, it is 0",
        ),
        (
            {"sglang_environment": {"SGLANG_X": ""}},
            "the SGLANG_* variables changed: SGLANG_X was not there, it is none",
        ),
        ({"sglang": "0.5.16"}, "SGLang was 0.5.9, it is 0.5.16"),
        ({"patch_tree": "f1r"}, "the patch tree was 7ree, it is f1r"),
        (
            {"flags": {"tp_size": 4, "kv_cache_dtype": "auto", "cuda_graph_bs": [1]}},
            "the server's flags changed: cuda_graph_bs was [1,2], it is [1]; tp_size was 8, it is 4",
        ),
        (
            {"model": "/models/qwen"},
            "the model was /models/llama, it is /models/qwen",
        ),
        ({"draft": None}, "the draft was /models/eagle3, it is none"),
        ({"draft_files": "cc"}, "the files of the draft were bb, they are cc"),
        ({"model_files": "cc"}, "the files of the model were aa, they are cc"),
        ({"workload": {"prompt_tokens": 512}}, "the workload changed: prompt_tokens was 256, it is 512"),
        ({"cards": ["one", "two"]}, "cards was unknown (it was not recorded), it is one, two"),
    ],
)
def test_what_changed_is_said_part_by_part(parts, said):
    assert changed(**parts) == [said]
    assert made(PARTS).digest != made(PARTS | parts).digest


def test_several_parts_have_a_sentence_each_in_a_fixed_order():
    found = changed(workload={}, tp=2, driver="585.10", sglang="0.5.16", acceptance=1)
    assert [re.split(" was | changed: ", sentence)[0] for sentence in found] == [
        "the driver",
        "SGLang",
        "the workload",
        "acceptance",
        "tp",
    ]


def test_nothing_changed():
    reordered = dict(reversed(PARTS.items())) | {"flags": dict(reversed(PARTS["flags"].items()))}
    assert differences(made(PARTS), made(reordered)) == []
    assert made(reordered).digest == made(PARTS).digest
    assert made(reordered).text == made(PARTS).text


def test_a_part_that_is_not_known_is_no_part_that_is():
    hidden = made(PARTS | {"driver": Unknown("/proc/driver/nvidia/version cannot be read: Permission denied")})
    why = "unknown (/proc/driver/nvidia/version cannot be read: Permission denied)"
    assert differences(made(PARTS), hidden) == [f"the driver was 580.95, it is {why}"]
    assert differences(hidden, made(PARTS)) == [f"the driver was {why}, it is 580.95"]
    assert hidden.digest != made(PARTS).digest
    assert hidden.digest != made({name: part for name, part in PARTS.items() if name != "driver"}).digest


def test_nothing_that_is_known_is_not_unknown():
    assert made({"draft": None}).digest != made({"draft": Unknown("no answer")}).digest
    assert changed(draft=Unknown("no answer")) == ["the draft was /models/eagle3, it is unknown (no answer)"]
    assert changed(flags=Unknown("no answer")) == ["the server's flags were known, they are unknown (no answer)"]
    assert differences(made({"flags": {}}), made({"flags": Unknown("no answer")})) == [
        "the server's flags were none, they are unknown (no answer)"
    ]


def test_two_unknown_parts_are_the_same_whatever_hides_them_and_are_named():
    one, other = made({"driver": Unknown("no answer"), "gpus": Unknown("a timeout")}), made({"driver": Unknown("no")})
    assert made({"driver": Unknown("no answer")}).digest == other.digest
    assert differences(made({"driver": Unknown("no answer")}), other) == []
    assert unread(one) == ["the driver was unknown: no answer", "the GPUs were unknown: a timeout"]
    assert unread(made(PARTS)) == []


def test_what_json_cannot_tell_apart_is_the_same():
    assert made({"levels": (1, 2)}) == made({"levels": [1, 2]})
    assert made({"levels": 1}).digest != made({"levels": True}).digest
    assert differences(made({"levels": 1}), made({"levels": True})) == ["levels was 1, it is true"]


def test_it_comes_back_as_it_was_written():
    one = made(PARTS | {"driver": Unknown("no answer")})
    assert parsed(one.text) == one
    assert parsed(one.text).digest == one.digest
    assert json.loads(one.text)["unknown"] == {"driver": "no answer"}


@pytest.mark.parametrize("text", ["", "7", "[]", "{}", '{"parts": [], "unknown": {}}', '{"parts": {}, "unknown": 1}'])
def test_what_is_no_fingerprint(text):
    with pytest.raises(BenchError) as caught:
        parsed(text)
    assert str(caught.value) == f"this is no fingerprint: {text!r}"


def test_every_part_has_a_noun():
    assert set(fingerprint.NOUNS) == set(PARTS)
