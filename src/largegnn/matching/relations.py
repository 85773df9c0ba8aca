"""Align relations: learn which relation of one graph means what which relation of the other means.

In: matched pairs of entities with their certainty. Out: `RelationCounts`, how often two relations join the same two
entities, and from it how likely they mean the same; or a `RelationAlignment` to read.
The idea (as PARIS, Suchanek et al., 2011): wherever two pairs (s, t) and (a, b) are matched, and both s - a and t - b
are joined by some triple, every relation of s - a occurs together with every relation of t - b, by the certainty of
the two pairs. The likelihood that two relations are aligned is the share of their joint occurrences among all of either
relation, as a mean of both sides; for relations that occur seldom it begins at a tenth. Two relations may also be
aligned with ends exchanged, as parent and child are.
Cost: linear in the triples of matched entities, of some sources at a time; memory for the pairs of relations.
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
from largegnn.matching.neighbor_rows import NeighborRows, both_neighbor_rows, worth_sending
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

_PRIOR = 5.0  # occurrences of a relation at which they count half
_PIECE = 1 << 17  # sources that one thread counts at a time
_LEAST_SHARE, _LEAST_SCORE = 0.1, 0.15  # of relations worth showing


Totals = npt.NDArray[np.float64]


class Counterparts(NamedTuple):
    """The counterparts of source i: targets `ids[ptr[i]:ptr[i + 1]]` with their certainty; both numbered from 0."""

    ptr: IntArray
    ids: IntArray
    certainties: npt.NDArray[np.float32]


class RelationCounts(NamedTuple):
    """How often, by certainty, source relation i occurs with each target way in `ways[ptr[i]:ptr[i + 1]]`, ascending.

    A target way is 2 r for relation r the same way round and 2 r + 1 the other way round. `source_scale` and
    `target_scale` are 1 / (occurrences with any + prior) of each relation.
    """

    ptr: IntArray
    ways: IntArray
    joint: npt.NDArray[np.float32]
    source_scale: npt.NDArray[np.float32]
    target_scale: npt.NDArray[np.float32]


class _Table(NamedTuple):
    """Relations that occur together, one row for each key, ascending; up to `EXAMPLES` rows of examples for a key."""

    keys: IntArray
    joint: npt.NDArray[np.float64]
    counts: IntArray
    example_keys: IntArray
    examples: IntArray


def counterparts(task: AlignmentTask, pairs: IntArray, certainty: FloatArray) -> Counterparts:
    """Matched pairs (k, 2) by source; a pair given twice is at most certain."""
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
    """How often relations of both sides join the same matched pairs."""
    counts, *_ = _count(task, near_source, near_target, matched)
    return counts


def align_relations(task: AlignmentTask, pairs: IntArray, certainty: FloatArray) -> RelationAlignment:
    """The relations aligned by the matched pairs (k, 2), with scores and examples."""
    matched = counterparts(task, pairs, certainty)
    near = both_neighbor_rows(task)
    counts, table, totals = _count(task, *near, matched)
    sources = np.repeat(np.arange(task.num_source_relations), np.diff(counts.ptr))
    targets = counts.ways >> 1
    shares = [counts.joint / total[ids] for total, ids in zip(totals, (sources, targets), strict=True)]
    score = likelihoods(counts, sources).astype(np.float32)
    examples = np.full((len(table.keys), EXAMPLES, 4), -1, dtype=np.int32)
    examples[np.searchsorted(table.keys, table.example_keys), _places(table.example_keys)] = table.examples
    keep = np.flatnonzero((np.maximum(*shares) >= _LEAST_SHARE) & (score >= _LEAST_SCORE))
    keep = keep[np.lexsort((targets[keep], -score[keep], sources[keep]))]
    examples = examples[keep]
    return RelationAlignment(
        pairs=np.stack([sources[keep], targets[keep] + task.num_source_relations], axis=1),
        is_inverse=(counts.ways[keep] & 1).astype(bool),
        scores=score[keep],
        source_shares=shares[0][keep],
        target_shares=shares[1][keep],
        counts=table.counts[keep] // 2,
        examples=np.where(examples >= 0, examples + np.array([0, 0, 1, 1]) * task.num_source_entities, -1),
    )


def _count(
    task: AlignmentTask, near_source: NeighborRows, near_target: NeighborRows, matched: Counterparts
) -> tuple[RelationCounts, _Table, list[FloatArray]]:
    """The counts, the table they are from, and how often each relation occurs with any."""
    # Pieces of one size, however many processors there are: sums must not depend on the machine.
    ranges = pieces(task.num_source_entities, _PIECE) if task.num_source_entities else [(0, 0)]
    known = (near_source, near_target, matched, task.num_source_relations, task.num_target_relations)
    found = list(map_pieces(relations_piece, ranges, *known, send=worth_sending(task)))
    table = _grouped(*(np.concatenate(columns) for columns in zip(*(piece[0] for piece in found), strict=True)))
    sources, ways = np.divmod(table.keys, max(2 * task.num_target_relations, 1))
    # Every triple is counted from both of its ends.
    halves = [(np.sum([piece[side] for piece in found], axis=0) / 2).astype(np.float32) for side in (1, 2)]
    scales = [(1 / (total + _PRIOR)).astype(np.float32) for total in halves]
    ptr = offsets(sources, task.num_source_relations)
    return RelationCounts(ptr, ways.astype(np.int32), (table.joint / 2).astype(np.float32), *scales), table, halves


def relations_piece(
    begin: int,
    end: int,
    near_source: NeighborRows,
    near_target: NeighborRows,
    matched: Counterparts,
    num_source_relations: int,
    num_target_relations: int,
) -> tuple[_Table, Totals, Totals]:
    """Count from sources `begin` to `end`: pairs of relations, and the totals of both sides."""
    num_targets = len(near_target.ptr) - 1
    # Every pair (s, t), with each way from s to a neighbour a, and each counterpart b of a.
    sources, links = entries_of(matched.ptr[begin:end], matched.ptr[begin + 1 : end + 1])
    sources += begin
    rows, steps = entries_of(near_source.ptr[sources], near_source.ptr[sources + 1])
    sources, links, neighbors = sources[rows], links[rows], near_source.ids[steps]
    rows, others = entries_of(matched.ptr[neighbors], matched.ptr[neighbors + 1])
    sources, links, neighbors, steps = sources[rows], links[rows], neighbors[rows], steps[rows]
    # Where t is joined to b.
    joined = np.repeat(np.arange(num_targets), np.diff(near_target.ptr)) * num_targets + near_target.ids
    wanted = matched.ids[links].astype(np.int64) * num_targets + matched.ids[others]
    low, high = (np.searchsorted(joined, wanted, side) for side in ("left", "right"))
    sure = (matched.certainties[links] * matched.certainties[others]).astype(np.float64)
    is_joined = high > low
    source_totals = _sums(near_source.ways[steps[is_joined]] >> 1, sure[is_joined], num_source_relations)
    rows, ends = entries_of(low, high)
    target_ways = near_target.ways[ends]
    # A neighbour that is reached in several ways counts once for the relations of the target.
    is_new = _is_first_way(near_source, steps)[rows]
    target_totals = _sums(target_ways[is_new] >> 1, sure[rows[is_new]], num_target_relations)
    ways = near_source.ways[steps[rows]]
    keys = (ways >> 1).astype(np.int64) * (2 * num_target_relations) + (target_ways ^ (ways & 1))
    # Leaving triples alone, so that no example comes twice.
    leaving = np.flatnonzero(ways & 1 == 0)
    shown = rows[leaving]
    examples = np.stack(
        [sources[shown], neighbors[shown], matched.ids[links[shown]], matched.ids[others[shown]]], axis=1
    )
    table = _grouped(keys, sure[rows], np.ones(len(keys), dtype=np.int64), keys[leaving], examples)
    return table, source_totals, target_totals


def _is_first_way(near: NeighborRows, steps: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each entry (e,) is the first of its row that leads to its neighbour."""
    is_first = np.ones(len(near.ids), dtype=bool)
    is_first[1:] = np.diff(near.ids) != 0
    begins = near.ptr[:-1]
    is_first[begins[begins < len(is_first)]] = True
    found: npt.NDArray[np.bool_] = is_first[steps]
    return found


def _grouped(keys: IntArray, joint: Totals, counts: IntArray, example_keys: IntArray, examples: IntArray) -> _Table:
    """Add up what belongs to one key; of its examples the first few stay."""
    distinct, of = np.unique(keys, return_inverse=True)
    order = np.argsort(example_keys, kind="stable")
    order = order[_places(example_keys[order]) < EXAMPLES]
    return _Table(
        distinct,
        _sums(of, joint, len(distinct)),
        _sums(of, counts, len(distinct)).astype(np.int64),
        example_keys[order],
        examples[order],
    )


def _sums(groups: IntArray, values: npt.NDArray[Any], number: int) -> Totals:
    """The sum of the values of each group (n,)."""
    return np.bincount(groups, values, number).astype(np.float64)


def _places(keys: IntArray) -> IntArray:
    """The place of each ascending key among those equal to it, from 0."""
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    return np.arange(len(keys)) - np.repeat(begins, np.diff(begins, append=len(keys)))


def likelihoods(counts: RelationCounts, relations: IntArray) -> npt.NDArray[np.float64]:
    """How likely each source relation (w,) means the same as its target way in `counts`: `likelihood` of all."""
    scale = counts.source_scale[relations].astype(np.float64) + counts.target_scale[counts.ways >> 1]
    result: npt.NDArray[np.float64] = (counts.joint.astype(np.float64) + _PRIOR * UNKNOWN_LIKELIHOOD) * scale / 2
    return result


@compiled
def likelihood(counts: RelationCounts, source_way: int, target_way: int) -> float:
    """How likely a way of the source means the same as a way of the target."""
    relation, way = source_way >> 1, target_way ^ (source_way & 1)
    end = counts.ptr[relation + 1]
    at = lower_bound(counts.ways, counts.ptr[relation], end, way)
    joint = float(counts.joint[at]) if at < end and counts.ways[at] == way else 0.0
    scale = float(counts.source_scale[relation]) + float(counts.target_scale[way >> 1])
    return (joint + _PRIOR * UNKNOWN_LIKELIHOOD) * scale / 2
