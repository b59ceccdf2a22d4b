"""The command line of each profile, resolved by the release itself as on a box of eight RTX PRO 6000.

Run by the Python of a release, beside ``profiles.json``, which holds what tests/deploy/rendered_profiles.py renders. No
GPU is needed: PyTorch is made to say that there is one, and nvidia-smi how large it is.
"""

import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import sgl_kernel  # noqa: F401 - the stand-in, before what it stands in for
from sglang.srt.configs.model_config import AttentionArch, ModelConfig
from sglang.srt.models.registry import ModelRegistry
from sglang.srt.server_args import prepare_server_args
from sglang.srt.utils import common

CARD = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
CARD_MIB = 97887
CARDS = 8

# As the models' own config.json have it, without what no option depends on.
MLA = {
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "torch_dtype": "bfloat16",
}
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
CONFIGURATIONS = {
    "kimi_k25_int4": {
        "architectures": ["KimiK25ForConditionalGeneration"],
        "model_type": "kimi_k25",
        "torch_dtype": "bfloat16",
        "text_config": MLA
        | {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2", "hidden_size": 7168}
        | {"num_hidden_layers": 61, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "v_head_dim": 128}
        | {"n_routed_experts": 384, "vocab_size": 163840, "max_position_embeddings": 262144}
        | {"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized"}},
    },
    "glm5_nvfp4": MLA
    | {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa", "hidden_size": 6144}
    | {"num_hidden_layers": 78, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256}
    | {"n_routed_experts": 256, "vocab_size": 154880, "max_position_embeddings": 202752}
    | {"index_topk": 2048, "index_n_heads": 32, "index_head_dim": 128, "num_nextn_predict_layers": 1}
    | {"rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}}
    | {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}},
    "llama_like": LLAMA,
    "eagle3": LLAMA | {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 32000},
}

MEANT = {
    "kimi_k25_int4": {
        "tp_size": 8,
        "attention_backend": "flashinfer",
        "page_size": 1,
        "kv_cache_dtype": "bfloat16",
        "moe_runner_backend": "auto",
        "quantization": None,
        "mem_fraction_static": 0.9,
        "max_running_requests": 128,
        "cuda_graph_max_bs": 128,
        "chunked_prefill_size": 4096,
        "trust_remote_code": True,
        "reasoning_parser": "kimi_k2",
        "tool_call_parser": "kimi_k2",
    },
    "glm5_nvfp4": {
        "tp_size": 8,
        "attention_backend": "flashinfer",
        "page_size": 64,
        "kv_cache_dtype": "bfloat16",
        "moe_runner_backend": "cutlass",
        "quantization": "modelopt_fp4",
        "mem_fraction_static": 0.85,
        "fp4_gemm_runner_backend": "flashinfer_cudnn",
        "max_running_requests": 64,
        "cuda_graph_max_bs": 64,
        "trust_remote_code": False,
        "reasoning_parser": "glm45",
        "tool_call_parser": "glm47",
    },
    "llama_like": {
        "tp_size": 1,
        "attention_backend": "flashinfer",
        "page_size": 1,
        "kv_cache_dtype": "auto",
        "moe_runner_backend": "auto",
        "quantization": None,
        "max_running_requests": 256,
        "cuda_graph_max_bs": 256,
        "trust_remote_code": False,
        "reasoning_parser": None,
        "tool_call_parser": None,
    },
}
OFF = ("enable_torch_symm_mem", "enable_symm_mem", "enable_flashinfer_allreduce_fusion", "disable_cuda_graph")
SPECULATION = {
    "kimi_k25_int4": {"speculative_algorithm": "EAGLE3", "speculative_draft_model_quantization": None},
    "glm5_nvfp4": {"speculative_algorithm": "EAGLE", "speculative_draft_model_quantization": "modelopt_fp4"},
    "llama_like": {"speculative_algorithm": "EAGLE3", "speculative_draft_model_quantization": None},
}
DRAFT_CLASSES = {
    "kimi_k25_int4": ("LlamaForCausalLMEagle3", AttentionArch.MHA),
    "glm5_nvfp4": ("DeepseekV3ForCausalLMNextN", AttentionArch.MLA),
    "llama_like": ("LlamaForCausalLMEagle3", AttentionArch.MHA),
}
ASKS_THE_CARD = (
    *("is_cuda", "is_sm90_supported", "is_sm100_supported", "is_sm120_supported", "is_blackwell_supported"),
    "is_hopper_with_cuda_12_3",
)


def without(argv: list[str], *options: str) -> list[str]:
    """A command line without some options that have one value each."""
    found = list(argv)
    for option in options:
        where = found.index(option)
        del found[where : where + 2]
    return found


def pretend(case: type[unittest.TestCase], folder: Path, capability: tuple[int, int]) -> None:
    """Has PyTorch and nvidia-smi describe a box of cards of a capability until a class of tests is over."""
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\n" + f"echo {CARD_MIB}\n" * CARDS)
    program.chmod(0o755)
    for patch in (
        mock.patch("torch.cuda.is_available", return_value=True),
        mock.patch("torch.cuda.device_count", return_value=CARDS),
        mock.patch("torch.cuda.get_device_capability", return_value=capability),
        mock.patch("torch.cuda.get_device_name", return_value=CARD),
        mock.patch("torch.version.cuda", "13.0"),
    ):
        case.enterClassContext(patch)
    for name in ASKS_THE_CARD:
        getattr(common, name).cache_clear()
        case.addClassCleanup(getattr(common, name).cache_clear)


class Profiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rendered = json.loads(Path(__file__).with_name("profiles.json").read_text(encoding="utf-8"))
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        for name, configuration in CONFIGURATIONS.items():
            (cls.folder / name).mkdir()
            (cls.folder / name / "config.json").write_text(json.dumps(configuration))
        pretend(cls, cls.folder, (12, 0))

    def resolve(self, asked: dict):
        """What the release makes of the command line of a server in its environment."""
        words = [word.replace("/models", str(self.folder)) for word in asked["argv"][3:]]
        environment = {name: str(value) for name, value in asked["environment"].items() if name.startswith("SGLANG_")}
        path = f"{self.folder}:{os.environ['PATH']}"
        with mock.patch.dict(os.environ, environment | {"PATH": path, "HF_HUB_OFFLINE": "1"}):
            return prepare_server_args(words)

    def resolved(self, host: str):
        return self.resolve(self.rendered[host])

    def found(self, host: str, names) -> dict:
        resolved = self.resolved(host)
        return {name: getattr(resolved, name) for name in names}

    def test_every_profile_is_known_here(self):
        self.assertEqual({host.removesuffix("-draft") for host in self.rendered}, set(MEANT))

    def test_what_was_meant(self):
        for profile, meant in MEANT.items():
            for host in (profile, f"{profile}-draft"):
                with self.subTest(host=host):
                    self.assertEqual(self.found(host, meant), meant)

    def test_what_needs_nvlink_is_off_and_graphs_are_on(self):
        for host in self.rendered:
            with self.subTest(host=host):
                self.assertEqual(self.found(host, OFF), dict.fromkeys(OFF, False))
                self.assertTrue(self.resolved(host).disable_custom_all_reduce)

    def test_the_release_changes_nothing_of_what_the_running_server_must_report(self):
        for host, asked in self.rendered.items():
            with self.subTest(host=host):
                report = {
                    name: value.replace("/models", str(self.folder)) if isinstance(value, str) else value
                    for name, value in asked["report"].items()
                }
                self.assertEqual(self.found(host, report), report)

    def test_the_server_chooses_its_memory_by_the_card(self):
        found = [self.resolved(host).mem_fraction_static for host in ("llama_like", "llama_like-draft")]
        # By SGLang's estimate of what chunks of prompts and graphs take; a draft takes 2 GiB more, a tier 1.
        self.assertEqual(found, [round(1 - gib * 1024 / CARD_MIB, 3) for gib in (13.125, 16.125)])

    def test_without_a_draft_nothing_is_drafted(self):
        for profile in MEANT:
            with self.subTest(profile=profile):
                self.assertIsNone(self.resolved(profile).speculative_algorithm)

    def test_speculation_is_on_the_overlap_path_with_a_chain_of_three(self):
        steps = {
            "speculative_num_steps": 3,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 4,
            "speculative_disable_batch_threshold": 8,
            "disable_overlap_schedule": False,
        }
        for profile, meant in SPECULATION.items():
            with self.subTest(profile=profile):
                self.assertEqual(self.found(f"{profile}-draft", meant | steps), meant | steps)

    def test_left_to_the_server_glm_5_would_get_what_the_card_does_not_have(self):
        asked = self.rendered["glm5_nvfp4"]
        server = self.resolve(asked | {"argv": without(asked["argv"], "--attention-backend", "--kv-cache-dtype")})
        found = (server.attention_backend, server.kv_cache_dtype, server.nsa_decode_backend)
        self.assertEqual(found, ("nsa", "fp8_e4m3", "flashmla_kv"))

    def test_the_draft_has_a_class(self):
        for profile, (name, attention) in DRAFT_CLASSES.items():
            with self.subTest(profile=profile):
                server = self.resolved(f"{profile}-draft")
                path = server.speculative_draft_model_path
                draft = ModelConfig.from_server_args(server, model_path=path, is_draft_model=True)
                self.assertEqual((draft.hf_config.architectures, draft.attention_arch), ([name], attention))
                self.assertIn(name, ModelRegistry.get_supported_archs())

    def test_the_only_eagle3_class_is_that_of_a_dense_head(self):
        classes = [name for name in ModelRegistry.get_supported_archs() if "Eagle3" in name]
        self.assertEqual(classes, ["LlamaForCausalLMEagle3"])
