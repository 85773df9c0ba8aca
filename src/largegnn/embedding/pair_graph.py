"""Build the graph of the fused kernels: pairs by node and by relation set, split into pieces, padded to fixed sizes.

In: the triples of a subgraph, or of the whole graph, as a tensor on any device. Out: a `PairGraph` on that device.
The idea: pairs and relation sets as in `structure`, without slots, since the kernels compute values of a pair when they
read it. A set is identified by a hash, the sum of a random number for each of its rows: two of n sets get the
same hash with probability n^2 / 2^65. A row of a pattern may have one entry or a million, so kernels work on
*pieces* of at most `PIECE` entries of a row. A captured step needs arrays of constant shape: `put` writes a graph into
arrays of a given `Capacity`.
Cost: three sorts of twice the triples, milliseconds on a GPU.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

__all__ = ["PIECE", "Capacity", "PairGraph", "build_pair_graph", "entries_of"]

PIECE = 128
_HASH_SEED = 20_260


@dataclass(frozen=True)
class Capacity:
    """The maximum numbers of nodes, pairs, relation sets, members of sets, and incidences; `rows` is exactly 2R."""

    nodes: int
    pairs: int
    sets: int
    members: int
    incidences: int
    rows: int

    def holds(self, other: Capacity) -> bool:
        """Whether a graph of capacity `other` fits into arrays of this capacity."""
        return self.rows == other.rows and all(
            getattr(self, field.name) >= getattr(other, field.name) for field in fields(self)
        )

    def rounded_up(self) -> Capacity:
        """A capacity up to about an eighth larger, which graphs of similar size share.

        It has at least one set more than the graph: the set of padding.
        """
        sizes = {field.name: _round_up(getattr(self, field.name) + 1) for field in fields(self)}
        return Capacity(**sizes | {"rows": self.rows})

    def union(self, other: Capacity) -> Capacity:
        """The maximum of both capacities in every field."""
        return Capacity(
            **{field.name: max(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)}
        )


def _round_up(size: int) -> int:
    """Round up to a number with at most four significant binary digits."""
    step = max(1, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


@dataclass(frozen=True, eq=False)
class PairGraph:
    """Pairs, relation sets and incidences of n nodes; integers are int32 unless noted.

    - `neighbors`, `sets` (P): pairs by receiver; `node_pieces` (4, c) of each node's pairs
    - `set_receivers`, `set_neighbors` (P): the same pairs by set; `set_pieces`
    - `inverse_set` (S): the set of the reverse pair; `set_sizes` (S) float, how many rows a set has
    - `members`, `set_of_member` (M) int64: the relation rows of all sets
    - `incidences` (I): distinct relation rows at each node; `incidence_pieces`; `num_incident` (n) float
    - `touched` (I): the nodes at each relation row; `row_pieces`
    - `degrees` (n) float; `num_nodes` (1) float: how many nodes are not padding

    A column of pieces (4, c) has: row, index of the first entry, index after the last entry, 1 if the row has no other
    piece.
    """

    neighbors: Tensor
    sets: Tensor
    node_pieces: Tensor
    set_receivers: Tensor
    set_neighbors: Tensor
    set_pieces: Tensor
    inverse_set: Tensor
    set_sizes: Tensor
    members: Tensor
    set_of_member: Tensor
    incidences: Tensor
    incidence_pieces: Tensor
    num_incident: Tensor
    touched: Tensor
    row_pieces: Tensor
    degrees: Tensor
    num_nodes: Tensor
    capacity: Capacity

    @classmethod
    def empty(cls, capacity: Capacity, device: torch.device) -> PairGraph:
        """Arrays of zeros for graphs up to this capacity."""
        pairs, sets, nodes, incidences = capacity.pairs, capacity.sets, capacity.nodes, capacity.incidences
        # Each row has at most one piece that is not full.
        full_pair_pieces = pairs // PIECE
        full_incidence_pieces = incidences // PIECE
        sizes = {
            **dict.fromkeys(("neighbors", "sets", "set_receivers", "set_neighbors"), (pairs,)),
            "node_pieces": (4, nodes + full_pair_pieces),
            "set_pieces": (4, sets + full_pair_pieces),
            "inverse_set": (sets,),
            **dict.fromkeys(("incidences", "touched"), (incidences,)),
            "incidence_pieces": (4, nodes + full_incidence_pieces),
            "row_pieces": (4, capacity.rows + full_incidence_pieces),
        }
        tensors = {name: torch.zeros(size, dtype=torch.int32, device=device) for name, size in sizes.items()}
        for name in ("members", "set_of_member"):
            tensors[name] = torch.zeros(capacity.members, dtype=torch.int64, device=device)
        for name, size in (("set_sizes", sets), ("num_incident", nodes), ("degrees", nodes), ("num_nodes", 1)):
            tensors[name] = torch.zeros(size, device=device)
        return cls(**tensors, capacity=capacity)

    def put(self, graph: PairGraph) -> None:
        """Write a graph that fits into these arrays; their remaining entries are padding."""
        for name, tensor in self._tensors().items():
            source: Tensor = getattr(graph, name)
            count = source.shape[-1]
            tensor[..., :count].copy_(source, non_blocking=True)
            # Padding members belong to the last set, which no pair has.
            tensor[..., count:].fill_(self.capacity.sets - 1 if name == "set_of_member" else 0)

    def _tensors(self) -> dict[str, Tensor]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "capacity"}


def build_pair_graph(num_nodes: int, triples: Tensor, num_relations: int) -> PairGraph:
    """Build the graph of `triples` (m, 3): local head, global relation, local tail; on the device of the triples."""
    heads, relations, tails = triples.long().unbind(dim=1)
    num_rows, device = 2 * num_relations, triples.device
    inverse_rows = relations + num_relations
    is_no_loop = heads != tails
    shift = max(num_nodes, num_rows).bit_length()
    keys = torch.cat([(heads << shift) | tails, (tails << shift) | heads])[torch.cat([is_no_loop, is_no_loop])]
    rows = torch.cat([relations, inverse_rows])[torch.cat([is_no_loop, is_no_loop])]
    keys, order = keys.sort(stable=True)
    rows = rows[order]
    keys, pair_of_entry, counts = torch.unique_consecutive(keys, return_inverse=True, return_counts=True)
    receivers, neighbors = keys >> shift, keys & ((1 << shift) - 1)
    hashes = _row_hashes(num_rows).to(device)
    pair_hash = torch.zeros_like(keys).index_add_(0, pair_of_entry, hashes[rows])
    reverse_hash = torch.zeros_like(keys).index_add_(
        0, pair_of_entry, hashes[(rows + num_relations) % max(num_rows, 1)]
    )
    set_hash, sets = torch.unique(pair_hash, return_inverse=True)
    num_sets = len(set_hash)
    inverse_set = torch.zeros_like(set_hash)
    inverse_set[sets] = torch.searchsorted(set_hash, reverse_hash)
    # The members of a set are the rows of any pair that has the set.
    example = torch.zeros_like(set_hash)
    example[sets] = torch.arange(len(sets), device=device)
    set_sizes = counts[example]
    set_of_member = torch.repeat_interleave(torch.arange(num_sets, device=device), set_sizes)
    number = torch.arange(len(set_of_member), device=device) - _starts(set_sizes)[set_of_member]
    members = rows[_starts(counts)[example][set_of_member] + number]
    by_set = sets.sort(stable=True).indices
    touching = torch.unique(torch.cat([(heads << shift) | relations, (tails << shift) | inverse_rows]))
    touching_nodes, touching_rows = touching >> shift, touching & ((1 << shift) - 1)
    by_row = touching_rows.sort(stable=True).indices
    degrees = torch.bincount(receivers, minlength=num_nodes)
    num_incident = torch.bincount(touching_nodes, minlength=num_nodes)

    return PairGraph(
        neighbors=neighbors.int(),
        sets=sets.int(),
        node_pieces=_pieces(degrees),
        set_receivers=receivers[by_set].int(),
        set_neighbors=neighbors[by_set].int(),
        set_pieces=_pieces(torch.bincount(sets, minlength=num_sets)),
        inverse_set=inverse_set.int(),
        set_sizes=set_sizes.float(),
        members=members,
        set_of_member=set_of_member,
        incidences=touching_rows.int(),
        incidence_pieces=_pieces(num_incident),
        num_incident=num_incident.float(),
        touched=touching_nodes[by_row].int(),
        row_pieces=_pieces(torch.bincount(touching_rows, minlength=num_rows)),
        degrees=degrees.float(),
        num_nodes=torch.full((1,), float(num_nodes), device=device),
        capacity=Capacity(num_nodes, len(keys), num_sets, len(members), len(touching), num_rows),
    )


def entries_of(pieces: Tensor) -> tuple[Tensor, Tensor]:
    """List row and index of every entry of a pattern in pieces, (e,) int64 each."""
    rows, starts, stops, _ = pieces.long()
    lengths = stops - starts
    piece = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), lengths)
    return rows[piece], starts[piece] + torch.arange(len(piece), device=rows.device) - _starts(lengths)[piece]


def _pieces(lengths: Tensor) -> Tensor:
    """The pieces (4, c) of rows with these numbers of entries; a row without entries has no piece."""
    counts = (lengths + (PIECE - 1)) // PIECE
    rows = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), counts)
    number = torch.arange(len(rows), device=lengths.device) - _starts(counts)[rows]
    starts = _starts(lengths)
    first = starts[rows] + PIECE * number
    last = torch.minimum(first + PIECE, (starts + lengths)[rows])
    return torch.stack([rows, first, last, (counts[rows] == 1).long()]).int()


def _starts(lengths: Tensor) -> Tensor:
    """The index of the first entry of each row, from the lengths of the rows."""
    return lengths.cumsum(0) - lengths


def _row_hashes(num_rows: int) -> Tensor:
    """A random number for each relation row, (2R,), from a fixed seed."""
    generator = torch.Generator().manual_seed(_HASH_SEED)
    return torch.randint(-(2**63), 2**63 - 1, (num_rows,), generator=generator)
