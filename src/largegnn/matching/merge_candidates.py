"""More pairs for candidates that are there: the union, in order, with what is known of either.

In: a `CandidateGraph` and pairs (p, 2) in any order, some of them perhaps edges already or given twice. Out: the graph
with these pairs as edges too, ascending by source, then target.
The idea: sources know nothing of each other, so edges and pairs are cut where a source begins and each piece is joined
for itself, by all processors.
Cost: a sort of the pairs, and a search for each of them in the edges of its piece; memory for both graphs.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import CandidateGraph, IntArray, Mask
from largegnn.artifacts.pairs import pair_keys
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors

__all__ = ["grown_by", "joined_with"]

_PIECE = 1 << 16  # edges that are not worth cutting


def joined_with(graph: CandidateGraph, pairs: IntArray, missing: float = 0.0) -> CandidateGraph:
    """The graph with the pairs (p, 2) as edges too; new edges have `missing` as evidence in every column."""
    return grown_by(graph, pairs, missing)[0]


def grown_by(graph: CandidateGraph, pairs: IntArray, missing: float = 0.0) -> tuple[CandidateGraph, Mask]:
    """The graph joined with the pairs (p, 2), and which of its edges are new."""
    wanted = pair_keys(pairs)
    if bool((np.diff(pairs[:, 0]) < 0).any()):
        wanted.sort()
    step = max(_PIECE, -(-len(graph) // (4 * num_processors())))
    starts = graph.sources[step::step].astype(np.int64)
    edge_cuts = np.concatenate([[0], np.searchsorted(graph.sources, starts), [len(graph)]])
    pair_cuts = np.concatenate([[0], np.searchsorted(wanted, starts << 32), [len(wanted)]])

    def look(piece: int, _: int) -> tuple[IntArray, IntArray]:
        # Sorted by hand: np.unique hashes, and numbers packed like these collide, which is a hundred times slower.
        own = np.sort(wanted[pair_cuts[piece] : pair_cuts[piece + 1]])
        own = own[np.diff(own, prepend=-1) != 0]
        at, is_there = graph.places(own, slice(edge_cuts[piece], edge_cuts[piece + 1]))
        return own[~is_there], at[~is_there]

    found = by_all_processors(look, len(pair_cuts) - 1, 1)
    shifts = np.concatenate([[0], np.cumsum([len(new) for new, _ in found])]).astype(np.int64)
    is_new = np.zeros(len(graph) + int(shifts[-1]), dtype=bool)
    columns = {name: np.empty(len(is_new), dtype=np.float32) for name in graph.evidence}
    ends = [np.empty(len(is_new), dtype=np.int32) for _ in range(2)]

    def join(piece: int, _: int) -> None:
        (new, at), old = found[piece], slice(edge_cuts[piece], edge_cuts[piece + 1])
        here = slice(old.start + shifts[piece], old.stop + shifts[piece + 1])
        fresh = is_new[here]
        fresh[at + np.arange(len(new))] = True
        for side, kept in enumerate((graph.sources, graph.targets)):
            ends[side][here][fresh] = new & 0xFFFFFFFF if side else new >> 32
            ends[side][here][~fresh] = kept[old]
        for name, values in graph.evidence.items():
            columns[name][here][fresh] = missing
            columns[name][here][~fresh] = values[old]

    by_all_processors(join, len(found), 1)
    return CandidateGraph(ends[0], ends[1], columns), is_new
