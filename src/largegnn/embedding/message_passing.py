"""Compute sparse sums over neighbours with exact gradients, never a value per edge and dimension (section 5).

In: dense rows (n, d) and a `GraphStructure`. Out: rows of means, or of reflected and weighted neighbours.
The idea: with R_s the unit vector of relation set s, node i receives

    out_i = sum_j a_ij (h_j - 2 (h_j . R_s(ij)) R_s(ij)),      a_ij = softmax over i's pairs of the logit of s(ij)

The first half is a sparse product. In the second, h_j . R_s is needed once for each distinct (sender, set), a dense
product of which few entries are needed; the scalars are summed per slot (receiver, set) and multiplied by the small
table R in a sparse product. Both directions of the gradient have the same form.
Cost: O((pairs + slots) d) time, O(pairs) memory besides input and output. On a CPU the order of summation does not
vary, nor does the result.
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
    """Torch warns once that sparse CSR is in beta; trigger the warning here, so that no later call raises it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([]), (1, 1))


def sparse_matrix(ptr: Tensor, columns: Tensor, values: Tensor, num_columns: int) -> Tensor:
    """A CSR matrix that shares its three arrays."""
    _acknowledge_beta()
    return torch.sparse_csr_tensor(ptr, columns, values, size=(len(ptr) - 1, num_columns))


def sparse_product(
    ptr: Tensor, columns: Tensor, values: Tensor, rows: Tensor, *, onto: Tensor | None = None, scale: float = 1.0
) -> Tensor:
    """A CSR matrix times `rows` (m, d), times `scale`; added in place to `onto` if there is one."""
    matrix = sparse_matrix(ptr, columns, values, len(rows))
    beta = 0.0 if onto is None else 1.0
    result = rows.new_empty(len(ptr) - 1, rows.shape[1]) if onto is None else onto
    return torch.addmm(result, matrix, rows, beta=beta, alpha=scale, out=result)


def sampled_product(ptr: Tensor, columns: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """left[row] . right[column] at each entry of a CSR pattern."""
    pattern = sparse_matrix(ptr, columns, left.new_zeros(len(columns)), len(right))
    result: Tensor = torch.sparse.sampled_addmm(pattern, left, right.t(), beta=0.0).values()
    return result


def gather_mean(
    rows: Tensor, ptr: Tensor, columns: Tensor, back_ptr: Tensor, back_columns: Tensor, *, with_self: bool = False
) -> Tensor:
    """Mean of `rows` (m, d) over each row of a CSR pattern, zero where it is empty; its transpose is for the gradient.

    `with_self` adds the node's own row to those of its neighbours.
    """
    result: Tensor = _GatherMean.apply(rows, ptr, columns, back_ptr, back_columns, with_self)  # type: ignore[no-untyped-call]
    return result


class _GatherMean(torch.autograd.Function):
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
    """The weight of each pair of a slot, (K,): softmax of its set's logit over all pairs of the node."""
    at_slot = logits.index_select(0, structure.slot_sets)
    largest = torch.segment_reduce(at_slot, "max", offsets=structure.slot_ptr)
    powers = at_slot.sub_(largest.index_select(0, structure.slot_nodes)).exp_()
    counted = powers * structure.slot_pair_ptr.diff()
    totals = powers.new_zeros(structure.num_nodes).index_add_(0, structure.slot_nodes, counted)
    return powers.div_(totals.index_select(0, structure.slot_nodes))


def reflected_sum(rows: Tensor, relations: Tensor, logits: Tensor, structure: GraphStructure) -> Tensor:
    """Attention-weighted sum of the neighbours' `rows` (n, d), reflected at the unit vectors `relations` (S, d).

    `logits` (S,) belong to the relation sets. A node without neighbours gets zeros.
    """
    result: Tensor = _ReflectedSum.apply(rows, relations, logits, structure)  # type: ignore[no-untyped-call]
    return result


def sum_over_reverse(at_slot: Tensor, structure: GraphStructure) -> Tensor:
    """For each slot the sum of `at_slot` (K,) over the slots that its pairs' reverses are in."""
    ones = at_slot.new_ones(structure.num_pairs)
    pattern = sparse_matrix(structure.slot_pair_ptr, structure.slot_of_reverse, ones, len(at_slot))
    result: Tensor = pattern @ at_slot
    return result


class _ReflectedSum(torch.autograd.Function):
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
        pattern = (structure.slot_ptr, structure.slot_sets)
        return sparse_product(*pattern, reflected, relations, onto=result, scale=-2.0)

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
        pattern = (structure.slot_ptr, structure.slot_inverse_sets)
        sparse_product(*pattern, sent, relations, onto=grad_rows, scale=-2.0)
        grad_relations = _over_sets(sent, rows, structure).index_select(0, structure.inverse_set)
        grad_relations += _over_sets(weights * received, grad, structure)
        grad_logits = _grad_logits(rows, grad, weights, received * along, structure)
        return grad_rows, grad_relations.mul_(-2.0), grad_logits, None


def _over_sets(at_slot: Tensor, rows: Tensor, structure: GraphStructure) -> Tensor:
    """Sum of at_slot * rows[node] over the slots of each set, (S, d)."""
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
