"""EAGLE-3 on Kimi-K2.5: what a draft asks of the wrapper reaches the language model that it wraps."""

import tempfile
import unittest
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import torch
from sglang.srt.configs.kimi_k25 import KimiK25Config
from sglang.srt.distributed import parallel_state
from sglang.srt.layers import communicator
from sglang.srt.layers.dp_attention import initialize_dp_attention
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang.srt.models.kimi_k25 import KimiK25ForConditionalGeneration
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler

HIDDEN, LAYERS, VOCABULARY = 32, 8, 64

TEXT = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "first_k_dense_replace": LAYERS,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "moe_intermediate_size": 16,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_layer_freq": 1,
    "max_position_embeddings": 128,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 2.0,
        "original_max_position_embeddings": 64,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
}
"""Kimi's language model but small, and dense: attention and experts have no kernels on this machine."""

VISION = {
    "num_hidden_layers": 1,
    "hidden_size": HIDDEN,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vt_hidden_size": HIDDEN,
    "mm_hidden_size": HIDDEN,
    "text_hidden_size": HIDDEN,
    "init_pos_emb_height": 4,
    "init_pos_emb_width": 4,
}


RANKS = 10
"""A sum over the ranks is as many times what each of them has."""


class Layer(torch.nn.Module):
    """Adds its number to the hidden states, so that it can be read from them which layers were passed.

    One that fuses leaves the sum over the ranks to the next layer, and does what the one before has left to it.
    """

    def __init__(self, number: int, *, fuses: bool):
        super().__init__()
        self.number, self.fuses = number, fuses

    def forward(self, _positions, hidden_states, _batch, residual, *_):
        if getattr(hidden_states, "_sglang_needs_allreduce_fusion", False):
            hidden_states = hidden_states * RANKS
        added = torch.full_like(hidden_states, self.number)
        added._sglang_needs_allreduce_fusion = self.fuses  # noqa: SLF001 - as the models say it
        summed = added if self.fuses else added * RANKS
        return summed, hidden_states if residual is None else hidden_states + residual


class KimiK25(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server_args = ServerArgs(model_path="dummy", device="cpu")
        set_global_server_args_for_scheduler(server_args)
        store = Path(cls.enterClassContext(tempfile.TemporaryDirectory())) / "store"
        parallel_state.init_distributed_environment(1, 0, f"file://{store}", 0, "gloo")
        cls.addClassCleanup(parallel_state.destroy_distributed_environment)
        parallel_state.initialize_model_parallel(backend="gloo")
        cls.addClassCleanup(parallel_state.destroy_model_parallel)
        initialize_dp_attention(server_args, SimpleNamespace(hidden_size=HIDDEN, dtype=torch.bfloat16))

    def setUp(self):
        self.model = KimiK25ForConditionalGeneration(KimiK25Config(deepcopy(TEXT), VISION))

    def captured(self, *, fuses: bool = False) -> list[float]:
        """What a forward pass of zeros through the wrapper gives the draft, a number for each captured state."""
        language = self.model.language_model
        language.model.layers = torch.nn.ModuleList(Layer(number, fuses=fuses) for number in range(LAYERS))
        torch.nn.init.zeros_(language.model.embed_tokens.weight)
        nothing = dict.fromkeys(("input_embeds", "nsa_cp_metadata"))
        batch = SimpleNamespace(forward_mode=ForwardMode.DECODE, can_run_tbo=False, **nothing)
        tokens = torch.zeros(1, dtype=torch.long)
        with (
            mock.patch.object(language.model.norm, "forward", lambda states, residual: (states, residual)),
            mock.patch.object(language.logits_processor, "forward", lambda *given: given[-1]),
            mock.patch.object(communicator, "tensor_model_parallel_all_reduce", lambda part: part.mul_(RANKS)),
        ):
            states = self.model(tokens, tokens, batch)
        return [state.unique().item() for state in states]

    def test_the_layers_of_the_draft_are_captured(self):
        self.model.set_eagle3_layers_to_capture([1, 3, 5])
        for fuses in (False, True):
            with self.subTest(fuses=fuses):
                self.assertEqual(self.captured(fuses=fuses), [RANKS * sum(range(last + 1)) for last in (1, 3, 5)])

    def test_a_draft_that_names_no_layers_gets_the_default_ones(self):
        self.model.set_eagle3_layers_to_capture()
        self.assertEqual(self.captured(), [RANKS * sum(range(layer)) for layer in (2, LAYERS // 2, LAYERS - 3)])

    def test_the_draft_shares_embedding_and_head(self):
        embed, head = self.model.get_embed_and_head()
        self.assertIs(embed, self.model.language_model.model.embed_tokens.weight)
        self.assertIs(head, self.model.language_model.lm_head.weight)

    def test_embedding_and_head_can_be_given(self):
        given = [torch.nn.Parameter(torch.ones(VOCABULARY, HIDDEN)) for _ in range(2)]
        with mock.patch("torch.cuda.synchronize"):
            self.model.set_embed_and_head(*given)
        for weight, one in zip(self.model.get_embed_and_head(), given, strict=True):
            self.assertIs(weight, one)


if __name__ == "__main__":
    unittest.main()
