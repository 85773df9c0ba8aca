"""Run fused GPU kernels for sums over neighbours, dropout, RMSprop and loss weights, with exact gradients.

In: rows on the device, a `PairGraph`. Out: sums of rows, or of reflected and weighted neighbours for both blocks of an
encoder at once; the first layer and the reconstruction loss; results of dropout, RMSprop, loss weights.
The idea: the formulas are those of `message_passing`, `dual_amn`, `losses` and `entity_table`, in few launches, and no
array with an entry per pair is kept besides the graph itself. The kernels (`kernels`) need Triton, which comes with
PyTorch for CUDA. Without Triton, PyTorch computes the same values in more steps: for tests, not for speed.
Cost: about 0.25 ms on an H200 for a layer of both blocks of 100,000 nodes with 700,000 pairs; every row is read and
written once, where separate operations would read it about twenty times.
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
    "MAX_COLUMNS",
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

_MIN_LOGIT = -80.0  # relative to the highest logit: its exponential is not zero in float32
_POWERS_TILE = 16  # entries of a tile in `sum_powers`
# For each kernel, the entries of a tile, which it keeps in registers, and its number of warps.
SUM_ROWS, REFLECT, PULL_BACK, TO_SETS = (16, 1), (4, 1), (4, 1), (8, 1)
_BLOCK_SIZE = 1024  # numbers that one program of an elementwise kernel computes
_NUM_WORDS = 65_536  # dropout draws a random 16-bit word for each number
MAX_COLUMNS = 32_768  # of a row of the loss, which is kept in registers


def has_kernels(device: torch.device) -> bool:
    """Whether the kernels run on a device: a GPU that Triton supports, or any device in Triton's interpreter mode."""
    is_supported = device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1"
    return is_supported and importlib.util.find_spec("triton") is not None and _kernels_work(device)


@cache
def _kernels_work(device: torch.device) -> bool:
    """Try a kernel once per device: there may be no C compiler, or Triton may not support the GPU."""
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
    """Sum the rows of `table` (m, d) over a pattern in pieces, (num_rows, d).

    `back_columns` and `back_pieces` are the transposed pattern, which the gradient needs.
    """
    if not has_kernels(table.device):
        rows, entries = entries_of(pieces)
        return table.new_zeros(num_rows, table.shape[1]).index_add(0, rows, table[columns[entries].long()])
    result: Tensor = _SumsOfRows.apply(table, columns, pieces, back_columns, back_pieces, num_rows)  # type: ignore[no-untyped-call]
    return result


@dataclass(frozen=True)
class Powers:
    """Exponentials (l, S) of l logits of each relation set, and their sums (l, n) over the pairs of each node."""

    values: Tensor
    totals: Tensor

    def part(self, rows: slice) -> Powers:
        """The exponentials and sums of some of the l logits."""
        return Powers(self.values[rows], self.totals[rows])


@dataclass(frozen=True)
class Places:
    """Which of n nodes have a result: `of_node` (n,) int32 is the node's index among `count` results, or -1."""

    of_node: Tensor
    count: int

    @classmethod
    def of(cls, nodes: Tensor, num_nodes: int) -> Places:
        """Places for the results of `nodes` (k,); if a node occurs twice, only one of its two places is used."""
        of_node = torch.full((num_nodes,), -1, dtype=torch.int32, device=nodes.device)
        of_node[nodes] = torch.arange(len(nodes), dtype=torch.int32, device=nodes.device)
        return cls(of_node, len(nodes))


def powers_of(logits: Tensor, graph: PairGraph) -> Powers:
    """The exponentials of `logits` (l, S) and their sums over each node's pairs.

    They have no gradient; `reflected_sums` computes the gradient of the logits.
    """
    with torch.no_grad():
        powers = (logits - logits.amax()).clamp_min(_MIN_LOGIT).exp()
        num_columns, num_sets = powers.shape
        num_nodes, pieces = len(graph.degrees), graph.node_pieces
        totals = powers.new_zeros(num_columns, num_nodes)
        if has_kernels(powers.device):
            from largegnn.embedding import kernels

            count = pieces.shape[1]
            constants: dict[str, Any] = {"columns": num_columns, "tile": _POWERS_TILE, "num_warps": 1}
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
    """Compute `message_passing.reflected_sum` for b blocks: rows (b, n, d), unit vectors (S, d), logits (b, S).

    `powers` are `powers_of` the logits. b must be a power of two. With `places`, only nodes that have a place are
    computed, (b, count, d); a place without a node is zero.
    """
    if not has_kernels(hidden.device):
        return _plain_sums(hidden, relations, logits, graph, places)
    result: Tensor = _ReflectedSums.apply(hidden, relations, logits, powers, graph, places)  # type: ignore[no-untyped-call]
    return result


def _plain_sums(hidden: Tensor, relations: Tensor, logits: Tensor, graph: PairGraph, places: Places | None) -> Tensor:
    powers = (logits - logits.detach().amax()).clamp_min(_MIN_LOGIT).exp()
    receivers, entries = entries_of(graph.node_pieces)
    sets = graph.sets[entries].long()
    neighbor_rows, units = hidden[:, graph.neighbors[entries].long()], relations[sets]
    messages = neighbor_rows - 2.0 * (neighbor_rows * units).sum(dim=2, keepdim=True) * units
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

    `sums` (n, d) are the sums of the neighbours' rows, `relation_sums` (n, d) the sums of the relation rows at a node.
    """
    if has_kernels(rows.device):
        first, loss = _FirstLayers.apply(rows, sums, relation_sums, graph, rate, noise)  # type: ignore[no-untyped-call]
        return first, loss / graph.num_nodes[0]
    degrees = graph.degrees.unsqueeze(1)
    by_entity = (sums + rows) / (degrees + 1.0)
    by_relation = relation_sums / graph.num_incident.clamp_min(1.0).unsqueeze(1)
    # Two generators, so that dropout of the means does not depend on how many rows of padding there are.
    row_generator = torch.Generator(rows.device).manual_seed(int(noise))
    mean_generator = torch.Generator(rows.device).manual_seed(int(noise) + 2)
    means = dropout(sums / degrees.clamp_min(1.0), rate, mean_generator)
    differences = (dropout(rows, rate, row_generator) - means) * degrees.clamp_max(1.0)
    return torch.tanh(torch.stack([by_entity, by_relation])), differences.square().sum() / graph.num_nodes[0]


def hide(values: Tensor, rate: float, noise: Tensor) -> Tensor:
    """Apply dropout to values, as `sampling.dropout`; `noise` (1,) is the random seed."""
    if not has_kernels(values.device):
        return dropout(values, rate, torch.Generator(values.device).manual_seed(int(noise) + 1))
    if rate == 0:
        return values
    result: Tensor = _Hide.apply(values, rate, noise)  # type: ignore[no-untyped-call]
    return result


@torch.no_grad()
def rmsprop_(rows: Tensor, squares: Tensor, grads: Tensor, rate: Tensor, alpha: float, eps: float) -> None:
    """Take one step of RMSprop on `rows` (n, d) and their mean squares, in place; `rate` (1,)."""
    if not has_kernels(rows.device):
        squares.mul_(alpha).addcmul_(grads, grads, value=1 - alpha)
        rows.sub_(grads.div(squares.sqrt().add_(eps)).mul_(rate))
        return
    from largegnn.embedding import kernels

    count = rows.numel()
    kernels.rmsprop[_grid(count)](rows, squares, grads.contiguous(), rate, count, alpha, eps, size=_BLOCK_SIZE)


def weigh_(
    z: Tensor, mean: Tensor, indices: Tensor, scale: float, shift: float, missing: Tensor, count: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute `losses._weigh` of centred z (k, m), in place: returns losses (k,) and slopes (k,); m <= MAX_COLUMNS."""
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
        # The mean gradient over a node's pairs, which the gradient of softmax subtracts.
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
    """Compile-time constants of a kernel; `shape`: entries of a tile and warps, the fastest values on an H200."""
    return {"width": _width(dim), "some": places is not None, "tile": shape[0], "num_warps": shape[1]}


def _width(dim: int) -> int:
    """The smallest power of two that is at least `dim`."""
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
            *_dropout_constants(rate), size=_BLOCK_SIZE,
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
            noise, count, rows.shape[1], *_dropout_constants(ctx.rate), size=_BLOCK_SIZE,
        )  # fmt: skip
        return *out, None, None, None


class _Hide(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, rate: float, noise: Tensor) -> Tensor:
        ctx.save_for_backward(noise)
        ctx.rate = rate
        return _run_hide(values, rate, noise)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _run_hide(grad, ctx.rate, *ctx.saved_tensors), None, None


def _run_hide(values: Tensor, rate: float, noise: Tensor) -> Tensor:
    from largegnn.embedding import kernels

    values, count = values.contiguous(), values.numel()
    out = torch.empty_like(values)
    kernels.hide[_grid(count)](out, values, noise, count, *_dropout_constants(rate), size=_BLOCK_SIZE)
    return out


def _dropout_constants(rate: float) -> tuple[int, float]:
    """How many of the 65,536 random words drop a value, and the factor that scales the values that are kept."""
    hidden = round(rate * _NUM_WORDS)
    return hidden, _NUM_WORDS / (_NUM_WORDS - hidden)


def _grid(count: int) -> tuple[int]:
    return (-(-count // _BLOCK_SIZE),)
