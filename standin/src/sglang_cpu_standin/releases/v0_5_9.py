"""SGLang 0.5.9: each patch says what the stock module lacks on a CPU."""

import importlib
import multiprocessing
import os
from collections.abc import Callable, Mapping
from functools import partial
from types import ModuleType

import torch

from sglang_cpu_standin.attention import MultiStepDraftBackend, speculative_backend
from sglang_cpu_standin.hooks import Patch, replace, wrap
from sglang_cpu_standin.ops import kv_index, paged, renorm, simulate, tree
from sglang_cpu_standin.ops.launch import TorchKernel

START_METHOD = "SGLANG_CPU_STANDIN_START_METHOD"
"""Environment variable: how the server starts its scheduler and detokenizer.

``fork`` needs half the time and memory of SGLang's own ``spawn``, which stays the default.
"""

TORCH_NATIVE = "sglang.srt.layers.attention.torch_native_backend"


def _spec_utils(module: ModuleType) -> None:
    """Triton kernels that index the KV cache, and a tensor that is allocated on ``cuda``."""
    replace(module, "assign_req_to_token_pool", TorchKernel(kv_index.scatter_slots))
    replace(module, "assign_req_to_token_pool_func", kv_index.scatter_slots_of_batch)
    replace(
        module,
        "generate_simulated_accept_index",
        partial(
            simulate.generate_simulated_accept_index,
            simulate_acc_len=module.SIMULATE_ACC_LEN,
            simulate_acc_method=module.SIMULATE_ACC_METHOD,
        ),
    )


def _eagle_info_v2(module: ModuleType) -> None:
    """Triton kernels that index the KV cache, and operations that are imported only with CUDA."""
    replace(module, "assign_draft_cache_locs_page_size_1", TorchKernel(kv_index.gather_draft_slots))
    replace(module, "assign_extend_cache_locs", TorchKernel(kv_index.gather_slots))
    replace(module, "assign_extend_cache_locs_func", kv_index.extend_slots)
    replace(module, "fill_new_verified_id", TorchKernel(kv_index.last_accepted))
    module.top_k_renorm_prob = renorm.top_k_renorm_prob
    module.top_p_renorm_prob = renorm.top_p_renorm_prob
    module.tree_speculative_sampling_target_only = tree.tree_speculative_sampling_target_only


def _eagle_utils(module: ModuleType) -> None:
    """Operations of ``sgl_kernel`` that are called only with CUDA."""
    module.sgl_build_tree_kernel_efficient = tree.build_tree_kernel_efficient

    def verify_tree_greedy_func(
        *,
        predicts: torch.Tensor,
        accept_index: torch.Tensor,
        accept_token_num: torch.Tensor,
        topk: int = -1,
        **others: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        del topk
        tree.verify_tree_greedy(predicts, accept_index, accept_token_num, **others)
        return predicts, accept_index, accept_token_num

    replace(module, "verify_tree_greedy_func", verify_tree_greedy_func)


def _allocator(module: ModuleType) -> None:
    """Triton kernels that hand out the slots of pages."""
    replace(module, "alloc_extend_kernel", TorchKernel(paged.extend_slots))
    replace(module, "alloc_decode_kernel", TorchKernel(paged.decode_slots))


def _xgrammar_backend(module: ModuleType) -> None:
    """A grammar's mask is applied on a CPU by a method that the class lacks; xgrammar has one."""
    apply = importlib.import_module("xgrammar").apply_token_bitmask_inplace
    module.XGrammarGrammar.apply_vocab_mask_cpu = staticmethod(apply)


def _memory_pool(module: ModuleType) -> None:
    """The pool warms up a Triton copy kernel; upstream has the same copy in torch."""
    pool = module.MHATokenToKVPool

    def move_kv_cache(self: object, tgt_loc: torch.Tensor, src_loc: torch.Tensor) -> None:
        module.move_kv_cache_native(self.k_buffer, self.v_buffer, tgt_loc, src_loc)

    def no_warmup(self: object) -> None:
        del self

    replace(pool, "_init_kv_copy_and_warmup", no_warmup)
    replace(pool, "move_kv_cache", move_kv_cache)


def _torch_native_backend(module: ModuleType) -> None:
    """The backend knows no speculative forward mode."""
    replace(module, "TorchNativeAttnBackend", speculative_backend(module.TorchNativeAttnBackend))


def _draft_utils(module: ModuleType) -> None:
    """The factory has no backend for a draft on a CPU."""
    factory = module.DraftBackendFactory

    def create_decode_backend(self: object) -> MultiStepDraftBackend | None:
        if self.speculative_num_steps == 1:
            return None
        backend = importlib.import_module(TORCH_NATIVE).TorchNativeAttnBackend
        return MultiStepDraftBackend(backend, self.draft_model_runner, self.topk, self.speculative_num_steps)

    def create_draft_extend_backend(self: object) -> None:
        del self  # draft extend uses the draft model's own backend

    replace(factory, "create_decode_backend", create_decode_backend)
    replace(factory, "create_draft_extend_backend", create_draft_extend_backend)


def _scheduler(_module: ModuleType) -> None:
    """Two calls about CUDA streams that torch does not offer on a CPU, where they have nothing to do."""

    def nothing(*_args: object, **_kwargs: object) -> None:
        return None

    replace(torch.cuda, "synchronize", nothing)
    replace(torch.Tensor, "record_stream", nothing)


def _engine(module: ModuleType) -> None:
    """The engine always spawns its processes; a fork shares what the first one has imported."""
    method = os.environ.get(START_METHOD)
    if not method:
        return

    def then_choose(original: Callable[[object], None], server_args: object) -> None:
        original(server_args)
        multiprocessing.set_start_method(method, force=True)

    wrap(module, "_set_envs_and_config", then_choose)


PATCHES: Mapping[str, Patch] = {
    "sglang.srt.constrained.xgrammar_backend": _xgrammar_backend,
    "sglang.srt.entrypoints.engine": _engine,
    TORCH_NATIVE: _torch_native_backend,
    "sglang.srt.managers.scheduler": _scheduler,
    "sglang.srt.mem_cache.allocator": _allocator,
    "sglang.srt.mem_cache.memory_pool": _memory_pool,
    "sglang.srt.speculative.draft_utils": _draft_utils,
    "sglang.srt.speculative.eagle_info_v2": _eagle_info_v2,
    "sglang.srt.speculative.eagle_utils": _eagle_utils,
    "sglang.srt.speculative.spec_utils": _spec_utils,
}
"""Module of SGLang -> its patch."""
