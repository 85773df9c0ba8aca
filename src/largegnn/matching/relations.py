"""Align the relations of the two graphs: estimate which of them mean the same.

In: matched pairs of entities with their certainty. Out: `RelationCounts`, how often two relations join the same matched
entities and how likely they are aligned; or a `RelationAlignment`, the aligned relations with examples.
The idea (as PARIS, Suchanek et al., 2011): if the pairs (s, t) and (a, b) are matched, s - a is joined by a triple and
t - b too, then every relation of s - a occurs together with every relation of t - b, weighted by the certainties of the
two pairs. The likelihood that two relations are aligned is their joint occurrences divided by all occurrences of either
relation, averaged over both, with a prior of 0.1 for rare relations. Relations may also be aligned with exchanged ends,
like parent and child. Directed relations are numbered as in `neighbor_rows`.
Cost: linear in the triples of matched entities, processed in ranges of sources; memory for the pairs of relations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import EXAMPLES, AlignmentTask, FloatArray, IntArray, RelationAlignment
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import map_pieces, pieces
from largegnn.matching.evidence import UNKNOWN_LIKELIHOOD
from largegnn.matching.neighbor_rows import NeighborRows, both_neighbor_rows, should_distribute
from largegnn.matching.rows import entries_of, lower_bound, offsets

__all__ = [
    "Counterparts",
    "RelationCounts",
    "align_relations",
    "count_relations",
    "counterparts",
    "likelihood",
    "likelihoods",
]

_PRIOR = 5.0  # occurrences of a relation at which they count as much as the prior
_PIECE = 1 << 17  # sources that one thread processes at a time
_MIN_SHARE, _MIN_SCORE = 0.1, 0.15  # of aligned relations in the result

Totals = npt.NDArray[np.float64]


class Counterparts(NamedTuple):
    """Source i has the counterparts `ids[ptr[i]:ptr[i + 1]]`, with certainties; both sides are numbered from 0."""

    ptr: IntArray
    ids: IntArray
    certainties: npt.NDArray[np.float32]


class RelationCounts(NamedTuple):
    """Joint occurrences of relations, weighted by certainty.

    Source relation i occurs together with the directed target relations `directed_relations[ptr[i]:ptr[i + 1]]`,
    ascending: 2 r for relation r in the same direction, 2 r + 1 for r with exchanged ends; `joint` is how often.
    `source_scale` and `target_scale` are 1 / (all occurrences + prior) of each relation.
    """

    ptr: IntArray
    directed_relations: IntArray
    joint: npt.NDArray[np.float32]
    source_scale: npt.NDArray[np.float32]
    target_scale: npt.NDArray[np.float32]


class _Table(NamedTuple):
    """Pairs of relations that occur together, by ascending key; up to `EXAMPLES` rows of examples for each key.

    The key is the source relation times the number of directed target relations, plus the directed target relation.
    """

    keys: IntArray
    joint: npt.NDArray[np.float64]
    counts: IntArray
    example_keys: IntArray
    examples: IntArray


def counterparts(task: AlignmentTask, pairs: IntArray, certainty: FloatArray) -> Counterparts:
    """Group matched pairs (k, 2) by source; the certainties of a pair given twice add up, to at most 1."""
    shape = (task.num_source_entities, task.num_target_entities)
    ends = pairs[:, 0], pairs[:, 1] - task.num_source_entities
    matrix = sparse.csr_array((certainty.astype(np.float32), ends), shape=shape)
    matrix.sort_indices()
    return Counterparts(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), np.minimum(matrix.data, np.float32(1))
    )


def count_relations(
    task: AlignmentTask, near_source: NeighborRows, near_target: NeighborRows, matched: Counterparts
) -> RelationCounts:
    """Count how often relations of both sides join the same matched pairs."""
    counts, *_ = _count(task, near_source, near_target, matched)
    return counts


def align_relations(task: AlignmentTask, pairs: IntArray, certainty: FloatArray) -> RelationAlignment:
    """Align relations by the matched pairs (k, 2); the result has scores and examples."""
    matched = counterparts(task, pairs, certainty)
    near = both_neighbor_rows(task)
    counts, table, totals = _count(task, *near, matched)
    sources = np.repeat(np.arange(task.num_source_relations), np.diff(counts.ptr))
    targets = counts.directed_relations >> 1
    shares = [counts.joint / total[ids] for total, ids in zip(totals, (sources, targets), strict=True)]
    score = likelihoods(counts, sources).astype(np.float32)
    examples = np.full((len(table.keys), EXAMPLES, 4), -1, dtype=np.int32)
    examples[np.searchsorted(table.keys, table.example_keys), _index_in_group(table.example_keys)] = table.examples
    keep = np.flatnonzero((np.maximum(*shares) >= _MIN_SHARE) & (score >= _MIN_SCORE))
    keep = keep[np.lexsort((targets[keep], -score[keep], sources[keep]))]
    examples = examples[keep]
    return RelationAlignment(
        pairs=np.stack([sources[keep], targets[keep] + task.num_source_relations], axis=1),
        is_inverse=(counts.directed_relations[keep] & 1).astype(bool),
        scores=score[keep],
        source_shares=shares[0][keep],
        target_shares=shares[1][keep],
        counts=table.counts[keep] // 2,
        examples=np.where(examples >= 0, examples + np.array([0, 0, 1, 1]) * task.num_source_entities, -1),
    )


def _count(
    task: AlignmentTask, near_source: NeighborRows, near_target: NeighborRows, matched: Counterparts
) -> tuple[RelationCounts, _Table, list[FloatArray]]:
    """Count joint occurrences: the counts, their table, and the occurrences of each relation of either side."""
    # Pieces of fixed size, whatever the number of processors: sums must not depend on the machine.
    ranges = pieces(task.num_source_entities, _PIECE) if task.num_source_entities else [(0, 0)]
    args = (near_source, near_target, matched, task.num_source_relations, task.num_target_relations)
    counted = list(map_pieces(relations_piece, ranges, *args, send=should_distribute(task)))
    table = _grouped(*(np.concatenate(columns) for columns in zip(*(piece[0] for piece in counted), strict=True)))
    sources, directed_relations = np.divmod(table.keys, max(2 * task.num_target_relations, 1))
    # Every triple is counted from both of its ends.
    halves = [(np.sum([piece[side] for piece in counted], axis=0) / 2).astype(np.float32) for side in (1, 2)]
    scales = [(1 / (total + _PRIOR)).astype(np.float32) for total in halves]
    ptr = offsets(sources, task.num_source_relations)
    joint = (table.joint / 2).astype(np.float32)
    return RelationCounts(ptr, directed_relations.astype(np.int32), joint, *scales), table, halves


def relations_piece(
    begin: int,
    end: int,
    near_source: NeighborRows,
    near_target: NeighborRows,
    matched: Counterparts,
    num_source_relations: int,
    num_target_relations: int,
) -> tuple[_Table, Totals, Totals]:
    """Count joint occurrences for the sources from `begin` to `end`: the table, and the totals of both sides.

    Entries of the rows of `near_source` are called `steps`, entries of `matched` `links` (of s) and `neighbor_links`.
    """
    num_targets = len(near_target.ptr) - 1
    # Every pair (s, t), with each step from s to a neighbour a, and each counterpart b of a.
    sources, links = entries_of(matched.ptr[begin:end], matched.ptr[begin + 1 : end + 1])
    sources += begin
    rows, steps = entries_of(near_source.ptr[sources], near_source.ptr[sources + 1])
    sources, links, neighbors = sources[rows], links[rows], near_source.ids[steps]
    rows, neighbor_links = entries_of(matched.ptr[neighbors], matched.ptr[neighbors + 1])
    sources, links, neighbors, steps = sources[rows], links[rows], neighbors[rows], steps[rows]
    # The entries of `near_target` that join t to b, from `low` to `high`.
    joined = np.repeat(np.arange(num_targets), np.diff(near_target.ptr)) * num_targets + near_target.ids
    wanted = matched.ids[links].astype(np.int64) * num_targets + matched.ids[neighbor_links]
    low, high = (np.searchsorted(joined, wanted, side) for side in ("left", "right"))
    certainty = (matched.certainties[links] * matched.certainties[neighbor_links]).astype(np.float64)
    is_joined = high > low
    source_totals = _sums(
        near_source.directed_relations[steps[is_joined]] >> 1, certainty[is_joined], num_source_relations
    )
    rows, ends = entries_of(low, high)
    target_relations = near_target.directed_relations[ends]
    # A neighbour that is reached by several relations counts once for the relations of the target.
    is_new = _is_first_step(near_source, steps)[rows]
    target_totals = _sums(target_relations[is_new] >> 1, certainty[rows[is_new]], num_target_relations)
    source_relations = near_source.directed_relations[steps[rows]]
    keys = (source_relations >> 1).astype(np.int64) * (2 * num_target_relations)
    keys += target_relations ^ (source_relations & 1)
    # Only triples whose head is s, so that no example occurs twice.
    forward = np.flatnonzero(source_relations & 1 == 0)
    shown = rows[forward]
    examples = np.stack(
        [sources[shown], neighbors[shown], matched.ids[links[shown]], matched.ids[neighbor_links[shown]]], axis=1
    )
    table = _grouped(keys, certainty[rows], np.ones(len(keys), dtype=np.int64), keys[forward], examples)
    return table, source_totals, target_totals


def _is_first_step(near: NeighborRows, steps: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each of the `steps` (e,) is the first entry of its row that leads to its neighbour."""
    is_first = np.ones(len(near.ids), dtype=bool)
    is_first[1:] = np.diff(near.ids) != 0
    begins = near.ptr[:-1]
    is_first[begins[begins < len(is_first)]] = True
    result: npt.NDArray[np.bool_] = is_first[steps]
    return result


def _grouped(keys: IntArray, joint: Totals, counts: IntArray, example_keys: IntArray, examples: IntArray) -> _Table:
    """Add up the numbers of each key, and keep the first few examples of each key."""
    distinct, groups = np.unique(keys, return_inverse=True)
    order = np.argsort(example_keys, kind="stable")
    order = order[_index_in_group(example_keys[order]) < EXAMPLES]
    return _Table(
        distinct,
        _sums(groups, joint, len(distinct)),
        _sums(groups, counts, len(distinct)).astype(np.int64),
        example_keys[order],
        examples[order],
    )


def _sums(groups: IntArray, values: npt.NDArray[Any], number: int) -> Totals:
    """Add up the values of each group (n,)."""
    return np.bincount(groups, values, number).astype(np.float64)


def _index_in_group(keys: IntArray) -> IntArray:
    """Number the entries of ascending keys from 0 among equal keys."""
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    return np.arange(len(keys)) - np.repeat(begins, np.diff(begins, append=len(keys)))


def likelihoods(counts: RelationCounts, relations: IntArray) -> npt.NDArray[np.float64]:
    """Compute for each entry (w,) of `counts` how likely its two relations are aligned; `relations` are the sources."""
    scale = counts.source_scale[relations].astype(np.float64) + counts.target_scale[counts.directed_relations >> 1]
    result: npt.NDArray[np.float64] = (counts.joint.astype(np.float64) + _PRIOR * UNKNOWN_LIKELIHOOD) * scale / 2
    return result


@compiled
def likelihood(counts: RelationCounts, source: int, target: int) -> float:
    """Compute how likely two directed relations, of the source and the target, are aligned."""
    relation, wanted = source >> 1, target ^ (source & 1)
    end = counts.ptr[relation + 1]
    index = lower_bound(counts.directed_relations, counts.ptr[relation], end, wanted)
    is_found = index < end and counts.directed_relations[index] == wanted
    joint = float(counts.joint[index]) if is_found else 0.0
    scale = float(counts.source_scale[relation]) + float(counts.target_scale[wanted >> 1])
    return (joint + _PRIOR * UNKNOWN_LIKELIHOOD) * scale / 2
