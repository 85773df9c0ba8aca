"""Sums over neighbours by fused kernels, with exact gradients: what `message_passing` does, in few launches on a GPU.

In: rows on the device, a `PairGraph`. Out: sums of rows, or of reflected and weighted neighbours, of both blocks of an
encoder at once. The formulas are those of `message_passing`; nothing is kept for a pair but what the graph itself says.
The kernels are Triton's (`kernels`), which comes with PyTorch for CUDA. Where there is none, the same sums are made by
PyTorch, pair by pair: for tests, not for speed.
Cost: about a quarter of a millisecond for a layer of both blocks of 100,000 nodes with 700,000 pairs on an H200.
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

__all__ = ["Places", "Powers", "has_kernels", "powers_of", "reflected_sums", "sums_of_rows"]

_log = logging.getLogger(__name__)

_LOWEST = -80.0  # of a logit below the highest: its power is still a number
_TILE = 16
# Entries a kernel holds at once, and its warps.
SUM_ROWS, REFLECT, PULL_BACK, TO_SETS = (16, 1), (4, 1), (4, 1), (8, 1)


def has_kernels(device: torch.device) -> bool:
    """Whether the kernels run there: on a GPU that Triton compiles for, or anywhere if Triton interprets them."""
    may_run = device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return may_run and importlib.util.find_spec("triton") is not None and _kernels_work(device)


@cache
def _kernels_work(device: torch.device) -> bool:
    """Try a kernel once: Triton may be there and lack a C compiler, or not know the GPU."""
    table = torch.ones(1, 2, device=device)
    columns = torch.zeros(1, dtype=torch.int32, device=device)
    pieces = torch.tensor([[0], [0], [1], [1]], dtype=torch.int32, device=device)
    try:
        return bool(torch.equal(_sum_rows(table, columns, pieces, 1), table))
    except Exception as error:  # noqa: BLE001 - whatever it is, the plain path needs no Triton
        _log.warning("train: Triton does not work here, the plain step is used instead: %s", error)
        return False


def sums_of_rows(
    table: Tensor, columns: Tensor, pieces: Tensor, back_columns: Tensor, back_pieces: Tensor, num_rows: int
) -> Tensor:
    """Sum (num_rows, d) of the rows of `table` (m, d) over a pattern in pieces; the transpose comes along."""
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
    """Where the results of some nodes go: `of_node` (n,) int32 is the index among `count` results, or -1."""

    of_node: Tensor
    count: int

    @classmethod
    def of(cls, nodes: Tensor, num_nodes: int) -> Places:
        """Places for `nodes` (k,); of a node that is named twice one of the two stays empty."""
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
            how: dict[str, Any] = {"columns": num_columns, "tile": _TILE, "num_warps": 1}
            kernels.sum_powers[(count,)](
                totals, powers.contiguous(), graph.sets, pieces, count, num_nodes, num_sets, **how
            )
        else:
            receivers, entries = entries_of(pieces)
            totals.index_add_(1, receivers, powers[:, graph.sets[entries].long()])
    return Powers(powers, totals)


def reflected_sums(
    hidden: Tensor, relations: Tensor, logits: Tensor, powers: Powers, graph: PairGraph, places: Places | None = None
) -> Tensor:
    """`message_passing.reflected_sum` of each of b blocks: rows (b, n, d), unit vectors (S, d), logits (b, S).

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
            blocks=num_blocks, **_how(dim, places, REFLECT),
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
            blocks=num_blocks, **_how(dim, places, PULL_BACK),
        )  # fmt: skip
        # What the mean over a node's pairs gains, which the softmax takes off again.
        centers = (grad * out).sum(dim=2)
        grad_relations, grad_logits = torch.zeros_like(relations), torch.zeros_like(powers.values)
        count = graph.set_pieces.shape[1]
        kernels.to_sets[(count, num_blocks)](
            grad_relations, grad_logits, hidden, grad, relations, powers.values, powers.totals, centers,
            graph.set_receivers, graph.set_neighbors, graph.set_pieces, of_node, num_out, count, num_nodes, num_sets,
            dim, **_how(dim, places, TO_SETS),
        )  # fmt: skip
        return grad_hidden, grad_relations, grad_logits, None, None, None


def _how(dim: int, places: Places | None, shape: tuple[int, int]) -> dict[str, Any]:
    """How a kernel is compiled: entries it holds at once, and warps, as was fastest on an H200."""
    return {"width": _width(dim), "some": places is not None, "tile": shape[0], "num_warps": shape[1]}


def _width(dim: int) -> int:
    """The next power of two."""
    return 1 << max(0, dim - 1).bit_length()
