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
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import IntArray
from largegnn.embedding.propagation import attention, sampled_product, slot_sums, sparse_product
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress

__all__ = [
    "Finish",
    "RowSource",
    "Source",
    "along_slots",
    "csr_slice",
    "neighborhood_means",
    "node_chunks",
    "reflected_sums",
    "relation_means",
    "row_chunks",
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


class Source(Protocol):
    """Rows of all nodes, wherever they lie, `row_bytes` each."""

    device: torch.device
    row_bytes: int

    def take(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Rows that hold those of `ids` (k,), and where in them each is, both on the device."""
        ...

    def part(self, nodes: slice) -> Tensor:
        """The rows of a range of nodes, on the device."""
        ...


class RowSource:
    """Rows in an array, on the device as a whole if they take at most half a chunk, else fetched as needed."""

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
    source = RowSource(rows, device, chunk_bytes)
    with progress("neighbourhood means", structure.num_nodes, "nodes") as work:
        for nodes in node_chunks(structure.pair_ptr.numpy(), source.row_bytes, chunk_bytes):
            _write(outputs, nodes, finish(neighborhood_means(source, structure, nodes), nodes))
            work.advance(nodes.stop - nodes.start)


def neighborhood_means(source: Source, structure: GraphStructure, nodes: slice) -> Tensor:
    """Mean of the rows of each of these nodes and its neighbours."""
    ptr, entries = csr_slice(structure.pair_ptr, nodes, source.device)
    table, columns = source.take(structure.neighbors[entries])
    ones = table.new_ones(len(columns))
    sums = sparse_product(ptr, columns, ones, table) + source.part(nodes)
    return sums / (ptr.diff() + 1).unsqueeze(1)


def write_relation_means(
    relation_rows: Tensor, structure: GraphStructure, outputs: Rows, chunk_bytes: int, finish: Finish
) -> None:
    """Mean of the distinct relation rows (2R, d) at each node, finished, into `outputs` (n, d)."""
    row_bytes = relation_rows.shape[1] * relation_rows.element_size()
    with progress("relation means", structure.num_nodes, "nodes") as work:
        for nodes in node_chunks(structure.incidence_ptr.numpy(), row_bytes, chunk_bytes):
            _write(outputs, nodes, finish(relation_means(relation_rows, structure, nodes), nodes))
            work.advance(nodes.stop - nodes.start)


def relation_means(relation_rows: Tensor, structure: GraphStructure, nodes: slice) -> Tensor:
    """Mean of the distinct relation rows at each of these nodes."""
    ptr, entries = csr_slice(structure.incidence_ptr, nodes, relation_rows.device)
    columns = structure.incidences[entries].to(relation_rows.device)
    ones = relation_rows.new_ones(len(columns))
    sums = sparse_product(ptr, columns, ones, relation_rows)
    return sums / ptr.diff().clamp_min_(1).unsqueeze(1)


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
    source = RowSource(rows, relations.device, chunk_bytes)
    weights = attention(logits.cpu(), structure)
    along = torch.empty(structure.num_slots, dtype=relations.dtype)
    # Each node is passed twice.
    with progress("reflected sums", 2 * structure.num_nodes, "nodes") as work:
        for nodes in node_chunks(structure.slot_ptr.numpy(), source.row_bytes, chunk_bytes):
            slots = slice(int(structure.slot_ptr[nodes.start]), int(structure.slot_ptr[nodes.stop]))
            along[slots] = along_slots(source, relations, structure, nodes)
            work.advance(nodes.stop - nodes.start)
        # In the order of pairs, so that ranges of slots give the same to the bit.
        reflected = slot_sums(structure.slot_pair_ptr, structure.slot_of_reverse, along).mul_(weights)
        for nodes in node_chunks(structure.pair_ptr.numpy(), source.row_bytes, chunk_bytes):
            pairs = slice(int(structure.pair_ptr[nodes.start]), int(structure.pair_ptr[nodes.stop]))
            slots = slice(int(structure.slot_ptr[nodes.start]), int(structure.slot_ptr[nodes.stop]))
            of_pairs = weights.index_select(0, structure.slot_of_pair[pairs])
            sums = reflected_sums(source, relations, structure, nodes, of_pairs, reflected[slots])
            _write(outputs, nodes, finish(sums, nodes))
            work.advance(nodes.stop - nodes.start)


def along_slots(source: Source, relations: Tensor, structure: GraphStructure, nodes: slice) -> Tensor:
    """Product of each node's row with the unit vector of each set it sends by, for the slots of these nodes."""
    ptr, entries = csr_slice(structure.slot_ptr, nodes, source.device)
    sets = structure.slot_inverse_sets[entries].to(source.device)
    return sampled_product(ptr, sets, source.part(nodes), relations).cpu()


def reflected_sums(
    source: Source, relations: Tensor, structure: GraphStructure, nodes: slice, of_pairs: Tensor, of_slots: Tensor
) -> Tensor:
    """Reflected and weighted sums of these nodes, by what each pair weighs and what each slot receives."""
    ptr, entries = csr_slice(structure.pair_ptr, nodes, source.device)
    table, columns = source.take(structure.neighbors[entries])
    sums = sparse_product(ptr, columns, of_pairs.to(source.device), table)
    ptr, entries = csr_slice(structure.slot_ptr, nodes, source.device)
    sets = structure.slot_sets[entries].to(source.device)
    return sparse_product(ptr, sets, of_slots.to(source.device), relations, onto=sums, scale=-2.0)


def row_chunks(num_rows: int, width: int, chunk_bytes: int) -> Iterator[slice]:
    """Ranges of rows of `width` numbers, of which four copies fit into `chunk_bytes`."""
    step = max(1, chunk_bytes // (16 * width))
    return (slice(start, min(start + step, num_rows)) for start in range(0, num_rows, step))


def transform_rows(rows: Rows, transform: Callable[[Tensor], Tensor], device: torch.device, chunk_bytes: int) -> None:
    """Replace `rows` (n, w) by what `transform` makes of them, a chunk at a time."""
    with progress("rows", len(rows), "nodes") as work:
        for nodes in row_chunks(len(rows), rows.shape[1], chunk_bytes):
            _write(rows, nodes, transform(torch.from_numpy(rows[nodes]).to(device)))
            work.advance(nodes.stop - nodes.start)


def csr_slice(ptr: Tensor, nodes: slice, device: torch.device) -> tuple[Tensor, slice]:
    """Offsets of a range of nodes, from 0 and on the device, and their range of entries."""
    entries = slice(int(ptr[nodes.start]), int(ptr[nodes.stop]))
    return (ptr[nodes.start : nodes.stop + 1] - entries.start).to(device), entries


def _write(outputs: Rows, nodes: slice, rows: Tensor) -> None:
    outputs[nodes] = rows.cpu().numpy()
