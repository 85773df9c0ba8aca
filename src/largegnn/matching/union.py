"""Unite candidate pairs: the pairs found by the searches of both sides, or a `CandidateGraph` and more pairs.

In: the nearest targets of each source and the nearest sources of each target (`Neighbors`); or a graph and pairs (p, 2)
in any order, with duplicates or pairs that are edges already. Out: a `CandidateGraph` with each pair once, ascending by
source, then target. The idea: a pair is one number (`pair_keys`); numbers are sorted several times faster than rows.
Cost: a sort of the pairs; 40 bytes per pair while it runs.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray, Mask, Neighbors
from largegnn.artifacts.arrays import pair_keys

__all__ = ["build_candidates", "grown_by", "joined_with"]


def build_candidates(source_neighbors: Neighbors, target_neighbors: Neighbors) -> CandidateGraph:
    """Unite the pairs found from either side, with their cosines."""
    by_source, source_scores = _found(source_neighbors, (0, 1))
    by_target, target_scores = _found(target_neighbors, (1, 0))
    keys, scores = np.concatenate([by_source, by_target]), np.concatenate([source_scores, target_scores])
    order = np.argsort(
        keys, kind="stable"
    )  # of equal pairs, the one found by the source comes first, and its score is kept
    keys, scores = keys[order], scores[order]
    is_first = np.diff(keys, prepend=-1) != 0
    keys = keys[is_first]
    return CandidateGraph(keys >> 32, keys & 0xFFFFFFFF, {"cosine": scores[is_first]})


def joined_with(graph: CandidateGraph, pairs: IntArray, missing: float = 0.0) -> CandidateGraph:
    """Add the pairs (p, 2) to a graph; new edges have `missing` as evidence in every column."""
    return grown_by(graph, pairs, missing)[0]


def grown_by(graph: CandidateGraph, pairs: IntArray, missing: float = 0.0) -> tuple[CandidateGraph, Mask]:
    """Add the pairs (p, 2) to a graph, and mark the new edges; see `joined_with`."""
    wanted = _distinct(pair_keys(pairs))
    places, is_present = graph.places(wanted)
    new, places = wanted[~is_present], places[~is_present]
    is_new = np.zeros(len(graph) + len(new), dtype=bool)
    is_new[places + np.arange(len(new))] = True
    columns = {name: np.insert(values, places, missing) for name, values in graph.evidence.items()}
    sources = np.insert(graph.sources, places, (new >> 32).astype(np.int32))
    targets = np.insert(graph.targets, places, (new & 0xFFFFFFFF).astype(np.int32))
    return CandidateGraph(sources, targets, columns), is_new


def _found(neighbors: Neighbors, ends: tuple[int, int]) -> tuple[IntArray, FloatArray]:
    """List the keys and scores of the pairs of a search; `ends`: the positions of source and target, query first."""
    is_found = neighbors.ids >= 0
    queries = np.broadcast_to(neighbors.queries[:, None], neighbors.ids.shape)[is_found]
    pair = queries, neighbors.ids[is_found]
    keys = pair[ends[0]].astype(np.int64) << 32
    keys |= pair[ends[1]]
    return keys, neighbors.scores[is_found]


def _distinct(keys: IntArray) -> IntArray:
    """Sort the keys (p,), and remove duplicates."""
    # Not np.unique: it hashes, and packed numbers like these collide, which is a hundred times slower.
    keys = np.sort(keys)
    distinct: IntArray = keys[np.diff(keys, prepend=-1) != 0]
    return distinct
