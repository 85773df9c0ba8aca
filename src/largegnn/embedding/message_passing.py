"""Compute sums and means over neighbours as sparse products, with exact gradients (section 5 of the paper).

In: dense rows (n, d) and a `GraphStructure`. Out: means, or attention-weighted sums of reflected neighbours' rows.
The idea: with R_s the unit vector of relation set s, node i receives

    out_i = sum_j a_ij (h_j - 2 (h_j . R_s(ij)) R_s(ij)),      a_ij = softmax over i's pairs of the logit of s(ij)

The sum of the first terms is a sparse product. For the second terms, h_j . R_s is computed once for each distinct
(sender, set), as a sampled dense product; these numbers are summed per slot (receiver, set) and multiplied with the
small table R in a sparse product. The gradients have the same form. No array of (pairs, d) is made.
Cost: O((pairs + slots) d) time, O(pairs) memory besides input and output. On a CPU the order of summation is fixed, so
results are reproducible.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from largegnn.embedding.structure import GraphStructure

__all__ = [
    "attention",
    "gather_mean",
    "reflected_sum",
    "sampled_product",
    "sparse_matrix",
    "sparse_product",
    "sum_over_reverse",
]


@cache
def _acknowledge_beta() -> None:
    """Trigger PyTorch's one warning that sparse CSR is in beta, and suppress it, so that no later call issues it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))


def sparse_matrix(ptr: Tensor, columns: Tensor, values: Tensor, num_columns: int) -> Tensor:
    """Make a CSR matrix over the three arrays, without a copy."""
    _acknowledge_beta()
    return torch.sparse_csr_tensor(ptr, columns, values, size=(len(ptr) - 1, num_columns))


def sparse_product(
    ptr: Tensor, columns: Tensor, values: Tensor, rows: Tensor, *, onto: Tensor | None = None, scale: float = 1.0
) -> Tensor:
    """Multiply a CSR matrix by `rows` (m, d) and `scale`; the result is added in place to `onto`, if given."""
    matrix = sparse_matrix(ptr, columns, values, len(rows))
    beta = 0.0 if onto is None else 1.0
    result = rows.new_empty(len(ptr) - 1, rows.shape[1]) if onto is None else onto
    return torch.addmm(result, matrix, rows, beta=beta, alpha=scale, out=result)


def sampled_product(ptr: Tensor, columns: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Compute left[row] . right[column] for each entry of a CSR pattern."""
    pattern = sparse_matrix(ptr, columns, left.new_zeros(len(columns)), len(right))
    result: Tensor = torch.sparse.sampled_addmm(pattern, left, right.t(), beta=0.0).values()
    return result


def gather_mean(
    rows: Tensor, ptr: Tensor, columns: Tensor, back_ptr: Tensor, back_columns: Tensor, *, with_self: bool = False
) -> Tensor:
    """Average `rows` (m, d) over each row of a CSR pattern; an empty row gives zeros.

    `back_ptr` and `back_columns` are the transposed pattern, which the gradient needs. With `with_self`, the mean of a
    node includes its own row.
    """
    result: Tensor = _GatherMean.apply(rows, ptr, columns, back_ptr, back_columns, with_self)  # type: ignore[no-untyped-call]
    return result


class _GatherMean(torch.autograd.Function):
    """`gather_mean` with its gradient."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, ptr: Tensor, columns: Tensor, back_ptr: Tensor, back_columns: Tensor, with_self: bool
    ) -> Tensor:
        counts = ptr.diff().to(rows.dtype).add_(float(with_self))
        share = counts.clamp_min_(1.0).reciprocal_().unsqueeze(1)
        ctx.save_for_backward(back_ptr, back_columns, share)
        ctx.with_self = with_self
        sums = sparse_product(ptr, columns, rows.new_ones(len(columns)), rows)
        if with_self:
            sums += rows
        return sums.mul_(share)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        back_ptr, back_columns, share = ctx.saved_tensors
        grad = grad * share
        result = sparse_product(back_ptr, back_columns, grad.new_ones(len(back_columns)), grad)
        if ctx.with_self:
            result += grad
        return result, None, None, None, None, None


def attention(logits: Tensor, structure: GraphStructure) -> Tensor:
    """Attention weight of each pair of a slot, (K,): softmax of the set's logit over all pairs of the node."""
    at_slot = logits.index_select(0, structure.slot_sets)
    largest = torch.segment_reduce(at_slot, "max", offsets=structure.slot_ptr)
    powers = at_slot.sub_(largest.index_select(0, structure.slot_nodes)).exp_()
    counted = powers * structure.slot_pair_ptr.diff()
    totals = powers.new_zeros(structure.num_nodes).index_add_(0, structure.slot_nodes, counted)
    return powers.div_(totals.index_select(0, structure.slot_nodes))


def reflected_sum(rows: Tensor, relations: Tensor, logits: Tensor, structure: GraphStructure) -> Tensor:
    """Attention-weighted sum of the neighbours' `rows` (n, d), reflected at the unit vectors `relations` (S, d).

    `logits` (S,) are the attention logits of the relation sets. The sum of a node without neighbours is zero.
    """
    result: Tensor = _ReflectedSum.apply(rows, relations, logits, structure)  # type: ignore[no-untyped-call]
    return result


def sum_over_reverse(at_slot: Tensor, structure: GraphStructure) -> Tensor:
    """For each slot, sum `at_slot` (K,) over the slots of the reverse pairs of its pairs."""
    ones = at_slot.new_ones(structure.num_pairs)
    pattern = sparse_matrix(structure.slot_pair_ptr, structure.slot_of_reverse, ones, len(at_slot))
    result: Tensor = pattern @ at_slot
    return result


class _ReflectedSum(torch.autograd.Function):
    """`reflected_sum` with its gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, relations: Tensor, logits: Tensor, structure: GraphStructure) -> Tensor:
        weights = attention(logits, structure)
        along = sampled_product(structure.slot_ptr, structure.slot_inverse_sets, rows, relations)
        received = sum_over_reverse(along, structure)
        of_pair = weights.index_select(0, structure.slot_of_pair)
        result = sparse_product(structure.pair_ptr, structure.neighbors, of_pair, rows)
        reflected = weights * received
        ctx.save_for_backward(rows, relations, weights, received)
        ctx.structure = structure
        return sparse_product(structure.slot_ptr, structure.slot_sets, reflected, relations, onto=result, scale=-2.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, relations, weights, received = ctx.saved_tensors
        structure: GraphStructure = ctx.structure
        grad = grad.contiguous()
        along = sampled_product(structure.slot_ptr, structure.slot_sets, grad, relations)
        sent = sum_over_reverse(weights * along, structure)
        of_reverse = weights.index_select(0, structure.slot_of_reverse)
        grad_rows = sparse_product(structure.pair_ptr, structure.neighbors, of_reverse, grad)
        sparse_product(structure.slot_ptr, structure.slot_inverse_sets, sent, relations, onto=grad_rows, scale=-2.0)
        grad_relations = _over_sets(sent, rows, structure).index_select(0, structure.inverse_set)
        grad_relations += _over_sets(weights * received, grad, structure)
        grad_logits = _grad_logits(rows, grad, weights, received * along, structure)
        return grad_rows, grad_relations.mul_(-2.0), grad_logits, None


def _over_sets(at_slot: Tensor, rows: Tensor, structure: GraphStructure) -> Tensor:
    """Sum at_slot * rows[node] over the slots of each set, (S, d)."""
    ordered = at_slot.index_select(0, structure.set_slots)
    return sparse_product(structure.set_ptr, structure.set_nodes, ordered, rows)


def _grad_logits(rows: Tensor, grad: Tensor, weights: Tensor, reflected: Tensor, structure: GraphStructure) -> Tensor:
    """Gradient of the sets' logits, (S,), through the softmax over each node's pairs."""
    of_pair = sampled_product(structure.pair_ptr, structure.neighbors, grad, rows)
    of_slot = weights.new_zeros(len(weights)).index_add_(0, structure.slot_of_pair, of_pair)
    gain = of_slot.sub_(reflected, alpha=2.0).mul_(weights)
    mean = gain.new_zeros(structure.num_nodes).index_add_(0, structure.slot_nodes, gain)
    counted = weights * structure.slot_pair_ptr.diff()
    gain = gain.sub_(counted.mul_(mean.index_select(0, structure.slot_nodes)))
    num_sets = structure.num_sets
    return gain.new_zeros(num_sets).index_add_(0, structure.slot_sets, gain)
