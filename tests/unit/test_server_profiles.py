"""A profile gives the settings that the inventory leaves open, and no other; what cannot work is refused."""

import json

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from resolved_servers import resolve

from blackwell import paths, role_defaults

MANIFEST = json.loads((paths.ROOT / "patches/sglang-0.5.9/manifest.json").read_text(encoding="utf-8"))
BOX = {"sglang_device": "cuda", "model_path": "/models/target", "preflight_gpu_capability": "12.0"}
KIMI = {"sglang_server_profile": "kimi_k25_int4"}
SEGMENTS = {"sglang_server_environment": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64,expandable_segments:True"}}
FUSION, SYMMETRIC = "sglang_server_flashinfer_allreduce_fusion", "sglang_server_torch_symm_mem"
FUSED = {FUSION: True, f"{FUSION}_max_bytes": 2**20}

REFUSED = {
    "unknown profile": (
        {"sglang_server_profile": "kimi"},
        """sglang_server_profile: there is no profile kimi: choose one of glm5_nvfp4, kimi_k25_int4, llama_like, or
        leave it empty.""",
    ),
    "attention": (
        KIMI | {"sglang_server_attention_backend": "trtllm_mla"},
        """sglang_server_attention_backend: trtllm_mla has no kernels for cards of SM 12.0 (preflight_gpu_capability):
        choose another one.""",
    ),
    "experts": (
        KIMI | {"sglang_server_moe_runner_backend": "flashinfer_trtllm"},
        """sglang_server_moe_runner_backend: flashinfer_trtllm has no kernels for cards of SM 12.0
        (preflight_gpu_capability): choose another one.""",
    ),
    "segments": (
        SEGMENTS | FUSED | {"sglang_server_custom_all_reduce": True},
        """sglang_server_environment: with expandable segments (PYTORCH_CUDA_ALLOC_CONF) no memory can be handed to
        another process, which sglang_server_custom_all_reduce, sglang_server_flashinfer_allreduce_fusion needs: remove
        one of the two.""",
    ),
    "a cap between two": (
        FUSED | {f"{FUSION}_max_bytes": 1000},
        "sglang_server_flashinfer_allreduce_fusion_max_bytes: 1000 is not a multiple of 16 from 0 on.",
    ),
    "a cap below none": (
        {f"{SYMMETRIC}_one_shot_max_bytes": -16},
        "sglang_server_torch_symm_mem_one_shot_max_bytes: -16 is not a multiple of 16 from 0 on.",
    ),
    "a cap of nothing": (
        {f"{SYMMETRIC}_max_bytes": 4096},
        """sglang_server_torch_symm_mem_max_bytes: there is nothing that it limits while sglang_server_torch_symm_mem is
        off: switch that on, or remove the limit.""",
    ),
    "no cap": (
        {SYMMETRIC: True},
        """sglang_server_torch_symm_mem: cards of SM 12.0 (preflight_gpu_capability) never use it without
        sglang_server_torch_symm_mem_max_bytes, which belongs to the host: measure it (docs/settings.md), or switch it
        off.""",
    ),
}
ACCEPTED = {
    "none": {},
    "kimi": KIMI,
    "glm": {"sglang_server_profile": "glm5_nvfp4", "model_draft_path": "/models/target"},
    "llama": {"sglang_server_profile": "llama_like"},
    "own": KIMI
    | {
        "sglang_server_mem_fraction_static": 0.8,
        "sglang_server_nccl": {"NCCL_P2P_DISABLE": "1"},
        "sglang_server_environment": {"OMP_NUM_THREADS": "3"},
        "sglang_server_loader_threads": 0,
        "sglang_server_max_running_requests": 32,
    },
    "graphs": KIMI | {"sglang_server_cuda_graph_bs": [1, 2, 24]},
    "eager": KIMI | {"sglang_server_cuda_graph": False, "sglang_server_cuda_graph_bs": [1, 2]},
    "symmetric": KIMI | {"sglang_server_symm_mem": True, "sglang_server_symm_mem_prealloc_gb": 2},
    "drafting": KIMI | {"model_draft_path": "/models/eagle3"},
    "segments alone": KIMI | SEGMENTS,
    "fused": KIMI | FUSED,
    "summed": KIMI | {SYMMETRIC: True, f"{SYMMETRIC}_max_bytes": 2**22, f"{SYMMETRIC}_one_shot_max_bytes": 0},
    "other cards without a cap": {SYMMETRIC: True, FUSION: True, "preflight_gpu_capability": "9.0"},
    "other cards": KIMI | {"sglang_server_attention_backend": "trtllm_mla", "preflight_gpu_capability": "10.0"},
}
NOTHING_SET = ("none", "kimi", "glm", "llama")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    refused = {f"{name} refused": variables for name, (variables, _) in REFUSED.items()}
    return resolve(tmp_path_factory.mktemp("profiles"), ACCEPTED | refused, ACCEPTED, MANIFEST, BOX)


@pytest.fixture(scope="module")
def intent(found):
    return {name: found[name].get("_sglang_server_intent") for name in ACCEPTED}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_sentence(found, case):
    assert found[f"{case} refused"]["problems"] == [" ".join(REFUSED[case][1].split())]


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(found, case):
    assert found[case]["problems"] == []


def test_a_profile_is_what_it_differs_in(intent):
    base = intent["none"]["report"]
    differs = {
        name: {field: value for field, value in intent[name]["report"].items() if base.get(field) != value}
        for name in NOTHING_SET
    }
    loader = '{"enable_multithread_load": true, "num_threads": 16}'
    box = {"tp_size": 8, "model_loader_extra_config": loader, "kv_cache_dtype": "bfloat16"}
    assert differs["llama"] == {}
    assert differs["kimi"] == box | {
        "trust_remote_code": True,
        "mem_fraction_static": 0.9,
        "chunked_prefill_size": 4096,
        "max_running_requests": 128,
        "cuda_graph_max_bs": 128,
        "reasoning_parser": "kimi_k2",
        "tool_call_parser": "kimi_k2",
    }
    assert differs["glm"].items() >= (box | {"page_size": 64, "quantization": "modelopt_fp4"}).items()


def test_a_draft_is_by_the_algorithm_of_the_profile(intent):
    said = {name: intent[name]["report"].get("speculative_algorithm") for name in ("kimi", "drafting", "glm")}
    assert said == {"kimi": None, "drafting": "EAGLE3", "glm": "EAGLE"}


def test_what_the_server_calls_unquantized_it_reports_as_nothing(intent):
    argv = intent["drafting"]["argv"]
    assert argv[argv.index("--speculative-draft-model-quantization") + 1] == "unquant"
    assert intent["drafting"]["report"]["speculative_draft_model_quantization"] is None


def test_what_the_inventory_sets_is_taken(intent):
    assert intent["own"]["report"]["mem_fraction_static"] == 0.8
    assert intent["own"]["report"]["model_loader_extra_config"] == "{}"
    # What follows from another setting follows the host's own.
    assert intent["own"]["report"]["cuda_graph_max_bs"] == 32
    assert intent["own"]["report"]["chunked_prefill_size"] == 4096
    environment = intent["own"]["environment"]
    assert environment["OMP_NUM_THREADS"] == "3"
    assert environment["NCCL_P2P_DISABLE"] == "1"
    assert "NCCL_P2P_LEVEL" not in environment


def test_batches_with_graphs_are_words_of_their_own(intent):
    argv = intent["graphs"]["argv"]
    where = argv.index("--cuda-graph-bs")
    assert argv[where + 1 : where + 4] == ["1", "2", "24"]
    assert argv[where + 4].startswith("--")
    assert intent["graphs"]["report"]["cuda_graph_bs"] == [1, 2, 24]
    assert intent["graphs"]["report"]["cuda_graph_max_bs"] == 24
    assert not [word for word in intent["eager"]["argv"] if word.startswith("--cuda-graph")]


def test_a_cap_goes_with_what_it_limits(intent):
    caps = {
        name: {field: value for field, value in intent[name]["report"].items() if field.endswith("max_bytes")}
        for name in ("none", "fused", "summed", "other cards without a cap")
    }
    assert caps == {
        "none": {},
        "fused": {"flashinfer_allreduce_fusion_max_bytes": 2**20},
        "summed": {"torch_symm_mem_max_bytes": 2**22, "torch_symm_mem_one_shot_max_bytes": 0},
        "other cards without a cap": {},
    }
    argv = intent["summed"]["argv"]
    assert argv[argv.index("--torch-symm-mem-max-bytes") + 1] == "4194304"
    assert argv[argv.index("--torch-symm-mem-one-shot-max-bytes") + 1] == "0"


def test_a_release_without_the_caps_has_none(tmp_path):
    manifest = MANIFEST | {"options": {"--disable-flashinfer-allreduce-fusion": {}}}
    found = resolve(tmp_path, {"fused": FUSED}, (), manifest, BOX)
    sentence = """sglang_server_flashinfer_allreduce_fusion_max_bytes: the patch series of SGLang 0.5.9 does not add
        --flashinfer-allreduce-fusion-max-bytes (patches/sglang-0.5.9/manifest.json): remove the variable, or choose a
        release that has it."""
    assert found["fused"]["problems"] == [" ".join(sentence.split())]


SWITCHES = {
    "none": {"SGLANG_ENABLE_SPEC_V2": "0", "SGLANG_ENABLE_JIT_DEEPGEMM": "1", "NCCL_CUMEM_ENABLE": "0"},
    "kimi": {"SGLANG_ENABLE_SPEC_V2": "0", "SGLANG_ENABLE_JIT_DEEPGEMM": "0", "OMP_NUM_THREADS": "8"},
    "drafting": {"SGLANG_ENABLE_SPEC_V2": "1", "NCCL_PROTO": "LL", "NCCL_P2P_LEVEL": "SYS", "NCCL_IB_DISABLE": "1"},
    "symmetric": {
        "NCCL_CUMEM_ENABLE": "1",
        "NCCL_NVLS_ENABLE": "1",
        "SGLANG_SYMM_MEM_PREALLOC_GB_SIZE": "2",
    },
}


@pytest.mark.parametrize("case", SWITCHES)
def test_switches_are_in_the_environment_file_on_or_off(found, case):
    lines = found[case]["_sglang_server_asked"]["environment"].splitlines()
    assert {f'{name}="{value}"' for name, value in SWITCHES[case].items()} <= set(lines)


PROFILES = yaml.safe_load((paths.ROOT / "roles/sglang_server/vars/main/profiles.yml").read_text(encoding="utf-8"))
SPEC = yaml.safe_load((paths.ROOT / "roles/sglang_server/meta/argument_specs.yml").read_text(encoding="utf-8"))
PARTS = {
    "standard": PROFILES["_sglang_server_standard"],
    **PROFILES["_sglang_server_machines"],
    **{name: profile["settings"] for name, profile in PROFILES["_sglang_server_profiles"].items()},
}


@pytest.mark.parametrize("part", PARTS)
def test_every_setting_of_a_profile_is_a_standard_one_of_the_declared_type(part):
    assert not PARTS[part].keys() - PARTS["standard"].keys()
    rules = {
        name: {key: value for key, value in option.items() if key in ("type", "choices", "elements")}
        for name, option in SPEC["argument_specs"]["main"]["options"].items()
    }
    assert ArgumentSpecValidator(rules).validate(PARTS[part]).error_messages == []


@pytest.mark.parametrize(
    ("variables", "number"),
    [
        ({}, 256),
        (KIMI, 128),
        (KIMI | {"sglang_server_max_running_requests": 40}, 40),
        (KIMI | {"sglang_server_max_running_requests": "{{ forty }}"}, None),
        ({"sglang_server_profile": "glm5_nvfp4"}, 64),
        ({"sglang_server_profile": "kimi"}, None),
        ({"sglang_server_profile": "{{ theirs }}"}, None),
    ],
)
def test_commands_know_what_a_profile_says(variables, number):
    assert role_defaults.number(variables, "sglang_server", "sglang_server_max_running_requests") == number


def test_commands_know_what_no_profile_sets():
    assert role_defaults.number({}, "sglang_server", "sglang_server_port") == 30000
    assert role_defaults.number({}, "preflight", "preflight_disk_mb") == 6000
