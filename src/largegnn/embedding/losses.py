"""Compute what training minimises: alignment, cross-subgraph negatives, reconstruction (section 5.3 of the paper).

In: a `StepContext`. Out: a number with its gradient, or None where a step adds nothing. `train.losses` weighs `LOSSES`.
The idea: for an anchor x with partner y and candidates j, d the squared Euclidean distance,

    z_j = d(x, y) - d(x, j) + gamma,  z = 0 for x and y themselves;    loss = LSE_j(scale * standardised z_j + shift)

standardised with the mean and deviation of the row, through which no gradient flows. The two zeros make a soft hinge:
candidates farther away than the partner by gamma weigh nothing. The loss is a mean over anchors, so rows are taken a
few at a time, and their part of the gradient is computed at once: no (batch x nodes) array is kept.
Cost: three products of anchors with candidates in D dimensions; memory `chunk_bytes`, besides the gradient itself.

# Paper: hard negatives by log-sum-exp, all nodes of the subgraph as candidates, gamma 1; input rows for the other two.
# Departs: the printed signs reward closeness to negatives, they are reversed; distances instead of inner products,
#     as in the authors' code; candidates may be a sample, which always keeps both zeros. The cross-subgraph loss has no
#     positive term in print; here it is the distance of the seed's own two rows, as in the alignment loss.
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
from largegnn.embedding.fused import MOST_COLUMNS, has_kernels, weigh_
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
    "OtherRows",
    "StepContext",
    "alignment_loss",
    "cross_negative_loss",
    "fixed_alignment_loss",
    "losses_in_order",
    "printed_cross_loss",
    "reconstruction_loss",
]

_CHUNK_BYTES = 8 * 2**20
_ALIGNED = 8
_NOTHING = -40.0  # e to this power is lost in the rounding of 1, in double precision too


@dataclass(frozen=True, eq=False)
class OtherRows:
    """Some entities (c,), ascending, and their input rows (c, d)."""

    entities: Tensor
    rows: Tensor


@dataclass(frozen=True, eq=False)
class StepContext:
    """The input of all losses of a step: k entities of a subgraph, b of its seeds, the encoder's outputs for m nodes.

    - `subgraph`: structure, global ids (k,) ascending, all seeds of the subgraph
    - `rows` (k, d): the input rows of its entities; `relation_rows` (2R, d). Gradients flow to both
    - `seeds` (b, 2): the seeds of this step in local ids, that is, as indices into `rows`
    - `outputs` (m, D): the encoder's outputs after dropout; `seeds_in_outputs` (b, 2) and `negatives_in_outputs` (c,)
      are indices into them, None means that all outputs are negatives
    - `entity_table` (n, d): the input rows of all entities, without gradient. Where tables are shared with other
      machines these are the rows of some entities drawn at random, `table_entities` (n,) ascending; None means all
    - `generator`: where everything random is drawn from
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
    """Pull the two ends of a seed together, away from other nodes of the subgraph."""
    shape = HardNegatives.of(context.options, context.options.gamma)
    return alignment_loss(context.outputs, context.seeds_in_outputs, context.negatives_in_outputs, shape)


def reconstruction(context: StepContext) -> Tensor:
    """Pull the input row of each entity towards the mean of its neighbours' rows."""
    rate = context.options.reconstruction_dropout
    return reconstruction_loss(context.rows, context.subgraph.graph, rate, context.generator)


def cross_subgraph(context: StepContext) -> Tensor | None:
    """Push the input rows of seeds away from those of entities outside the subgraph; None if all drawn are inside."""
    outside, seeds = _outside_rows(context), context.seeds
    if not len(outside):
        return None
    seed_rows = context.rows.index_select(0, seeds.flatten()).view(len(seeds), 2, -1)
    return cross_negative_loss(seed_rows, outside, HardNegatives.of(context.options, context.options.cross_gamma))


def cross_subgraph_printed(context: StepContext) -> Tensor | None:
    """Push the input rows of all entities of the subgraph away from those outside, as the paper prints it."""
    outside = _outside_rows(context)
    if not len(outside):
        return None
    return printed_cross_loss(context.rows, outside, chunk_bytes=_chunk_bytes(context.options))


# In the order in which a step draws at random, whatever the order of the settings; a loss of weight 0 draws nothing.
LOSSES: dict[str, Loss] = {
    "alignment": alignment,
    "reconstruction": reconstruction,
    "cross_subgraph": cross_subgraph,
    "cross_subgraph_printed": cross_subgraph_printed,
}


def losses_in_order(weights: Mapping[str, float]) -> list[tuple[str, float, Loss]]:
    """Name, weight and function of each loss that has a weight: those of `LOSSES` in their order, then others by name.

    A name `module:function` is a loss of the user's.
    """
    names = [*LOSSES, *sorted(weights.keys() - LOSSES.keys())]
    return [(name, weights[name], _loss_of(name)) for name in names if weights.get(name)]


def _loss_of(name: str) -> Loss:
    if name in LOSSES:
        return LOSSES[name]
    try:
        # Without a colon a name would be that of a module.
        loss: Loss = pkgutil.resolve_name(name if ":" in name else f":{name}")
    except (ValueError, ImportError, AttributeError) as error:
        raise InputError(
            f"no loss is called {name!r}",
            expected=f"one of {', '.join(LOSSES)}, or module:function",
            fix="change its name in train.losses, or check that the module is on PYTHONPATH",
        ) from error
    return loss


def _outside_rows(context: StepContext) -> Tensor:
    """Input rows of entities outside the subgraph: of some drawn from all, those that are not in it."""
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
    """The constants of the loss."""

    gamma: float = 1.0
    scale: float = 30.0
    shift: float = 10.0
    chunk_bytes: int = _CHUNK_BYTES

    @classmethod
    def of(cls, options: TrainSettings, gamma: float) -> HardNegatives:
        """Those of a training run, with this margin."""
        return cls(gamma, options.scale, options.shift, _chunk_bytes(options))


_DEFAULT = HardNegatives()


def _chunk_bytes(options: TrainSettings) -> int:
    """Bytes of (batch x nodes) values alive at once: a small share of the memory allowed."""
    return max(1 << 22, min(1 << 30, options.memory_bytes // 64))


@dataclass(frozen=True, eq=False)
class FixedShape:
    """The seeds and candidates that count in a loss over arrays of a fixed size.

    `shares` (b,): the weight of each seed, one over their number, or 0 for padding. `kept` (m,): 1 for a candidate,
    0 for padding; None: all are candidates.
    """

    shares: Tensor
    kept: Tensor | None = None


def alignment_loss(
    outputs: Tensor,
    seeds: Tensor,
    negatives: Tensor | None,
    shape: HardNegatives = _DEFAULT,
) -> Tensor:
    """Hard-negative loss of `seeds` (b, 2) against `negatives` (m,), all indices into `outputs` (n, D).

    From the left to all negatives plus from the right, mean over seeds. `negatives` are distinct; None means all n.
    A seed's own two nodes among them count as the zeros, which exist in any case.
    """
    candidates = outputs if negatives is None else outputs.index_select(0, negatives)
    index_of = torch.arange(len(outputs), device=outputs.device)
    if negatives is not None:
        index_of = torch.full_like(index_of, -1)
        index_of[negatives] = torch.arange(len(negatives), device=outputs.device)
    ends = seeds.t().flatten()
    rows = outputs.index_select(0, ends).view(2, len(seeds), -1)
    return _loss(rows, candidates, index_of.index_select(0, ends).view(2, len(seeds)), shape)


def fixed_alignment_loss(
    outputs: Tensor,
    indices: Tensor,
    fixed: FixedShape,
    shape: HardNegatives,
) -> Tensor:
    """`alignment_loss` of outputs (2 b + m, D): those of the seeds' left ends, of their right ends, of the negatives.

    `indices` (2, b): where each end is among the negatives, or -1.
    """
    rows, candidates = outputs[: indices.numel()].view(*indices.shape, -1), outputs[indices.numel() :]
    return _loss(rows, candidates, indices, shape, fixed)


def cross_negative_loss(
    seed_rows: Tensor,
    outside_rows: Tensor,
    shape: HardNegatives = _DEFAULT,
    fixed: FixedShape | None = None,
) -> Tensor:
    """Push the input rows of seeds (b, 2, d) away from those of entities outside the subgraph (m, d).

    The outside rows get no gradient.
    """
    rows = seed_rows.transpose(0, 1).contiguous()
    indices = torch.full(rows.shape[:2], -1, dtype=torch.int64, device=rows.device)
    return _loss(rows, outside_rows.detach(), indices, shape, fixed)


def _loss(
    rows: Tensor, candidates: Tensor, indices: Tensor, shape: HardNegatives, fixed: FixedShape | None = None
) -> Tensor:
    result: Tensor = _HardNegativeLoss.apply(rows, candidates, indices, shape, fixed)  # type: ignore[no-untyped-call]
    return result


def reconstruction_loss(
    entity_rows: Tensor, structure: GraphStructure, rate: float, generator: torch.Generator
) -> Tensor:
    """Mean over all n nodes of ||dropout(row) - dropout(mean of the neighbours' rows)||^2, summed over dimensions.

    A node without neighbours adds nothing but still counts in the mean. `entity_rows` (n, d); gradient flows to both.
    """
    pattern = (structure.pair_ptr, structure.neighbors)
    means = dropout(gather_mean(entity_rows, *pattern, *pattern), rate, generator)
    has_neighbors = (structure.pair_ptr.diff() > 0).to(entity_rows.dtype).unsqueeze(1)
    return ((dropout(entity_rows, rate, generator) - means) * has_neighbors).square().sum() / len(entity_rows)


def printed_cross_loss(rows: Tensor, outside_rows: Tensor, *, chunk_bytes: int = _CHUNK_BYTES) -> Tensor:
    """log(1 + sum over all i of the subgraph's rows (k, d), all j of those outside (m, d), of exp(x_i . y_j)).

    Ours compares the two ends of seeds with entities outside and pulls the two together; this one only pushes, and all
    entities alike. The outside rows get no gradient.

    # Paper: inner products of input rows, all entities of the subgraph, no positive term.
    # Departs: the printed signs reward closeness, they are reversed; all entities share one sample.
    """
    result: Tensor = _PrintedCrossLoss.apply(rows, outside_rows, chunk_bytes)  # type: ignore[no-untyped-call]
    return result


class _HardNegativeLoss(torch.autograd.Function):
    """The loss with both its gradients, which are computed at once; that of candidates only where it is needed."""

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, candidates: Tensor, indices: Tensor, shape: HardNegatives, fixed: FixedShape | None
    ) -> Tensor:
        with_grad, move_candidates, *_ = ctx.needs_input_grad
        loss, *grads = _hard_negatives(rows, candidates, indices, shape, with_grad, move_candidates, fixed)
        ctx.save_for_backward(*grads)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if each is None else each * grad for each in ctx.saved_tensors), None, None, None


def _hard_negatives(
    rows: Tensor,
    candidates: Tensor,
    indices: Tensor,
    shape: HardNegatives,
    with_grad: bool,
    move_candidates: bool,
    fixed: FixedShape | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The loss of seeds' rows (2, b, D) against candidates (m, D), and its gradients for both.

    `indices` (2, b): where the seeds' nodes are among the candidates, or -1. With the norms as one more dimension and
    the constants of a row as another, centred z of a row come out of one product: `z = lines @ columns.t()`.
    """
    num_seeds, num_candidates = rows.shape[1], len(candidates)
    norms = candidates.square().sum(dim=1, keepdim=True)
    columns = _side_by_side([candidates, norms.neg(), torch.ones_like(norms)], fixed)
    kept = None if fixed is None else fixed.kept
    if kept is not None:
        columns *= kept.unsqueeze(1)
    apart = (rows[0] - rows[1]).square().sum(dim=1)
    # Of the two zeros of each row, those without a candidate.
    missing = (indices < 0).sum(dim=0).to(rows.dtype)
    count = missing + (num_candidates if kept is None else kept.sum())
    total = rows.new_zeros(())
    grad_rows = torch.zeros_like(rows) if with_grad else None
    # For each candidate the sum of weights times anchors, then that of the weights.
    pushes: Tensor | None = None
    dim = candidates.shape[1]
    step = max(1, shape.chunk_bytes // (max(1, num_candidates) * rows.element_size()))
    for side in (0, 1):
        anchors, partners = rows[side], rows[1 - side]
        offset = apart - anchors.square().sum(dim=1) + shape.gamma
        lines = _side_by_side([2.0 * anchors, torch.ones_like(apart)[:, None], offset[:, None]], fixed)
        own = (indices[side] >= 0) * (apart + shape.gamma) + (indices[1 - side] >= 0) * shape.gamma
        mean = (lines @ columns.sum(dim=0) - own) / count
        lines[:, dim + 1] -= mean
        for start in range(0, num_seeds, step):
            chunk = slice(start, start + step)
            z = lines[chunk] @ columns.t()
            losses, slope = _weigh(z, mean[chunk], indices[:, chunk], shape, missing[chunk], count[chunk], fixed)
            total += losses.sum() / num_seeds if fixed is None else losses @ fixed.shares[chunk]
            if grad_rows is None:
                continue
            # With w = slope * z = d loss / d z: a candidate is pushed by -2 w (candidate - anchor), the partner pulled.
            slope = slope.mul_(2.0 / num_seeds if fixed is None else 2.0 * fixed.shares[chunk]).unsqueeze(1)
            pull = z.sum(dim=1, keepdim=True).mul_(slope)
            with _gradient_precision(fixed):
                grad_rows[side, chunk] += (z @ candidates).mul_(slope).addcmul_(pull, partners[chunk], value=-1.0)
                grad_rows[1 - side, chunk] += (partners[chunk] - anchors[chunk]).mul_(pull)
                if move_candidates:
                    weighted = _side_by_side([slope * anchors[chunk], slope], fixed)
                    if pushes is None:
                        pushes = weighted.new_zeros(num_candidates, weighted.shape[1])
                    pushes.addmm_(z.t(), weighted)
    if pushes is None:
        return total, grad_rows, None
    return total, grad_rows, torch.addcmul(pushes[:, :dim], pushes[:, dim : dim + 1], candidates, value=-1.0)


def _side_by_side(parts: list[Tensor], fixed: FixedShape | None) -> Tensor:
    """Columns side by side; on a GPU a multiple of eight, the last of them zero."""
    if fixed is not None:
        missing = -sum(part.shape[1] for part in parts) % _ALIGNED
        parts = [*parts, parts[0].new_zeros(len(parts[0]), missing)]
    return torch.cat(parts, dim=1)


def _gradient_precision(fixed: FixedShape | None) -> contextlib.AbstractContextManager[None]:
    """Lower precision for products whose result is only added to parameters: nothing is compared by them."""
    return contextlib.nullcontext() if fixed is None else training_precision("tf32")


def _weigh(
    z: Tensor,
    mean: Tensor,
    indices: Tensor,
    shape: HardNegatives,
    missing: Tensor,
    count: Tensor,
    fixed: FixedShape | None,
) -> tuple[Tensor, Tensor]:
    """The loss of each row (k,) of centred z (k, m), which become weights; times the slope (k,) they are d loss / d z.

    `missing` (k,): zeros without a candidate; `count` (k,): candidates and these. No other array of the size
    of z is allocated.
    """
    kept = None if fixed is None else fixed.kept
    if fixed is not None and kept is None and z.shape[1] <= MOST_COLUMNS and has_kernels(z.device):
        return weigh_(z, mean, indices, shape.scale, shape.shift, missing, count)
    _put(z, indices, -mean)
    square_sum = torch.linalg.vector_norm(z, dim=1).square_() + missing * mean.square()
    deviation = square_sum.div_(count).sqrt_()
    sharpness = shape.scale / deviation.clamp_min_(torch.finfo(z.dtype).tiny ** 0.5)
    zero = -mean * sharpness
    largest = torch.maximum(z.amax(dim=1) * sharpness, zero)
    torch.addcmul(-largest.unsqueeze(1), z, sharpness.unsqueeze(1), out=z)
    # Not to zero, but almost: a processor multiplies denormal numbers ten times more slowly.
    z.clamp_min_(_NOTHING).exp_()
    if kept is not None:
        z *= kept
    _put(z, indices, torch.zeros_like(mean))
    power = z.sum(dim=1) + 2.0 * (zero - largest).exp_()
    return power.log().add_(largest).add_(shape.shift), sharpness / power


def _put(z: Tensor, indices: Tensor, values: Tensor) -> None:
    """Set the columns `indices` (2, k) of each row of `z` (k, m) to its value (k,), where they are not -1.

    No index is read back from the device, which would have to wait for it.
    """
    for index in indices:
        column = index.clamp_min(0).unsqueeze(1)
        z.scatter_(1, column, torch.where(index < 0, z.gather(1, column).squeeze(1), values).unsqueeze(1))


class _PrintedCrossLoss(torch.autograd.Function):
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
