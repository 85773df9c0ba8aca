"""Compute an encoder's layers over a large graph, a range of nodes at a time (section 5).

In: rows of one layer for all nodes, a `GraphStructure` in main memory. Out: the rows of the next layer, in an array
that the caller provides, which may be mapped from a file. The result is the result of `message_passing`.
The idea: a layer reads only the layer before it, so a range of nodes needs the rows of these nodes and of their
neighbours. The values of pairs and slots are single numbers, which are kept for the whole graph in main memory.
Cost: the arithmetic of `message_passing`, and one more gather of rows. Memory: one layer, a few numbers for each pair,
and about `chunk_bytes` of rows on the device; the rows of one node's neighbours are never split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import FloatArray, IntArray
from largegnn.embedding.message_passing import attention, sampled_product, sparse_product
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.pieces import map_pieces
from largegnn.machine.progress import progress
from largegnn.machine.read_only import read_only_tensor

__all__ = ["Finish", "Layers", "Rows", "as_tensor", "node_ranges"]

Rows = Tensor | FloatArray
Range = tuple[int, int]
# From sums or means (k, d) of some nodes, and the number of entries (k,) of each node, to the nodes' rows.
Finish = Callable[[Tensor, Tensor], Tensor]

_NUM_COPIES = 3  # arrays of rows of one range in memory at the same time, about: gathered, summed, finished


def node_ranges(ptr: IntArray, row_bytes: int, chunk_bytes: int) -> Iterator[Range]:
    """Split the nodes into ranges whose rows and CSR entries, `row_bytes` each, fit into `chunk_bytes`.

    A range has at least one node.
    """
    num_nodes = len(ptr) - 1
    cost = (ptr.astype(np.int64) + np.arange(num_nodes + 1)) * row_bytes * _NUM_COPIES
    start = 0
    while start < num_nodes:
        stop = int(np.searchsorted(cost, cost[start] + chunk_bytes, side="right")) - 1
        stop = min(max(stop, start + 1), num_nodes)
        yield start, stop
        start = stop


@dataclass(frozen=True, eq=False)
class Layers:
    """Computes layers over a graph whose `structure` is in main memory; a range needs about `chunk_bytes` on `device`.

    `send`: whether ranges are sent to the workers of a cluster, if there is one.
    """

    structure: GraphStructure
    device: torch.device
    chunk_bytes: int
    send: bool = False

    def neighborhood_means(self, rows: Rows, outputs: FloatArray, finish: Finish) -> None:
        """Write the mean of the rows (n, d) of each node and its neighbours, finished, into `outputs` (n, d)."""
        source, pairs = self._source(rows), _pattern(self.structure.pair_ptr, self.structure.neighbors)
        ranges = list(node_ranges(pairs.ptr, source.row_bytes, self.chunk_bytes))
        with progress("neighbourhood means", self.structure.num_nodes, "nodes") as work:
            for (start, stop), finished in self._by_range(neighborhood_rows, ranges, source, pairs, finish):
                outputs[start:stop] = finished
                work.advance(stop - start)

    def relation_means(self, relation_rows: Tensor, outputs: FloatArray, finish: Finish) -> None:
        """Write the mean of the distinct relation rows (2R, d) at each node, finished, into `outputs` (n, d)."""
        incidences = _pattern(self.structure.incidence_ptr, self.structure.incidences)
        row_bytes = relation_rows.shape[1] * relation_rows.element_size()
        ranges = list(node_ranges(incidences.ptr, row_bytes, self.chunk_bytes))
        shared = (_shareable(relation_rows), incidences, finish, self.device)
        with progress("relation means", self.structure.num_nodes, "nodes") as work:
            for (start, stop), finished in self._by_range(incidence_rows, ranges, *shared):
                outputs[start:stop] = finished
                work.advance(stop - start)

    def reflected_sums(
        self, rows: FloatArray, relations: Tensor, logits: Tensor, outputs: FloatArray, finish: Finish
    ) -> None:
        """Write `message_passing.reflected_sum` of `rows` (n, d), finished, into `outputs` (n, d)."""
        structure, source, vectors = self.structure, self._source(rows), _shareable(relations)
        weights = attention(logits.cpu(), structure)
        along = torch.empty(structure.num_slots, dtype=relations.dtype)
        with progress("reflected sums", 2 * structure.num_nodes, "nodes") as work:  # every node is visited twice
            slots = _pattern(structure.slot_ptr, structure.slot_inverse_sets)
            ranges = list(node_ranges(slots.ptr, source.row_bytes, self.chunk_bytes))
            for (start, stop), products in self._by_range(slot_products, ranges, source, vectors, slots):
                along[slots.ptr[start] : slots.ptr[stop]] = torch.from_numpy(products)
                work.advance(stop - start)
            received = sparse_product(
                structure.slot_pair_ptr, structure.slot_of_reverse, along.new_ones(structure.num_pairs), along[:, None]
            )
            of_slots = received.squeeze(1).mul_(weights)
            slots = _pattern(structure.slot_ptr, structure.slot_sets, of_slots)
            of_pairs = weights.index_select(0, structure.slot_of_pair)
            pairs = _pattern(structure.pair_ptr, structure.neighbors, of_pairs)
            ranges = list(node_ranges(pairs.ptr, source.row_bytes, self.chunk_bytes))
            for (start, stop), finished in self._by_range(
                reflected_rows, ranges, source, vectors, pairs, slots, finish
            ):
                outputs[start:stop] = finished
                work.advance(stop - start)

    def transform(self, rows: FloatArray, function: Callable[[Tensor], Tensor], send: bool = True) -> None:
        """Replace `rows` (n, w) by `function` of them, range by range."""
        step = max(1, self.chunk_bytes // (16 * rows.shape[1]))  # four copies of float32 fit into `chunk_bytes`
        ranges = [(start, min(start + step, len(rows))) for start in range(0, len(rows), step)]
        pieces = ((rows[start:stop],) for start, stop in ranges)
        results = map_pieces(transformed, pieces, function, self.device, send=send and self.send, own_threads=True)
        with progress("rows", len(rows), "nodes") as work:
            for (start, stop), result in zip(ranges, results, strict=True):
                rows[start:stop] = result
                work.advance(stop - start)

    def _by_range(
        self, function: Callable[..., FloatArray], ranges: Sequence[Range], *shared: Any
    ) -> Iterator[tuple[Range, FloatArray]]:
        """Compute every range, in order; on this machine one at a time, since PyTorch uses all processors for it."""
        return zip(ranges, map_pieces(function, ranges, *shared, send=self.send, own_threads=True), strict=True)

    def _source(self, rows: Rows) -> RowSource:
        return RowSource(_shareable(rows), self.device, self.chunk_bytes)


@dataclass(frozen=True, eq=False)
class RowSource:
    """Rows (n, d) of all nodes: copied to the device once if they take at most half a chunk, else fetched as needed."""

    rows: Rows
    device: torch.device
    chunk_bytes: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(self._tensor.shape[1] * self._tensor.element_size())

    @cached_property
    def _tensor(self) -> Tensor:
        return as_tensor(self.rows)

    @cached_property
    def _resident(self) -> Tensor | None:
        fits = 2 * len(self._tensor) * self.row_bytes <= self.chunk_bytes
        return self._tensor.to(self.device).contiguous() if fits else None

    def take(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Rows on the device that include the rows of `ids` (k,), and the index of each id among these rows."""
        if self._resident is not None:
            return self._resident, ids.to(self.device)
        distinct, indices = torch.unique(ids, return_inverse=True)
        fetched = self._tensor.index_select(0, distinct.to(self._tensor.device))
        return fetched.to(self.device), indices.to(self.device, torch.int32)

    def part(self, start: int, stop: int) -> Tensor:
        """The rows of a range of nodes, on the device."""
        return self._tensor[start:stop].to(self.device).contiguous()


@dataclass(frozen=True, eq=False)
class Pattern:
    """A sparse matrix as CSR: offsets (n + 1,) of its rows, the column of each entry, and its value, or all ones."""

    ptr: IntArray
    columns: IntArray
    values: FloatArray | None = None

    def part(self, start: int, stop: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Offsets (from 0, on the device), columns (in main memory) and values (on the device) of a range of rows."""
        first, last = int(self.ptr[start]), int(self.ptr[stop])
        offsets = torch.from_numpy(self.ptr[start : stop + 1] - first).to(device)
        columns = read_only_tensor(self.columns[first:last])
        if self.values is None:
            return offsets, columns, torch.ones(last - first, device=device)
        return offsets, columns, read_only_tensor(self.values[first:last]).to(device)


@torch.no_grad()
def neighborhood_rows(start: int, stop: int, source: RowSource, pairs: Pattern, finish: Finish) -> FloatArray:
    """Mean of the rows of a node and its neighbours, for each node of a range, finished."""
    ptr, neighbors, ones = pairs.part(start, stop, source.device)
    table, columns = source.take(neighbors)
    sums = sparse_product(ptr, columns, ones, table) + source.part(start, stop)
    degrees = ptr.diff()
    return _on_host(finish(sums / (degrees + 1).unsqueeze(1), degrees))


@torch.no_grad()
def incidence_rows(
    start: int, stop: int, relation_rows: Rows, incidences: Pattern, finish: Finish, device: torch.device
) -> FloatArray:
    """Mean of the distinct relation rows (2R, d) at each node of a range, finished."""
    ptr, columns, ones = incidences.part(start, stop, device)
    counts = ptr.diff()
    sums = sparse_product(ptr, columns.to(device), ones, as_tensor(relation_rows).to(device))
    return _on_host(finish(sums / counts.clamp_min(1).unsqueeze(1), counts))


@torch.no_grad()
def slot_products(start: int, stop: int, source: RowSource, relations: Rows, slots: Pattern) -> FloatArray:
    """Product of a node's row with the unit vector (S, d) of a set it sends by, for all slots of a range of nodes."""
    ptr, sets, _ = slots.part(start, stop, source.device)
    vectors = as_tensor(relations).to(source.device)
    return _on_host(sampled_product(ptr, sets.to(source.device), source.part(start, stop), vectors))


@torch.no_grad()
def reflected_rows(
    start: int, stop: int, source: RowSource, relations: Rows, pairs: Pattern, slots: Pattern, finish: Finish
) -> FloatArray:
    """Sums of reflected and weighted neighbours of a range of nodes, finished.

    The values of `pairs` are attention weights, the values of `slots` the weighted products that a slot receives.
    """
    device = source.device
    ptr, neighbors, weights = pairs.part(start, stop, device)
    table, columns = source.take(neighbors)
    sums = sparse_product(ptr, columns, weights, table)
    degrees = ptr.diff()
    ptr, sets, received = slots.part(start, stop, device)
    sums = sparse_product(ptr, sets.to(device), received, as_tensor(relations).to(device), onto=sums, scale=-2.0)
    return _on_host(finish(sums, degrees))


@torch.no_grad()
def transformed(rows: FloatArray, function: Callable[[Tensor], Tensor], device: torch.device) -> FloatArray:
    """Apply `function` to rows (k, w) on the device."""
    return _on_host(function(read_only_tensor(rows).to(device)))


def _pattern(ptr: Tensor, columns: Tensor, values: Tensor | None = None) -> Pattern:
    return Pattern(ptr.numpy(), columns.numpy(), None if values is None else values.numpy())


def _shareable(rows: Rows) -> Rows:
    """Rows in a form that pieces can share: a contiguous array in main memory, or a tensor on a GPU, unchanged."""
    if isinstance(rows, Tensor):
        if rows.device.type != "cpu":
            return rows
        rows = rows.detach().numpy()
    return np.ascontiguousarray(rows)


def as_tensor(rows: Rows) -> Tensor:
    """A tensor that shares the memory of the rows, which may be mapped from a file."""
    return rows if isinstance(rows, Tensor) else read_only_tensor(rows)


def _on_host(rows: Tensor) -> FloatArray:
    result: FloatArray = rows.cpu().numpy()
    return result
