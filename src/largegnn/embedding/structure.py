"""Build the index tensors of a graph that encoders read in every step (section 5 of the paper).

In: the triples of a subgraph, or of the whole graph, as ids. Out: a `GraphStructure` of 32-bit integers, which the
sparse kernels of a CPU need.
The idea: if a triple joins nodes i and j, in either direction, (i, j) and (j, i) are *pairs* (receiver, neighbour).
A triple (h, r, t) gives the pair (h, t) the relation row r and the pair (t, h) the inverse row R + r. The multiset of a
pair's rows is its *relation set*. There are few distinct sets, most with one row, and an encoder needs only the set of
a pair. The pairs of a node with equal sets form a *slot*; attention is equal for all pairs of a slot. The pattern of
pairs is symmetric, so the backward pass needs no transpose. A loop makes no pair, but counts for the node's relations.
Cost: two sorts of twice the triples. 100,000 nodes with 700,000 triples take less than half a second on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from scipy import sparse

from largegnn.artifacts import IntArray
from largegnn.errors import ArtifactError

__all__ = ["GraphStructure", "build_structure"]

_MAX_KEY_BITS = 63  # of a sort key that packs receiver, neighbour and relation row


@dataclass(frozen=True, eq=False)
class GraphStructure:
    """Nodes, pairs, slots and relation sets; all tensors int32, `*_ptr` are CSR offsets.

    Pairs are ordered by (receiver, set, neighbour), slots by (receiver, set), sets by size.

    - node -> pairs: `pair_ptr` (n + 1), `neighbors` (P)
    - node -> slots: `slot_ptr` (n + 1), `slot_sets` (K) sets as receiver, `slot_inverse_sets` (K) sets as sender
    - slot -> pairs: `slot_pair_ptr` (K + 1); pair -> slot: `slot_of_pair` (P); `slot_of_reverse` (P) of its reverse
    - set -> slots: `set_ptr` (S + 1), `set_slots` (K), `set_nodes` (K) the slots' nodes; `inverse_set` (S)
    - set -> relation rows: `member_ptr` (S + 1), `members` (M); row -> sets: `holder_ptr` (2R + 1), `holders` (M)
    - node -> distinct relation rows at it: `incidence_ptr` (n + 1), `incidences` (I); row -> nodes: `touched_ptr`,
      `touched` (I)
    """

    num_nodes: int
    num_relations: int
    pair_ptr: torch.Tensor
    neighbors: torch.Tensor
    slot_ptr: torch.Tensor
    slot_nodes: torch.Tensor
    slot_sets: torch.Tensor
    slot_inverse_sets: torch.Tensor
    slot_pair_ptr: torch.Tensor
    slot_of_pair: torch.Tensor
    slot_of_reverse: torch.Tensor
    set_ptr: torch.Tensor
    set_slots: torch.Tensor
    set_nodes: torch.Tensor
    inverse_set: torch.Tensor
    member_ptr: torch.Tensor
    members: torch.Tensor
    holder_ptr: torch.Tensor
    holders: torch.Tensor
    incidence_ptr: torch.Tensor
    incidences: torch.Tensor
    touched_ptr: torch.Tensor
    touched: torch.Tensor

    @property
    def num_pairs(self) -> int:
        """Number of pairs, P."""
        return len(self.neighbors)

    @property
    def num_slots(self) -> int:
        """Number of slots, distinct (receiver, relation set), K."""
        return len(self.slot_sets)

    @property
    def num_sets(self) -> int:
        """Number of distinct relation sets, S."""
        return len(self.set_ptr) - 1

    @property
    def num_rows(self) -> int:
        """Number of relation rows, forward and inverse: 2R."""
        return 2 * self.num_relations

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.pair_ptr.device

    def to(self, device: torch.device | str) -> GraphStructure:
        """Copy the structure to a device; copies from pinned memory run in the background."""
        return self._map_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def pin(self) -> GraphStructure:
        """Copy the structure to page-locked memory, from which a GPU can copy while it computes."""
        return self._map_tensors(torch.Tensor.pin_memory)

    def _map_tensors(self, function: Callable[[torch.Tensor], torch.Tensor]) -> GraphStructure:
        """A copy of the structure, with `function` applied to each tensor."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {name: function(value) for name, value in values.items() if torch.is_tensor(value)}
        return GraphStructure(**values)


def build_structure(num_nodes: int, triples: IntArray, num_relations: int) -> GraphStructure:
    """Build the structure of a graph; `triples` (m, 3): local head, global relation, local tail."""
    if max(num_nodes, 2 * num_relations, 2 * len(triples)) >= 2**31:
        raise ArtifactError(f"{num_nodes} nodes with {len(triples)} triples are too many for 32-bit indices")
    heads, relations, tails = (np.asarray(triples[:, column], dtype=np.int64) for column in range(3))
    num_rows = 2 * num_relations
    receivers, neighbors, pair_members, pair_rows = _pairs(num_nodes, num_rows, heads, relations, tails)
    set_of_pair, set_ptr_members, members = _relation_sets(np.diff(pair_members), pair_members, pair_rows, num_rows)
    num_sets = len(set_ptr_members) - 1
    tensors: dict[str, IntArray] = {"member_ptr": set_ptr_members, "members": members}
    tensors["holder_ptr"], tensors["holders"], _ = _transpose(set_ptr_members, members, num_rows)
    tensors |= _slots(num_nodes, num_sets, receivers, neighbors, set_of_pair)
    tensors |= _incidences(num_nodes, num_rows, heads, relations, tails)
    return GraphStructure(
        num_nodes=num_nodes,
        num_relations=num_relations,
        **{name: torch.from_numpy(np.ascontiguousarray(array, dtype=np.int32)) for name, array in tensors.items()},
    )


def _pairs(
    num_nodes: int, num_rows: int, heads: IntArray, relations: IntArray, tails: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """List distinct pairs by (receiver, neighbour): receivers, neighbours, offsets into the rows, ascending rows."""
    is_no_loop = heads != tails
    heads, relations, tails = heads[is_no_loop], relations[is_no_loop], tails[is_no_loop]
    row_bits, node_bits = num_rows.bit_length(), num_nodes.bit_length()
    if 2 * node_bits + row_bits > _MAX_KEY_BITS:
        return _pairs_of_columns(
            np.concatenate([heads, tails]),
            np.concatenate([tails, heads]),
            np.concatenate([relations, relations + num_rows // 2]),
        )
    # Keys are packed by shifts and masks, because divisions of 64-bit integers would cost more than the sort.
    keys = np.concatenate(
        [
            (((heads << node_bits) | tails) << row_bits) | relations,
            (((tails << node_bits) | heads) << row_bits) | (relations + num_rows // 2),
        ]
    )
    keys.sort()
    pair_keys = keys >> row_bits
    starts = np.flatnonzero(np.diff(pair_keys, prepend=-1))
    pair_keys = pair_keys[starts]
    rows = keys & ((1 << row_bits) - 1)
    return pair_keys >> node_bits, pair_keys & ((1 << node_bits) - 1), np.append(starts, len(keys)), rows


def _pairs_of_columns(
    receivers: IntArray, neighbors: IntArray, rows: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """List pairs as `_pairs` does, if ids are too long for one key: sort by columns, which takes longer."""
    order = np.lexsort((rows, neighbors, receivers))
    receivers, neighbors, rows = receivers[order], neighbors[order], rows[order]
    is_first = (np.diff(receivers, prepend=-1) != 0) | (np.diff(neighbors, prepend=-1) != 0)
    starts = np.flatnonzero(is_first)
    return receivers[starts], neighbors[starts], np.append(starts, len(rows)), rows


def _relation_sets(
    sizes: IntArray, pair_members: IntArray, rows: IntArray, num_rows: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Number the distinct multisets of rows: the set of each pair, and offsets and rows of the sets, smallest first."""
    set_of_pair = np.empty(len(sizes), dtype=np.int64)
    tables: list[IntArray] = []
    lengths: list[IntArray] = []
    num_sets = 0
    for size in np.flatnonzero(np.bincount(sizes)):
        chosen = np.flatnonzero(sizes == size)
        table = rows[pair_members[chosen][:, None] + np.arange(size)]
        # Column by column, equal prefixes get equal codes: exact, and only integers are sorted.
        codes = table[:, 0]
        for column in range(1, size):
            codes = np.unique(codes * num_rows + table[:, column], return_inverse=True)[1]
        example = np.full(int(codes.max()) + 1, -1)
        example[codes] = np.arange(len(codes))
        is_used = example >= 0
        set_of_pair[chosen] = num_sets + (np.cumsum(is_used) - 1)[codes]
        tables.append(table[example[is_used]].ravel())
        lengths.append(np.full(int(is_used.sum()), size))
        num_sets += int(is_used.sum())
    none = np.empty(0, dtype=np.int64)
    return set_of_pair, _offsets(np.concatenate([*lengths, none])), np.concatenate([*tables, none])


def _slots(
    num_nodes: int, num_sets: int, receivers: IntArray, neighbors: IntArray, set_of_pair: IntArray
) -> dict[str, IntArray]:
    """Group pairs, given by (receiver, neighbour), into slots; index the slots by node and by set."""
    pair_ptr = _offsets(np.bincount(receivers, minlength=num_nodes))
    # The pattern is symmetric: the entry of the transpose at a pair's index is its reverse pair.
    _, _, reverse = _transpose(pair_ptr, neighbors, num_nodes)
    inverse_set = np.zeros(num_sets, dtype=np.int64)
    inverse_set[set_of_pair] = set_of_pair[reverse]
    # Transposing twice is a stable counting sort of each node's pairs by set.
    by_set_ptr, by_set_nodes, by_set = _transpose(pair_ptr, set_of_pair, num_sets)
    _, ordered_sets, order_in_by_set = _transpose(by_set_ptr, by_set_nodes, num_nodes)
    order = by_set[order_in_by_set]
    new_index = np.empty_like(order)
    new_index[order] = np.arange(len(order))
    is_first = np.diff(ordered_sets, prepend=-1) != 0
    is_first[pair_ptr[:-1][np.diff(pair_ptr) > 0]] = True
    starts = np.flatnonzero(is_first)
    slot_of_pair = np.cumsum(is_first) - 1
    slot_nodes, slot_sets = receivers[starts], ordered_sets[starts]
    slot_ptr = _offsets(np.bincount(slot_nodes, minlength=num_nodes))
    set_ptr, set_nodes, set_slots = _transpose(slot_ptr, slot_sets, num_sets)
    return {
        "pair_ptr": pair_ptr,
        "neighbors": neighbors[order],
        "slot_ptr": slot_ptr,
        "slot_nodes": slot_nodes,
        "slot_sets": slot_sets,
        "slot_inverse_sets": inverse_set[slot_sets],
        "slot_pair_ptr": np.append(starts, len(order)),
        "slot_of_pair": slot_of_pair,
        "slot_of_reverse": slot_of_pair[new_index[reverse[order]]],
        "set_ptr": set_ptr,
        "set_slots": set_slots,
        "set_nodes": set_nodes,
        "inverse_set": inverse_set,
    }


def _incidences(
    num_nodes: int, num_rows: int, heads: IntArray, relations: IntArray, tails: IntArray
) -> dict[str, IntArray]:
    """Index the distinct relation rows at each node, and the nodes at each relation row."""
    row_bits = num_rows.bit_length()
    keys = np.concatenate([(heads << row_bits) | relations, (tails << row_bits) | (relations + num_rows // 2)])
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) != 0]
    nodes, rows = keys >> row_bits, keys & ((1 << row_bits) - 1)
    incidence_ptr = _offsets(np.bincount(nodes, minlength=num_nodes))
    touched_ptr, touched, _ = _transpose(incidence_ptr, rows, num_rows)
    return {"incidence_ptr": incidence_ptr, "incidences": rows, "touched_ptr": touched_ptr, "touched": touched}


def _offsets(counts: IntArray) -> IntArray:
    """CSR offsets of rows with these lengths, one more than rows."""
    return np.concatenate([[0], np.cumsum(counts)])


def _transpose(ptr: IntArray, columns: IntArray, num_columns: int) -> tuple[IntArray, IntArray, IntArray]:
    """Offsets and columns of the transposed CSR pattern, and the index of each of its entries in the given pattern."""
    entries = np.arange(len(columns), dtype=np.int32)
    pattern: Any = sparse.csr_array(
        (entries, columns.astype(np.int32, copy=False), ptr.astype(np.int32, copy=False)),
        shape=(len(ptr) - 1, num_columns),
    )
    transposed = pattern.tocsc()
    return transposed.indptr, transposed.indices, transposed.data
