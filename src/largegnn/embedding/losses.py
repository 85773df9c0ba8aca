"""Compute the losses of training: alignment, cross-subgraph negatives, reconstruction (section 5.3 of the paper).

In: a `StepContext`. Out: a scalar with its gradient, or None if there is nothing to add in this step. The weights of
the functions in `LOSSES` are the setting `train.losses`.
The idea: for an anchor x with partner y and candidates j, d the squared Euclidean distance,

    z_j = d(x, y) - d(x, j) + gamma,  z = 0 for x and y themselves;    loss = LSE_j(scale * standardised z_j + shift)

standardised with the mean and standard deviation of the row, through which no gradient flows. The two zeros make a soft
hinge: a candidate farther from x than y by more than gamma has little weight. The loss is a mean over anchors, so it
and its gradient are computed for a chunk of anchors at a time: no (batch x nodes) array is kept.
Cost: three products of anchors with candidates in D dimensions; memory `chunk_bytes`, besides the gradient itself.

# Paper: hard negatives by log-sum-exp, all nodes of the subgraph as candidates, gamma 1; input rows for the other two.
# Departs: the printed signs reward closeness to negatives, so they are reversed; distances instead of inner products,
#     as in the authors' code; candidates may be a sample, to which both zeros are always added. The paper's
#     cross-subgraph loss has no positive term; here it is the distance of the seed's own two rows, as for alignment.
"""

from __future__ import annotations

import contextlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from largegnn.embedding.feeding import ReadySubgraph
from largegnn.embedding.fused import MAX_COLUMNS, has_kernels, weigh_
from largegnn.embedding.message_passing import gather_mean
from largegnn.embedding.sampling import dropout
from largegnn.embedding.structure import GraphStructure
from largegnn.errors import InputError
from largegnn.machine.precision import training_precision

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = [
    "LOSSES",
    "FixedShape",
    "HardNegatives",
    "Loss",
    "SampledRows",
    "StepContext",
    "alignment_loss",
    "cross_negative_loss",
    "fixed_shape_alignment_loss",
    "losses_in_order",
    "printed_cross_loss",
    "reconstruction_loss",
]

_CHUNK_BYTES = 8 * 2**20
_ALIGNMENT = 8  # columns: matrix products on a GPU are faster if their dimensions are multiples of this
_MIN_EXPONENT = -40.0  # exp of it added to 1 gives 1, in double precision too


@dataclass(frozen=True, eq=False)
class SampledRows:
    """A sample of entities (c,), ascending, and their input rows (c, d)."""

    entities: Tensor
    rows: Tensor


@dataclass(frozen=True, eq=False)
class StepContext:
    """The input of the losses in one step: k entities of a subgraph, b of its seeds, encoder outputs for m nodes.

    - `subgraph`: structure, global ids (k,) ascending, all seeds of the subgraph
    - `rows` (k, d): the input rows of its entities; `relation_rows` (2R, d). Gradients flow to both
    - `seeds` (b, 2): the seeds of this step in local ids, that is, as indices into `rows`
    - `outputs` (m, D): the encoder's outputs after dropout; `seeds_in_outputs` (b, 2) and `negatives_in_outputs` (c,)
      are indices into `outputs`, and None means that all outputs are negatives
    - `entity_table` (n, d): the input rows of all entities, without gradient. On a cluster, the input rows of a random
      sample of entities, whose ids are `table_entities` (n,), ascending; None means all entities
    - `generator`: the source of all random draws
    """

    subgraph: ReadySubgraph[GraphStructure]
    rows: Tensor
    relation_rows: Tensor
    seeds: Tensor
    outputs: Tensor
    seeds_in_outputs: Tensor
    negatives_in_outputs: Tensor | None
    entity_table: Tensor
    options: TrainSettings
    generator: torch.Generator
    table_entities: Tensor | None = None


Loss = Callable[[StepContext], Tensor | None]


def alignment(context: StepContext) -> Tensor:
    """Pull the two ends of a seed together, and push them away from other nodes of the subgraph."""
    constants = HardNegatives.of(context.options, context.options.gamma)
    return alignment_loss(context.outputs, context.seeds_in_outputs, context.negatives_in_outputs, constants)


def reconstruction(context: StepContext) -> Tensor:
    """Pull the input row of each entity towards the mean of its neighbours' rows."""
    rate = context.options.reconstruction_dropout
    return reconstruction_loss(context.rows, context.subgraph.graph, rate, context.generator)


def cross_subgraph(context: StepContext) -> Tensor | None:
    """Push the input rows of seeds away from the rows of entities outside the subgraph.

    None if all sampled entities are inside the subgraph.
    """
    outside, seeds = _outside_rows(context), context.seeds
    if not len(outside):
        return None
    seed_rows = context.rows.index_select(0, seeds.flatten()).view(len(seeds), 2, -1)
    return cross_negative_loss(seed_rows, outside, HardNegatives.of(context.options, context.options.cross_gamma))


def cross_subgraph_printed(context: StepContext) -> Tensor | None:
    """Push the input rows of all entities of the subgraph away from the rows of entities outside, as in the paper."""
    outside = _outside_rows(context)
    if not len(outside):
        return None
    return printed_cross_loss(context.rows, outside, chunk_bytes=_chunk_bytes(context.options))


# The order in which a step computes them, whatever the order in the settings, since losses draw random numbers.
# A loss with weight 0 is not computed and draws nothing.
LOSSES: dict[str, Loss] = {
    "alignment": alignment,
    "reconstruction": reconstruction,
    "cross_subgraph": cross_subgraph,
    "cross_subgraph_printed": cross_subgraph_printed,
}


def losses_in_order(weights: Mapping[str, float]) -> list[tuple[str, float, Loss]]:
    """List name, weight and function of each loss with a weight: losses of `LOSSES` in order, then others by name.

    A name `module:function` is a loss that the user has written.
    """
    names = [*LOSSES, *sorted(weights.keys() - LOSSES.keys())]
    return [(name, weights[name], _loss_of(name)) for name in names if weights.get(name)]


def _loss_of(name: str) -> Loss:
    if name in LOSSES:
        return LOSSES[name]
    try:
        # Without a colon, `resolve_name` would take the name for a module; with one in front it raises ValueError.
        loss: Loss = pkgutil.resolve_name(name if ":" in name else f":{name}")
    except (ValueError, ImportError, AttributeError) as error:
        raise InputError(
            f"no loss is called {name!r}",
            expected=f"one of {', '.join(LOSSES)}, or module:function",
            fix="change its name in train.losses, or check that the module is on PYTHONPATH",
        ) from error
    return loss


def _outside_rows(context: StepContext) -> Tensor:
    """Sample entities from the table, and return the input rows of the sampled entities outside the subgraph."""
    table, entities = context.entity_table, context.subgraph.entities
    drawn = torch.randint(
        len(table), (context.options.cross_negatives,), generator=context.generator, device=entities.device
    )
    ids = drawn if context.table_entities is None else context.table_entities[drawn]
    index = torch.searchsorted(entities, ids).clamp_(max=len(entities) - 1)
    # The table may be in main memory while the subgraph is on a GPU.
    outside = drawn[entities[index] != ids].to(table.device)
    return table.index_select(0, outside).to(entities.device)


@dataclass(frozen=True)
class HardNegatives:
    """The constants of the hard-negative loss."""

    gamma: float = 1.0
    scale: float = 30.0
    shift: float = 10.0
    chunk_bytes: int = _CHUNK_BYTES

    @classmethod
    def of(cls, options: TrainSettings, gamma: float) -> HardNegatives:
        """The constants of a training run, with the margin `gamma`."""
        return cls(gamma, options.scale, options.shift, _chunk_bytes(options))


_DEFAULT = HardNegatives()


def _chunk_bytes(options: TrainSettings) -> int:
    """Bytes of (batch x nodes) values in memory at once: a small share of the memory allowed."""
    return max(1 << 22, min(1 << 30, options.memory_bytes // 64))


@dataclass(frozen=True, eq=False)
class FixedShape:
    """Which seeds and candidates count in a loss over arrays of a fixed size.

    `shares` (b,): the weight of each seed, 1 / number of seeds, or 0 for padding. `is_candidate` (m,): 1 for a
    candidate, 0 for padding; None means that all rows are candidates.
    """

    shares: Tensor
    is_candidate: Tensor | None = None


def alignment_loss(
    outputs: Tensor,
    seeds: Tensor,
    negatives: Tensor | None,
    constants: HardNegatives = _DEFAULT,
) -> Tensor:
    """Hard-negative loss of `seeds` (b, 2) against distinct `negatives` (m,), all indices into `outputs` (n, D).

    The loss of the left ends as anchors plus the loss of the right ends, mean over seeds. If `negatives` is None, all n
    outputs are negatives. Where a seed's own two nodes are among the negatives, they are the two zeros, which are
    added in any case.
    """
    candidates = outputs if negatives is None else outputs.index_select(0, negatives)
    index_of = torch.arange(len(outputs), device=outputs.device)
    if negatives is not None:
        index_of = torch.full_like(index_of, -1)
        index_of[negatives] = torch.arange(len(negatives), device=outputs.device)
    ends = seeds.t().flatten()
    rows = outputs.index_select(0, ends).view(2, len(seeds), -1)
    return _loss(rows, candidates, index_of.index_select(0, ends).view(2, len(seeds)), constants)


def fixed_shape_alignment_loss(
    outputs: Tensor,
    indices: Tensor,
    fixed: FixedShape,
    constants: HardNegatives,
) -> Tensor:
    """`alignment_loss` of outputs (2 b + m, D): the seeds' left ends, then their right ends, then the negatives.

    `indices` (2, b): the index of each end among the negatives, or -1.
    """
    rows, candidates = outputs[: indices.numel()].view(*indices.shape, -1), outputs[indices.numel() :]
    return _loss(rows, candidates, indices, constants, fixed)


def cross_negative_loss(
    seed_rows: Tensor,
    outside_rows: Tensor,
    constants: HardNegatives = _DEFAULT,
    fixed: FixedShape | None = None,
) -> Tensor:
    """Push the input rows of seeds (b, 2, d) away from the rows of entities outside the subgraph (m, d).

    The outside rows get no gradient.
    """
    rows = seed_rows.transpose(0, 1).contiguous()
    indices = torch.full(rows.shape[:2], -1, dtype=torch.int64, device=rows.device)
    return _loss(rows, outside_rows.detach(), indices, constants, fixed)


def _loss(
    rows: Tensor, candidates: Tensor, indices: Tensor, constants: HardNegatives, fixed: FixedShape | None = None
) -> Tensor:
    """The hard-negative loss; parameters as in `_hard_negatives`."""
    result: Tensor = _HardNegativeLoss.apply(rows, candidates, indices, constants, fixed)  # type: ignore[no-untyped-call]
    return result


def reconstruction_loss(
    entity_rows: Tensor, structure: GraphStructure, rate: float, generator: torch.Generator
) -> Tensor:
    """Mean over all n nodes of ||dropout(row) - dropout(mean of the neighbours' rows)||^2, summed over dimensions.

    A node without neighbours adds nothing but counts in the mean. `entity_rows` (n, d) get the gradient of both terms.
    """
    pattern = (structure.pair_ptr, structure.neighbors)
    means = dropout(gather_mean(entity_rows, *pattern, *pattern), rate, generator)
    has_neighbors = (structure.pair_ptr.diff() > 0).to(entity_rows.dtype).unsqueeze(1)
    return ((dropout(entity_rows, rate, generator) - means) * has_neighbors).square().sum() / len(entity_rows)


def printed_cross_loss(rows: Tensor, outside_rows: Tensor, *, chunk_bytes: int = _CHUNK_BYTES) -> Tensor:
    """The loss log(1 + sum of exp(x_i . y_j) over all rows x_i (k, d) of the subgraph and y_j (m, d) outside it).

    `cross_negative_loss` pushes only the seeds away and pulls their two ends together; this loss pushes all entities
    and pulls none together. The outside rows get no gradient.

    # Paper: inner products of input rows, all entities of the subgraph, no positive term.
    # Departs: the printed signs reward closeness, so they are reversed; all entities share one sample.
    """
    result: Tensor = _PrintedCrossLoss.apply(rows, outside_rows, chunk_bytes)  # type: ignore[no-untyped-call]
    return result


class _HardNegativeLoss(torch.autograd.Function):
    """The hard-negative loss, whose gradients are computed in the forward pass, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, candidates: Tensor, indices: Tensor, constants: HardNegatives, fixed: FixedShape | None
    ) -> Tensor:
        rows_need_grad, candidates_need_grad, *_ = ctx.needs_input_grad
        loss, grad_rows, grad_candidates = _hard_negatives(
            rows, candidates, indices, constants, rows_need_grad, candidates_need_grad, fixed
        )
        ctx.save_for_backward(grad_rows, grad_candidates)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad_rows, grad_candidates = (None if saved is None else saved * grad for saved in ctx.saved_tensors)
        return grad_rows, grad_candidates, None, None, None


def _hard_negatives(
    rows: Tensor,
    candidates: Tensor,
    indices: Tensor,
    constants: HardNegatives,
    rows_need_grad: bool,
    candidates_need_grad: bool,
    fixed: FixedShape | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The loss of seeds' rows (2, b, D) against candidates (m, D), and its gradients with respect to both.

    `indices` (2, b): the index of each seed's node among the candidates, or -1. With the squared norms as one more
    dimension and the constant of a row as another, one product gives the centred z:
    `z = row_factors @ column_factors.t()`.
    """
    num_seeds, num_candidates = rows.shape[1], len(candidates)
    norms = candidates.square().sum(dim=1, keepdim=True)
    column_factors = _concatenate([candidates, norms.neg(), torch.ones_like(norms)], fixed)
    is_candidate = None if fixed is None else fixed.is_candidate
    if is_candidate is not None:
        column_factors *= is_candidate.unsqueeze(1)
    pair_distances = (rows[0] - rows[1]).square().sum(dim=1)
    # How many of the two zeros of each row are not among the candidates.
    missing = (indices < 0).sum(dim=0).to(rows.dtype)
    count = missing + (num_candidates if is_candidate is None else is_candidate.sum())
    total = rows.new_zeros(())
    grad_rows = torch.zeros_like(rows) if rows_need_grad else None
    # For each candidate the sum of weights times anchors, and in one more column the sum of weights.
    pushes: Tensor | None = None
    dim = candidates.shape[1]
    step = max(1, constants.chunk_bytes // (max(1, num_candidates) * rows.element_size()))
    for side in (0, 1):
        anchors, partners = rows[side], rows[1 - side]
        offset = pair_distances - anchors.square().sum(dim=1) + constants.gamma
        row_factors = _concatenate([2.0 * anchors, torch.ones_like(pair_distances)[:, None], offset[:, None]], fixed)
        zero_terms = (indices[side] >= 0) * (pair_distances + constants.gamma) + (
            indices[1 - side] >= 0
        ) * constants.gamma
        mean = (row_factors @ column_factors.sum(dim=0) - zero_terms) / count
        row_factors[:, dim + 1] -= mean
        for start in range(0, num_seeds, step):
            chunk = slice(start, start + step)
            z = row_factors[chunk] @ column_factors.t()
            losses, slope = _weigh(z, mean[chunk], indices[:, chunk], constants, missing[chunk], count[chunk], fixed)
            total += losses.sum() / num_seeds if fixed is None else losses @ fixed.shares[chunk]
            if grad_rows is None:
                continue
            # With w = slope * z = d loss / d z: every candidate is pushed by -2 w (candidate - anchor), and the
            # partner is pulled towards the anchor with the sum of all w.
            slope = slope.mul_(2.0 / num_seeds if fixed is None else 2.0 * fixed.shares[chunk]).unsqueeze(1)
            pull = z.sum(dim=1, keepdim=True).mul_(slope)
            with _gradient_precision(fixed):
                grad_rows[side, chunk] += (z @ candidates).mul_(slope).addcmul_(pull, partners[chunk], value=-1.0)
                grad_rows[1 - side, chunk] += (partners[chunk] - anchors[chunk]).mul_(pull)
                if candidates_need_grad:
                    weighted = _concatenate([slope * anchors[chunk], slope], fixed)
                    if pushes is None:
                        pushes = weighted.new_zeros(num_candidates, weighted.shape[1])
                    pushes.addmm_(z.t(), weighted)
    if pushes is None:
        return total, grad_rows, None
    return total, grad_rows, torch.addcmul(pushes[:, :dim], pushes[:, dim : dim + 1], candidates, value=-1.0)


def _concatenate(parts: list[Tensor], fixed: FixedShape | None) -> Tensor:
    """Concatenate columns; for arrays of a fixed size (the GPU) padded with zeros to a multiple of eight columns."""
    if fixed is not None:
        num_padding = -sum(part.shape[1] for part in parts) % _ALIGNMENT
        parts = [*parts, parts[0].new_zeros(len(parts[0]), num_padding)]
    return torch.cat(parts, dim=1)


def _gradient_precision(fixed: FixedShape | None) -> contextlib.AbstractContextManager[None]:
    """Reduced precision (TF32) on the GPU for products that are only added to gradients and never compared."""
    return contextlib.nullcontext() if fixed is None else training_precision("tf32")


def _weigh(
    z: Tensor,
    mean: Tensor,
    indices: Tensor,
    constants: HardNegatives,
    missing: Tensor,
    count: Tensor,
    fixed: FixedShape | None,
) -> tuple[Tensor, Tensor]:
    """Compute the loss (k,) of each row of centred z (k, m), and turn z into weights, in place.

    The weights times the slopes (k,), which are returned too, are d loss / d z. `missing` (k,): how many of a row's two
    zeros are not among the candidates; `count` (k,): candidates and missing zeros. No other array of the size of z is
    allocated.
    """
    is_candidate = None if fixed is None else fixed.is_candidate
    if fixed is not None and is_candidate is None and z.shape[1] <= MAX_COLUMNS and has_kernels(z.device):
        return weigh_(z, mean, indices, constants.scale, constants.shift, missing, count)
    _set_columns(z, indices, -mean)
    square_sum = torch.linalg.vector_norm(z, dim=1).square_() + missing * mean.square()
    deviation = square_sum.div_(count).sqrt_()
    sharpness = constants.scale / deviation.clamp_min_(torch.finfo(z.dtype).tiny ** 0.5)
    zero = -mean * sharpness
    largest = torch.maximum(z.amax(dim=1) * sharpness, zero)
    torch.addcmul(-largest.unsqueeze(1), z, sharpness.unsqueeze(1), out=z)
    # Bounded from below, because a CPU computes with denormal numbers ten times more slowly.
    z.clamp_min_(_MIN_EXPONENT).exp_()
    if is_candidate is not None:
        z *= is_candidate
    _set_columns(z, indices, torch.zeros_like(mean))
    power = z.sum(dim=1) + 2.0 * (zero - largest).exp_()
    return power.log().add_(largest).add_(constants.shift), sharpness / power


def _set_columns(z: Tensor, indices: Tensor, values: Tensor) -> None:
    """Set in each row of `z` (k, m) the two columns `indices` (2, k) to the row's value (k,), unless they are -1.

    No index is copied to main memory, which would have to wait for the device.
    """
    for index in indices:
        column = index.clamp_min(0).unsqueeze(1)
        z.scatter_(1, column, torch.where(index < 0, z.gather(1, column).squeeze(1), values).unsqueeze(1))


class _PrintedCrossLoss(torch.autograd.Function):
    """`printed_cross_loss`, whose gradient is computed in the forward pass, chunk by chunk."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, outside_rows: Tensor, chunk_bytes: int) -> Tensor:
        step = max(1, chunk_bytes // (max(1, len(outside_rows)) * rows.element_size()))
        chunks = [rows[start : start + step] for start in range(0, len(rows), step)]
        sums = [torch.logsumexp((chunk @ outside_rows.t()).flatten(), dim=0) for chunk in chunks]
        loss = torch.logsumexp(torch.stack([rows.new_zeros(()), *sums]), dim=0)
        if ctx.needs_input_grad[0]:
            grads = [(chunk @ outside_rows.t()).sub_(loss).exp_() @ outside_rows for chunk in chunks]
            ctx.save_for_backward(torch.cat(grads))
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.saved_tensors[0] * grad, None, None
