"""Work on rows, number by number, in one kernel each: first layer and reconstruction, dropout, RMSprop, loss weights.

In: rows on the device. Out: rows, with exact gradients where training needs them. The formulas are those of `dual_amn`,
`losses` and `row_optimizer`. Where Triton is missing PyTorch computes the same, in more steps.
Cost: each row is read and written once, where single operations would pass it some twenty times.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from largegnn.embedding.fused import has_kernels
from largegnn.embedding.pair_graph import PairGraph
from largegnn.embedding.sampling import dropout

__all__ = ["MOST_COLUMNS", "first_layers", "hide", "rmsprop_", "weigh_"]

_SIZE, _WORD = 1024, 65_536
MOST_COLUMNS = 32_768  # of a row of the loss, which is kept in registers


def first_layers(
    rows: Tensor, sums: Tensor, relation_sums: Tensor, graph: PairGraph, rate: float, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """The first hidden rows (2, n, d) of both blocks, and the reconstruction loss, which hides a share `rate`.

    `sums` (n, d) are those of the neighbours' rows, `relation_sums` (n, d) those of the relation rows at each node.
    """
    if has_kernels(rows.device):
        first, loss = _FirstLayers.apply(rows, sums, relation_sums, graph, rate, noise)  # type: ignore[no-untyped-call]
        return first, loss / graph.num_nodes[0]
    degrees = graph.degrees.unsqueeze(1)
    by_entity = (sums + rows) / (degrees + 1.0)
    by_relation = relation_sums / graph.num_incident.clamp_min(1.0).unsqueeze(1)
    # A generator for each: what is hidden of a row must not depend on how many rows of padding follow.
    own, near = (torch.Generator(rows.device).manual_seed(int(noise) + more) for more in (0, 2))
    means = dropout(sums / degrees.clamp_min(1.0), rate, near)
    apart = (dropout(rows, rate, own) - means) * degrees.clamp_max(1.0)
    return torch.tanh(torch.stack([by_entity, by_relation])), apart.square().sum() / graph.num_nodes[0]


def hide(values: Tensor, rate: float, noise: Tensor) -> Tensor:
    """`sampling.dropout` of values by the number `noise` (1,)."""
    if not has_kernels(values.device):
        return dropout(values, rate, torch.Generator(values.device).manual_seed(int(noise) + 1))
    if rate == 0:
        return values
    result: Tensor = _Hide.apply(values, rate, noise)  # type: ignore[no-untyped-call]
    return result


@torch.no_grad()
def rmsprop_(rows: Tensor, squares: Tensor, grads: Tensor, rate: Tensor, alpha: float, eps: float) -> None:
    """One step of RMSprop on `rows` (n, d) and their mean squares, in place; `rate` (1,)."""
    if not has_kernels(rows.device):
        squares.mul_(alpha).addcmul_(grads, grads, value=1 - alpha)
        rows.sub_(grads.div(squares.sqrt().add_(eps)).mul_(rate))
        return
    from largegnn.embedding import row_kernels

    count = rows.numel()
    row_kernels.rmsprop[_grid(count)](rows, squares, grads.contiguous(), rate, count, alpha, eps, size=_SIZE)


def weigh_(
    z: Tensor, mean: Tensor, indices: Tensor, scale: float, shift: float, missing: Tensor, count: Tensor
) -> tuple[Tensor, Tensor]:
    """What `losses._weigh` makes of centred z (k, m), in place: losses (k,) and slopes (k,); at most MOST_COLUMNS."""
    from largegnn.embedding import row_kernels

    losses, slopes = torch.empty_like(mean), torch.empty_like(mean)
    left, right = indices.contiguous()
    width = 1 << max(0, z.shape[1] - 1).bit_length()
    row_kernels.weigh[(len(z),)](
        z, losses, slopes, mean, missing, count.contiguous(), left, right, z.stride(0), z.shape[1], scale, shift,
        width=width, num_warps=8 if width >= 4096 else 4,
    )  # fmt: skip
    return losses, slopes


class _FirstLayers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, sums: Tensor, relation_sums: Tensor, graph: PairGraph, rate: float, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        from largegnn.embedding import row_kernels

        count, grid = rows.numel(), _grid(rows.numel())
        first, losses = rows.new_empty(2, *rows.shape), rows.new_empty(grid[0])
        row_kernels.first_layers[grid](
            first, losses, rows, sums, relation_sums, graph.degrees, graph.num_incident, noise, count, rows.shape[1],
            *_hidden(rate), size=_SIZE,
        )  # fmt: skip
        ctx.save_for_backward(first, rows, sums, noise)
        ctx.graph, ctx.rate = graph, rate
        return first, losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, loss_grad: Tensor) -> tuple[Tensor | None, ...]:
        from largegnn.embedding import row_kernels

        first, rows, sums, noise = ctx.saved_tensors
        graph: PairGraph = ctx.graph
        out = [torch.empty_like(rows) for _ in range(3)]
        count = rows.numel()
        row_kernels.first_layers_back[_grid(count)](
            *out, grad.contiguous(), loss_grad.contiguous(), first, rows, sums, graph.degrees, graph.num_incident,
            noise, count, rows.shape[1], *_hidden(ctx.rate), size=_SIZE,
        )  # fmt: skip
        return *out, None, None, None


class _Hide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, rate: float, noise: Tensor) -> Tensor:
        ctx.save_for_backward(noise)
        ctx.rate = rate
        return _hide(values, rate, noise)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _hide(grad, ctx.rate, *ctx.saved_tensors), None, None


def _hide(values: Tensor, rate: float, noise: Tensor) -> Tensor:
    from largegnn.embedding import row_kernels

    values, count = values.contiguous(), values.numel()
    out = torch.empty_like(values)
    row_kernels.hide[_grid(count)](out, values, noise, count, *_hidden(rate), size=_SIZE)
    return out


def _hidden(rate: float) -> tuple[int, float]:
    """How many of 65,536 words hide a value, and what the others are multiplied by."""
    hidden = round(rate * _WORD)
    return hidden, _WORD / (_WORD - hidden)


def _grid(count: int) -> tuple[int]:
    return (-(-count // _SIZE),)
