"""Compute sums over neighbours and work on rows by fused kernels, with exact gradients, in few launches on a GPU.

In: rows on the device, a `PairGraph`. Out: sums of rows, or of reflected and weighted neighbours, of both blocks of an
encoder at once; first layer and reconstruction, dropout, RMSprop, loss weights. The formulas are those of
`message_passing`, `dual_amn`, `losses` and `entity_table`; nothing is kept for a pair but what the graph itself has.
The kernels are Triton's (`kernels`), which comes with PyTorch for CUDA. Without it, PyTorch computes the same in more
steps: for tests, not for speed.
Cost: about a quarter of a millisecond for a layer of both blocks of 100,000 nodes with 700,000 pairs on an H200; each
row is read and written once, where single operations would pass it some twenty times.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from largegnn.embedding.pair_graph import PairGraph, entries_of
from largegnn.embedding.sampling import dropout

__all__ = [
    "MOST_COLUMNS",
    "Places",
    "Powers",
    "first_layers",
    "has_kernels",
    "hide",
    "powers_of",
    "reflected_sums",
    "rmsprop_",
    "sums_of_rows",
    "weigh_",
]

_log = logging.getLogger(__name__)

_LOWEST = -80.0  # of a logit below the highest: its power is still a number
_TILE = 16
# Entries a kernel has in registers, and its warps.
SUM_ROWS, REFLECT, PULL_BACK, TO_SETS = (16, 1), (4, 1), (4, 1), (8, 1)
_SIZE, _WORD = 1024, 65_536
MOST_COLUMNS = 32_768  # of a row of the loss, which is kept in registers


def has_kernels(device: torch.device) -> bool:
    """Whether the kernels run on a device: a GPU that Triton compiles for, or any if Triton interprets them."""
    may_run = device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return may_run and importlib.util.find_spec("triton") is not None and _kernels_work(device)


@cache
def _kernels_work(device: torch.device) -> bool:
    """Try a kernel once: Triton may lack a C compiler, or not support the GPU."""
    table = torch.ones(1, 2, device=device)
    columns = torch.zeros(1, dtype=torch.int32, device=device)
    pieces = torch.tensor([[0], [0], [1], [1]], dtype=torch.int32, device=device)
    try:
        return bool(torch.equal(_sum_rows(table, columns, pieces, 1), table))
    except Exception as error:  # noqa: BLE001 - the plain path needs no Triton
        _log.warning("train: Triton does not work, the plain step is used instead: %s", error)
        return False


def sums_of_rows(
    table: Tensor, columns: Tensor, pieces: Tensor, back_columns: Tensor, back_pieces: Tensor, num_rows: int
) -> Tensor:
    """Sum (num_rows, d) of the rows of `table` (m, d) over a pattern in pieces; its transpose is for the gradient."""
    if not has_kernels(table.device):
        rows, entries = entries_of(pieces)
        return table.new_zeros(num_rows, table.shape[1]).index_add(0, rows, table[columns[entries].long()])
    result: Tensor = _SumsOfRows.apply(table, columns, pieces, back_columns, back_pieces, num_rows)  # type: ignore[no-untyped-call]
    return result


@dataclass(frozen=True)
class Powers:
    """Exponentials (l, S) of logits of relation sets, and their sums (l, n) over the pairs of each node."""

    values: Tensor
    totals: Tensor

    def part(self, rows: slice) -> Powers:
        """Those of some of the logits."""
        return Powers(self.values[rows], self.totals[rows])


@dataclass(frozen=True)
class Places:
    """The index of each node's result: `of_node` (n,) int32, among `count` results, or -1."""

    of_node: Tensor
    count: int

    @classmethod
    def of(cls, nodes: Tensor, num_nodes: int) -> Places:
        """Places for `nodes` (k,); of a node that occurs twice one of the two stays empty."""
        of_node = torch.full((num_nodes,), -1, dtype=torch.int32, device=nodes.device)
        of_node[nodes] = torch.arange(len(nodes), dtype=torch.int32, device=nodes.device)
        return cls(of_node, len(nodes))


def powers_of(logits: Tensor, graph: PairGraph) -> Powers:
    """The exponentials of `logits` (l, S), whose gradient `reflected_sums` gives, and their sums over nodes' pairs."""
    with torch.no_grad():
        powers = (logits - logits.amax()).clamp_min(_LOWEST).exp()
        num_columns, num_sets = powers.shape
        num_nodes, pieces = len(graph.degrees), graph.node_pieces
        totals = powers.new_zeros(num_columns, num_nodes)
        if has_kernels(powers.device):
            from largegnn.embedding import kernels

            count = pieces.shape[1]
            constants: dict[str, Any] = {"columns": num_columns, "tile": _TILE, "num_warps": 1}
            kernels.sum_powers[(count,)](
                totals, powers.contiguous(), graph.sets, pieces, count, num_nodes, num_sets, **constants
            )
        else:
            receivers, entries = entries_of(pieces)
            totals.index_add_(1, receivers, powers[:, graph.sets[entries].long()])
    return Powers(powers, totals)


def reflected_sums(
    hidden: Tensor, relations: Tensor, logits: Tensor, powers: Powers, graph: PairGraph, places: Places | None = None
) -> Tensor:
    """`message_passing.reflected_sum` of b blocks: rows (b, n, d), unit vectors (S, d), logits (b, S).

    `powers` are those of the logits. The number of blocks is a power of two. With `places` only nodes that have one are
    computed, (b, count, d); a place that no node has is zero.
    """
    if not has_kernels(hidden.device):
        return _plain_sums(hidden, relations, logits, graph, places)
    result: Tensor = _ReflectedSums.apply(hidden, relations, logits, powers, graph, places)  # type: ignore[no-untyped-call]
    return result


def _plain_sums(hidden: Tensor, relations: Tensor, logits: Tensor, graph: PairGraph, places: Places | None) -> Tensor:
    powers = (logits - logits.detach().amax()).clamp_min(_LOWEST).exp()
    receivers, entries = entries_of(graph.node_pieces)
    sets = graph.sets[entries].long()
    near, units = hidden[:, graph.neighbors[entries].long()], relations[sets]
    messages = near - 2.0 * (near * units).sum(dim=2, keepdim=True) * units
    weights = powers[:, sets]
    totals = torch.zeros_like(hidden[..., 0]).index_add(1, receivers, weights)
    shares = weights / totals[:, receivers]
    result = torch.zeros_like(hidden).index_add(1, receivers, shares[..., None] * messages)
    if places is None:
        return result
    nodes = (places.of_node >= 0).nonzero().squeeze(1)
    chosen = result.new_zeros(len(result), places.count, result.shape[2])
    return chosen.index_copy(1, places.of_node[nodes].long(), result[:, nodes])


def first_layers(
    rows: Tensor, sums: Tensor, relation_sums: Tensor, graph: PairGraph, rate: float, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """The first hidden rows (2, n, d) of both blocks, and the reconstruction loss with dropout `rate`.

    `sums` (n, d) are those of the neighbours' rows, `relation_sums` (n, d) those of the relation rows at each node.
    """
    if has_kernels(rows.device):
        first, loss = _FirstLayers.apply(rows, sums, relation_sums, graph, rate, noise)  # type: ignore[no-untyped-call]
        return first, loss / graph.num_nodes[0]
    degrees = graph.degrees.unsqueeze(1)
    by_entity = (sums + rows) / (degrees + 1.0)
    by_relation = relation_sums / graph.num_incident.clamp_min(1.0).unsqueeze(1)
    # A generator for each: what is dropped of a row must not depend on how many rows of padding follow.
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
    from largegnn.embedding import kernels

    count = rows.numel()
    kernels.rmsprop[_grid(count)](rows, squares, grads.contiguous(), rate, count, alpha, eps, size=_SIZE)


def weigh_(
    z: Tensor, mean: Tensor, indices: Tensor, scale: float, shift: float, missing: Tensor, count: Tensor
) -> tuple[Tensor, Tensor]:
    """What `losses._weigh` makes of centred z (k, m), in place: losses (k,) and slopes (k,); at most MOST_COLUMNS."""
    from largegnn.embedding import kernels

    losses, slopes = torch.empty_like(mean), torch.empty_like(mean)
    left, right = indices.contiguous()
    width = 1 << max(0, z.shape[1] - 1).bit_length()
    kernels.weigh[(len(z),)](
        z, losses, slopes, mean, missing, count.contiguous(), left, right, z.stride(0), z.shape[1], scale, shift,
        width=width, num_warps=8 if width >= 4096 else 4,
    )  # fmt: skip
    return losses, slopes


class _SumsOfRows(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        table: Tensor,
        columns: Tensor,
        pieces: Tensor,
        back_columns: Tensor,
        back_pieces: Tensor,
        num_rows: int,
    ) -> Tensor:
        ctx.save_for_backward(back_columns, back_pieces)
        ctx.num_columns = len(table)
        return _sum_rows(table, columns, pieces, num_rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        columns, pieces = ctx.saved_tensors
        return _sum_rows(grad.contiguous(), columns, pieces, ctx.num_columns), None, None, None, None, None


def _sum_rows(table: Tensor, columns: Tensor, pieces: Tensor, num_rows: int) -> Tensor:
    from largegnn.embedding import kernels

    dim, count = table.shape[1], pieces.shape[1]
    out = table.new_zeros(num_rows, dim)
    kernels.sum_rows[(count,)](
        out, table, columns, pieces, count, dim, width=_width(dim), tile=SUM_ROWS[0], num_warps=SUM_ROWS[1]
    )
    return out


class _ReflectedSums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        relations: Tensor,
        logits: Tensor,
        powers: Powers,
        graph: PairGraph,
        places: Places | None,
    ) -> Tensor:
        from largegnn.embedding import kernels

        num_blocks, num_nodes, dim = hidden.shape
        count = graph.node_pieces.shape[1]
        num_out = num_nodes if places is None else places.count
        out = hidden.new_zeros(num_blocks, num_out, dim)
        kernels.reflect[(count,)](
            out, hidden, relations, powers.values, powers.totals, graph.neighbors, graph.sets, graph.node_pieces,
            graph.sets if places is None else places.of_node, num_out, count, num_nodes, len(relations), dim,
            blocks=num_blocks, **_constants(dim, places, REFLECT),
        )  # fmt: skip
        ctx.save_for_backward(hidden, relations, out)
        ctx.powers, ctx.graph, ctx.places = powers, graph, places
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from largegnn.embedding import kernels

        hidden, relations, out = ctx.saved_tensors
        graph: PairGraph = ctx.graph
        powers: Powers = ctx.powers
        places: Places | None = ctx.places
        grad = grad.contiguous()
        num_blocks, num_nodes, dim = hidden.shape
        num_out, num_sets = grad.shape[1], len(relations)
        of_node = graph.sets if places is None else places.of_node
        count = graph.node_pieces.shape[1]
        grad_hidden = torch.zeros_like(hidden)
        kernels.pull_back[(count,)](
            grad_hidden, grad, relations, powers.values, powers.totals, graph.neighbors, graph.sets, graph.inverse_set,
            graph.node_pieces, of_node, num_out, count, num_nodes, num_sets, dim,
            blocks=num_blocks, **_constants(dim, places, PULL_BACK),
        )  # fmt: skip
        # What the mean over a node's pairs gains, which the softmax subtracts.
        centers = (grad * out).sum(dim=2)
        grad_relations, grad_logits = torch.zeros_like(relations), torch.zeros_like(powers.values)
        count = graph.set_pieces.shape[1]
        kernels.to_sets[(count, num_blocks)](
            grad_relations, grad_logits, hidden, grad, relations, powers.values, powers.totals, centers,
            graph.set_receivers, graph.set_neighbors, graph.set_pieces, of_node, num_out, count, num_nodes, num_sets,
            dim, **_constants(dim, places, TO_SETS),
        )  # fmt: skip
        return grad_hidden, grad_relations, grad_logits, None, None, None


def _constants(dim: int, places: Places | None, shape: tuple[int, int]) -> dict[str, Any]:
    """Constants a kernel is compiled with: entries in registers, and warps, as was fastest on an H200."""
    return {"width": _width(dim), "some": places is not None, "tile": shape[0], "num_warps": shape[1]}


def _width(dim: int) -> int:
    """The next power of two."""
    return 1 << max(0, dim - 1).bit_length()


class _FirstLayers(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, sums: Tensor, relation_sums: Tensor, graph: PairGraph, rate: float, noise: Tensor
    ) -> tuple[Tensor, Tensor]:
        from largegnn.embedding import kernels

        count, grid = rows.numel(), _grid(rows.numel())
        first, losses = rows.new_empty(2, *rows.shape), rows.new_empty(grid[0])
        kernels.first_layers[grid](
            first, losses, rows, sums, relation_sums, graph.degrees, graph.num_incident, noise, count, rows.shape[1],
            *_hidden(rate), size=_SIZE,
        )  # fmt: skip
        ctx.save_for_backward(first, rows, sums, noise)
        ctx.graph, ctx.rate = graph, rate
        return first, losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, loss_grad: Tensor) -> tuple[Tensor | None, ...]:
        from largegnn.embedding import kernels

        first, rows, sums, noise = ctx.saved_tensors
        graph: PairGraph = ctx.graph
        out = [torch.empty_like(rows) for _ in range(3)]
        count = rows.numel()
        kernels.first_layers_back[_grid(count)](
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
    from largegnn.embedding import kernels

    values, count = values.contiguous(), values.numel()
    out = torch.empty_like(values)
    kernels.hide[_grid(count)](out, values, noise, count, *_hidden(rate), size=_SIZE)
    return out


def _hidden(rate: float) -> tuple[int, float]:
    """How many of 65,536 words drop a value, and the factor of the others."""
    hidden = round(rate * _WORD)
    return hidden, _WORD / (_WORD - hidden)


def _grid(count: int) -> tuple[int]:
    return (-(-count // _SIZE),)
