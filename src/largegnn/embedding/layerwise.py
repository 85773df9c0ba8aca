"""An encoder's layers over a graph too large for one piece: a chunk of nodes at a time (section 5 of the paper).

In: rows of one layer for all nodes, a `GraphStructure` in main memory. Out: the rows of the next layer, written into an
array of the caller's, which may be a memory map. The result is that of the one-piece layer.
The idea: a layer reads its neighbours' rows only from the layer before, so a chunk of nodes needs no more than the rows
of those nodes' neighbours. What is computed per pair or slot is a number, not a row, and stays whole in main memory.
Cost: the arithmetic of the one-piece layer, and one more gather of rows. Memory: a few numbers for each pair, and about
`chunk_bytes` for rows on the device; the rows of one node's neighbours are never split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import IntArray
from largegnn.embedding.propagation import attention, sampled_product, sparse_product, sum_over_reverse
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress

__all__ = [
    "Finish",
    "node_chunks",
    "transform_rows",
    "write_neighborhood_means",
    "write_reflected_sums",
    "write_relation_means",
]

Rows = npt.NDArray[np.float32]
# What to do with the finished rows of some nodes before they are written.
Finish = Callable[[Tensor, slice], Tensor]

_ROWS_ALIVE = 3  # rows of one chunk that are alive at once, about: gathered, summed, finished


def node_chunks(ptr: IntArray, row_bytes: int, chunk_bytes: int) -> Iterator[slice]:
    """Ranges of nodes whose rows and CSR entries, `row_bytes` each, fit into `chunk_bytes`; at least one node each."""
    num_nodes = len(ptr) - 1
    cost = (ptr.astype(np.int64) + np.arange(num_nodes + 1)) * row_bytes * _ROWS_ALIVE
    start = 0
    while start < num_nodes:
        stop = int(np.searchsorted(cost, cost[start] + chunk_bytes, side="right")) - 1
        stop = min(max(stop, start + 1), num_nodes)
        yield slice(start, stop)
        start = stop


class _Source:
    """Rows of all nodes, on the device as a whole if they take at most half a chunk, else fetched as needed."""

    def __init__(self, rows: Tensor | Rows, device: torch.device, chunk_bytes: int) -> None:
        self.rows = rows if isinstance(rows, Tensor) else torch.from_numpy(rows)
        self.row_bytes = self.rows.shape[1] * self.rows.element_size()
        self.device = device
        self.is_resident = 2 * len(self.rows) * self.row_bytes <= chunk_bytes
        if self.is_resident:
            self.rows = self.rows.to(device).contiguous()

    def take(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Rows that hold those of `ids` (k,), and where in them each is, both on the device."""
        if self.is_resident:
            return self.rows, ids.to(self.device)
        distinct, indices = torch.unique(ids, return_inverse=True)
        fetched = self.rows.index_select(0, distinct.to(self.rows.device))
        return fetched.to(self.device), indices.to(self.device, torch.int32)

    def part(self, nodes: slice) -> Tensor:
        """The rows of a range of nodes, on the device."""
        return self.rows[nodes].to(self.device).contiguous()


def write_neighborhood_means(
    rows: Tensor | Rows,
    structure: GraphStructure,
    device: torch.device,
    outputs: Rows,
    chunk_bytes: int,
    finish: Finish,
) -> None:
    """Mean of the rows (n, d) of each node and its neighbours, finished, into `outputs` (n, d)."""
    source = _Source(rows, device, chunk_bytes)
    with progress("neighbourhood means", structure.num_nodes, "nodes") as work:
        for nodes in node_chunks(structure.pair_ptr.numpy(), source.row_bytes, chunk_bytes):
            ptr, entries = _slice(structure.pair_ptr, nodes, device)
            table, columns = source.take(structure.neighbors[entries])
            ones = table.new_ones(len(columns))
            sums = sparse_product(ptr, columns, ones, table) + source.part(nodes)
            _write(outputs, nodes, finish(sums / (ptr.diff() + 1).unsqueeze(1), nodes))
            work.advance(nodes.stop - nodes.start)


def write_relation_means(
    relation_rows: Tensor, structure: GraphStructure, outputs: Rows, chunk_bytes: int, finish: Finish
) -> None:
    """Mean of the distinct relation rows (2R, d) at each node, finished, into `outputs` (n, d)."""
    device, row_bytes = relation_rows.device, relation_rows.shape[1] * relation_rows.element_size()
    with progress("relation means", structure.num_nodes, "nodes") as work:
        for nodes in node_chunks(structure.incidence_ptr.numpy(), row_bytes, chunk_bytes):
            ptr, entries = _slice(structure.incidence_ptr, nodes, device)
            columns = structure.incidences[entries].to(device)
            ones = relation_rows.new_ones(len(columns))
            sums = sparse_product(ptr, columns, ones, relation_rows)
            _write(outputs, nodes, finish(sums / ptr.diff().clamp_min_(1).unsqueeze(1), nodes))
            work.advance(nodes.stop - nodes.start)


def write_reflected_sums(
    rows: Rows,
    relations: Tensor,
    logits: Tensor,
    structure: GraphStructure,
    outputs: Rows,
    chunk_bytes: int,
    finish: Finish,
) -> None:
    """What `propagation.reflected_sum` gives for `rows` (n, d), finished, into `outputs` (n, d)."""
    device = relations.device
    source = _Source(rows, device, chunk_bytes)
    weights = attention(logits.cpu(), structure)
    along = torch.empty(structure.num_slots, dtype=relations.dtype)
    # Each node is passed twice.
    with progress("reflected sums", 2 * structure.num_nodes, "nodes") as work:
        for nodes in node_chunks(structure.slot_ptr.numpy(), source.row_bytes, chunk_bytes):
            ptr, entries = _slice(structure.slot_ptr, nodes, device)
            sets = structure.slot_inverse_sets[entries].to(device)
            along[entries] = sampled_product(ptr, sets, source.part(nodes), relations).cpu()
            work.advance(nodes.stop - nodes.start)
        reflected = sum_over_reverse(along, structure).mul_(weights)
        for nodes in node_chunks(structure.pair_ptr.numpy(), source.row_bytes, chunk_bytes):
            ptr, entries = _slice(structure.pair_ptr, nodes, device)
            table, columns = source.take(structure.neighbors[entries])
            values = weights.index_select(0, structure.slot_of_pair[entries]).to(device)
            sums = sparse_product(ptr, columns, values, table)
            ptr, entries = _slice(structure.slot_ptr, nodes, device)
            sets, at_slots = structure.slot_sets[entries].to(device), reflected[entries].to(device)
            sparse_product(ptr, sets, at_slots, relations, onto=sums, scale=-2.0)
            _write(outputs, nodes, finish(sums, nodes))
            work.advance(nodes.stop - nodes.start)


def transform_rows(rows: Rows, transform: Callable[[Tensor], Tensor], device: torch.device, chunk_bytes: int) -> None:
    """Replace `rows` (n, w) by what `transform` makes of them, a chunk at a time."""
    step = max(1, chunk_bytes // (4 * rows.itemsize * rows.shape[1]))
    with progress("rows", len(rows), "nodes") as work:
        for start in range(0, len(rows), step):
            nodes = slice(start, min(start + step, len(rows)))
            _write(rows, nodes, transform(torch.from_numpy(rows[nodes]).to(device)))
            work.advance(nodes.stop - nodes.start)


def _slice(ptr: Tensor, nodes: slice, device: torch.device) -> tuple[Tensor, slice]:
    """Offsets of a range of nodes, from 0 and on the device, and their range of entries."""
    entries = slice(int(ptr[nodes.start]), int(ptr[nodes.stop]))
    return (ptr[nodes.start : nodes.stop + 1] - entries.start).to(device), entries


def _write(outputs: Rows, nodes: slice, rows: Tensor) -> None:
    outputs[nodes] = rows.cpu().numpy()
