"""The tree of draft tokens: how it is laid out, and which of its tokens the target accepts.

A request's tree has ``n`` slots; slot 0 holds the token that the target has chosen already. ``retrive_index`` [batch,
n] numbers the slots over the whole batch; ``retrive_next_token`` and ``retrive_next_sibling`` [batch, n] hold a
slot's first child and next sibling within its request, or -1. The spelling is SGLang's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

FULL_MASK = 0
"""``TreeMaskMode.FULL_MASK``: a row for each slot over the sequence and the tree, [n, sequence + n] each request."""

QLEN_ONLY = 1
"""``TreeMaskMode.QLEN_ONLY``: a row for each slot over the tree alone, [n, n] each request."""


@dataclass(frozen=True)
class Verdict:
    """How far one request's draft was accepted."""

    last: int
    """Number, over the whole batch, of the last accepted slot."""

    slot: int
    """The same slot within its request."""

    accepted: int
    """Accepted draft tokens, 0 to the tree's depth."""


def build_tree_kernel_efficient(
    parent_list: torch.Tensor,
    selected_index: torch.Tensor,
    seq_lens: torch.Tensor,
    tree_mask: torch.Tensor,
    positions: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    topk: int,
    _depth: int,
    draft_token_num: int,
    tree_mask_mode: int = FULL_MASK,
) -> None:
    """Replace ``sgl_kernel.build_tree_kernel_efficient``.

    parent_list [batch, candidates] and selected_index [batch, n - 1] name the drafted candidates as
    ``organize_draft_results`` does; seq_lens [batch] excludes the tree. Filled: tree_mask (flat, bool, True where a
    slot sees a position; its other values stay), positions [batch * n] and the three ``retrive_*`` [batch, n].
    """
    if tree_mask_mode not in {FULL_MASK, QLEN_ONLY}:
        raise NotImplementedError(f"tree mask mode {tree_mask_mode} has no CPU version in sglang-cpu-standin")
    n, mask_start = draft_token_num, 0
    for request, seq_len in enumerate(seq_lens.tolist()):
        parents = _parents(selected_index[request].tolist(), parent_list[request].tolist(), topk)
        width = seq_len + n if tree_mask_mode == FULL_MASK else n
        mask = tree_mask.view(-1)[mask_start : mask_start + n * width].view(n, width)[:, width - n :]
        mask_start += n * width
        mask.fill_(value=False)
        for slot in range(n):
            path = _path_to_root(slot, parents)
            mask[slot, path] = True
            positions[request * n + slot] = seq_len + len(path) - 1
        first_child, next_sibling = _links(parents)
        retrive_index[request] = torch.arange(request * n, (request + 1) * n)
        retrive_next_token[request] = torch.tensor(first_child)
        retrive_next_sibling[request] = torch.tensor(next_sibling)


def verify_tree_greedy(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    target_predict: torch.Tensor,
) -> None:
    """Replace ``sgl_kernel.verify_tree_greedy``: accept the drafted tokens that the target would have chosen.

    candidates and target_predict [batch, n] hold the drafted token of each slot and the target's choice after it.
    Filled: predicts [batch * n] with the token that follows each accepted slot, accept_index [batch, depth + 1] with
    the accepted slots (the rest stays), accept_token_num [batch] with the number of accepted draft tokens.
    """
    chosen = target_predict.reshape(-1).tolist()

    def accept(_request: int, _slot: int, last: int, token: int) -> bool:
        return chosen[last] == token

    links = (retrive_index, retrive_next_token, retrive_next_sibling)
    for verdict in _walk(predicts, accept_index, accept_token_num, candidates, links, accept):
        predicts[verdict.last] = chosen[verdict.last]


def tree_speculative_sampling_target_only(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    retrive_index: torch.Tensor,
    retrive_next_token: torch.Tensor,
    retrive_next_sibling: torch.Tensor,
    uniform_samples: torch.Tensor,
    uniform_samples_for_final_sampling: torch.Tensor,
    target_probs: torch.Tensor,
    draft_probs: torch.Tensor,
    threshold_single: float = 1.0,
    threshold_acc: float = 1.0,
    *,
    deterministic: bool = True,
) -> None:
    """Replace ``sgl_kernel.tree_speculative_sampling_target_only``: accept drafts so that samples follow the target.

    uniform_samples [batch, n] and uniform_samples_for_final_sampling [batch] are in [0, 1); target_probs [batch, n,
    vocabulary] follows each slot; draft_probs, of the same shape and zero, collects the mass of refused tokens. The
    rest is as in ``verify_tree_greedy``. Thresholds of 1 leave the target's distribution unchanged.
    """
    del deterministic  # this version always is
    threshold = max(threshold_acc, 1e-9)
    mass: dict[tuple[int, int], float] = {}

    def accept(request: int, slot: int, _last: int, token: int) -> bool:
        probability = float(target_probs[request, slot, token])
        mass[request, slot] = mass.get((request, slot), 0.0) + probability
        coin = float(uniform_samples[request, slot])
        if coin <= mass[request, slot] / threshold or probability >= threshold_single:
            return True
        draft_probs[request, slot, token] = probability
        return False

    links = (retrive_index, retrive_next_token, retrive_next_sibling)
    verdicts = list(_walk(predicts, accept_index, accept_token_num, candidates, links, accept))
    for request, verdict in enumerate(verdicts):
        rest = (target_probs[request, verdict.slot] - draft_probs[request, verdict.slot]).clamp_min(0)
        predicts[verdict.last] = _draw(rest, uniform_samples_for_final_sampling[request])


def _draw(weights: torch.Tensor, coin: torch.Tensor) -> int:
    """Return an index with probability in proportion to its weight, the last if all are 0; ``coin`` is in [0, 1)."""
    cumulative = weights.cumsum(dim=0)
    # To the right of equal sums lies the next index that has a weight.
    index = torch.searchsorted(cumulative, coin * cumulative[-1], right=True)
    return int(index.clamp_max(len(weights) - 1))


def _parents(selected: list[int], parent_list: list[int], topk: int) -> list[int]:
    """Return the parent slot of each slot; the root's is -1.

    Candidate c was drafted as child number ``c % topk`` of group ``c // topk``; group 0 hangs on the root, and
    ``parent_list`` holds the candidate that any other group hangs on.
    """
    parents = [-1]
    for candidate in selected:
        group = candidate // topk
        parents.append(0 if group == 0 else selected.index(int(parent_list[group])) + 1)
    return parents


def _path_to_root(slot: int, parents: list[int]) -> list[int]:
    path = []
    while slot != -1:
        path.append(slot)
        slot = parents[slot]
    return path


def _links(parents: list[int]) -> tuple[list[int], list[int]]:
    """Return the first child and the next sibling of each slot, or -1."""
    first_child, next_sibling = [-1] * len(parents), [-1] * len(parents)
    for slot in range(len(parents) - 1, 0, -1):
        next_sibling[slot] = first_child[parents[slot]]
        first_child[parents[slot]] = slot
    return first_child, next_sibling


def _walk(
    predicts: torch.Tensor,
    accept_index: torch.Tensor,
    accept_token_num: torch.Tensor,
    candidates: torch.Tensor,
    links: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    accept: Callable[[int, int, int, int], bool],
) -> Iterator[Verdict]:
    """Go down each request's tree while ``accept(request, slot, last, token)`` takes one of the slot's children."""
    numbers, first_child, next_sibling = (link.tolist() for link in links)
    tokens = candidates.tolist()
    for request in range(len(tokens)):
        slot, accepted, last = 0, 0, numbers[request][0]
        accept_index[request, 0] = last
        while accepted < accept_index.shape[1] - 1:
            child = first_child[request][slot]
            while child != -1 and not accept(request, slot, last, tokens[request][child]):
                child = next_sibling[request][child]
            if child == -1:
                break
            predicts[last] = tokens[request][child]
            slot, accepted, last = child, accepted + 1, numbers[request][child]
            accept_index[request, accepted] = last
        accept_token_num[request] = accepted
        yield Verdict(last, slot, accepted)
