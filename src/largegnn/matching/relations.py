"""Align relations: learn which relation of one graph means what which relation of the other means.

In: matched pairs of entities with their certainty. Out: `RelationCounts`, how often two relations join the same two
entities, and from it how likely they mean the same; or a `RelationAlignment` to read.
The idea (as PARIS, Suchanek et al., 2011): wherever two pairs (s, t) and (a, b) are matched, and both s - a and t - b
are joined by some triple, every relation of s - a occurs together with every relation of t - b, by the certainty of
the two pairs. The likelihood that two relations are aligned is the share of their joint occurrences among all of either
relation, as a mean of both sides; for relations that occur seldom it begins at a tenth. Two relations may also be
aligned with ends exchanged, as parent and child are.
Cost: linear in the triples of matched entities; memory for the pairs of relations that occur together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import EXAMPLES, AlignmentTask, FloatArray, IntArray, RelationAlignment
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import map_pieces, pieces
from largegnn.matching.evidence import UNKNOWN_LIKELIHOOD
from largegnn.matching.neighbor_rows import NeighborRows, both_neighbor_rows, worth_sending

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
_FIRST_SIZE = 1 << 15
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
    """Relations that occur together, in slots by the remainder of their key, -1 if empty; examples (slots, x, 4)."""

    keys: IntArray
    joint: npt.NDArray[np.float64]
    counts: IntArray
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
    counts, table, rows, totals = _count(task, *near, matched)
    sources = np.repeat(np.arange(task.num_source_relations), np.diff(counts.ptr))
    targets = counts.ways >> 1
    shares = [counts.joint / total[ids] for total, ids in zip(totals, (sources, targets), strict=True)]
    score = likelihoods(counts, sources).astype(np.float32)
    keep = np.flatnonzero((np.maximum(*shares) >= _LEAST_SHARE) & (score >= _LEAST_SCORE))
    keep = keep[np.lexsort((targets[keep], -score[keep], sources[keep]))]
    examples = table.examples[rows[keep]]
    return RelationAlignment(
        pairs=np.stack([sources[keep], targets[keep] + task.num_source_relations], axis=1),
        is_inverse=(counts.ways[keep] & 1).astype(bool),
        scores=score[keep],
        source_shares=shares[0][keep],
        target_shares=shares[1][keep],
        counts=table.counts[rows[keep]] // 2,
        examples=np.where(examples >= 0, examples + np.array([0, 0, 1, 1]) * task.num_source_entities, -1),
    )


def relations_piece(
    begin: int,
    end: int,
    near_source: NeighborRows,
    near_target: NeighborRows,
    matched: Counterparts,
    num_source_relations: int,
    num_target_relations: int,
) -> tuple[_Table, Totals, Totals]:
    """Count from sources `begin` to `end`: pairs of relations, no slot empty, and the totals of both sides."""
    size = _FIRST_SIZE
    while True:
        table = _Table(
            np.full(size, -1, dtype=np.int64),
            np.zeros(size),
            np.zeros(size, dtype=np.int64),
            np.full((size, EXAMPLES, 4), -1, dtype=np.int32),
        )
        joint = np.zeros(num_source_relations), np.zeros(num_target_relations)
        first = np.zeros(len(near_target.ptr) - 1, dtype=np.int64)
        rows = (near_source, near_target, 2 * num_target_relations, first)
        if _count_together(begin, end, matched, *rows, table, *joint):
            slots = np.flatnonzero(table.keys >= 0)
            return _Table(*(column[slots] for column in table)), *joint
        size *= 8


def _count(
    task: AlignmentTask, near_source: NeighborRows, near_target: NeighborRows, matched: Counterparts
) -> tuple[RelationCounts, _Table, IntArray, list[FloatArray]]:
    """The counts, the table they are from, the row of each in it, and how often each relation occurs with any."""
    num_ways = 2 * task.num_target_relations
    # Pieces of one size, however many processors there are: sums must not depend on the machine.
    ranges = pieces(task.num_source_entities, _PIECE) if task.num_source_entities else [(0, 0)]
    known = (near_source, near_target, matched, task.num_source_relations, task.num_target_relations)
    found = list(map_pieces(relations_piece, ranges, *known, send=worth_sending(task)))
    table = _joined([piece[0] for piece in found])
    totals = [np.sum([piece[side] for piece in found], axis=0) for side in (1, 2)]
    slots = np.arange(len(table.keys))
    sources, ways = np.divmod(table.keys, max(num_ways, 1))
    # Every triple is counted from both of its ends.
    joint, halves = (table.joint[slots] / 2).astype(np.float32), [(total / 2).astype(np.float32) for total in totals]
    ptr = np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=task.num_source_relations))])
    scales = [(1 / (total + _PRIOR)).astype(np.float32) for total in halves]
    return RelationCounts(ptr, ways.astype(np.int32), joint, *scales), table, slots, halves


def _joined(tables: list[_Table]) -> _Table:
    """What several tables hold, ascending by key; examples from the first tables first. No slot is empty."""
    keys, of = np.unique(np.concatenate([table.keys for table in tables]), return_inverse=True)
    joint, counts = np.zeros(len(keys)), np.zeros(len(keys), dtype=np.int64)
    examples, filled = np.full((len(keys), EXAMPLES, 4), -1, dtype=np.int32), np.zeros(len(keys), dtype=np.int64)
    start = 0
    for table in tables:
        own = of[start : start + len(table.keys)]
        start += len(table.keys)
        joint[own] += table.joint
        counts[own] += table.counts
        for number in range(EXAMPLES):
            fits = (table.examples[:, number, 0] >= 0) & (filled[own] < EXAMPLES)
            examples[own[fits], filled[own[fits]]] = table.examples[fits, number]
            filled[own[fits]] += 1
    return _Table(keys, joint, counts, examples)


def likelihoods(counts: RelationCounts, relations: IntArray) -> npt.NDArray[np.float64]:
    """How likely each source relation (w,) means the same as its target way in `counts`: `likelihood` of all."""
    scale = counts.source_scale[relations].astype(np.float64) + counts.target_scale[counts.ways >> 1]
    result: npt.NDArray[np.float64] = (counts.joint.astype(np.float64) + _PRIOR * UNKNOWN_LIKELIHOOD) * scale / 2
    return result


@compiled
def likelihood(counts: RelationCounts, source_way: int, target_way: int) -> float:
    """How likely a way of the source means the same as a way of the target."""
    relation, way = source_way >> 1, target_way ^ (source_way & 1)
    ways = counts.ways
    low, end = counts.ptr[relation], counts.ptr[relation + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if ways[middle] < way:
            low = middle + 1
        else:
            high = middle
    joint = float(counts.joint[low]) if low < end and ways[low] == way else 0.0
    scale = float(counts.source_scale[relation]) + float(counts.target_scale[way >> 1])
    return (joint + _PRIOR * UNKNOWN_LIKELIHOOD) * scale / 2


@compiled
def _count_together(
    begin_source: int,
    end_source: int,
    matched: Counterparts,
    near_source: NeighborRows,
    near_target: NeighborRows,
    num_ways: int,
    first: IntArray,
    table: _Table,
    source_totals: npt.NDArray[np.float64],
    target_totals: npt.NDArray[np.float64],
) -> bool:
    """Count the relations between matched pairs of these sources and all that both sides join them to.

    Returns whether the table was large enough.
    `first` (num_targets,) is 0, and 1 + the first entry of the current target's row for each neighbour.
    """
    num_free = len(table.keys) // 2
    for source in range(begin_source, end_source):
        for link in range(matched.ptr[source], matched.ptr[source + 1]):
            target = matched.ids[link]
            begin, end = near_target.ptr[target], near_target.ptr[target + 1]
            for index in range(end - 1, begin - 1, -1):
                first[near_target.ids[index]] = index + 1
            low = near_source.ptr[source]
            while low < near_source.ptr[source + 1]:
                neighbor = near_source.ids[low]
                high = low + 1
                while high < near_source.ptr[source + 1] and near_source.ids[high] == neighbor:
                    high += 1
                for other in range(matched.ptr[neighbor], matched.ptr[neighbor + 1]):
                    at = first[matched.ids[other]] - 1
                    if at >= 0:
                        sure = float(matched.certainties[link]) * float(matched.certainties[other])
                        ends = (source, neighbor, target, matched.ids[other])
                        num_free -= _note_run(
                            near_source, low, high, near_target, at, end, num_ways, sure, ends, table, source_totals,
                            target_totals,
                        )  # fmt: skip
                        if num_free < 0:
                            return False
                low = high
            for index in range(begin, end):
                first[near_target.ids[index]] = 0
    return True


@compiled
def _note_run(
    near_source: NeighborRows,
    low: int,
    high: int,
    near_target: NeighborRows,
    at: int,
    end: int,
    num_ways: int,
    sure: float,
    ends: tuple[int, int, int, int],
    table: _Table,
    source_totals: npt.NDArray[np.float64],
    target_totals: npt.NDArray[np.float64],
) -> int:
    """Count all relations from one source entity to another with all between their counterparts; how many are new."""
    num_new = 0
    for index in range(low, high):
        source_totals[near_source.ways[index] >> 1] += sure
    other = at
    while other < end and near_target.ids[other] == near_target.ids[at]:
        target_totals[near_target.ways[other] >> 1] += sure
        for index in range(low, high):
            way = near_source.ways[index]
            key = int(way >> 1) * num_ways + int(near_target.ways[other] ^ (way & 1))
            slot = key % len(table.keys)
            while table.keys[slot] >= 0 and table.keys[slot] != key:
                slot = slot + 1 if slot + 1 < len(table.keys) else 0
            if table.keys[slot] < 0:
                table.keys[slot] = key
                num_new += 1
            count = table.counts[slot]
            table.joint[slot] += sure
            table.counts[slot] = count + 1
            # Leaving triples alone, so that no example comes twice.
            if not way & 1:
                for number in range(EXAMPLES):
                    if table.examples[slot, number, 0] < 0:
                        table.examples[slot, number, 0], table.examples[slot, number, 1] = ends[0], ends[1]
                        table.examples[slot, number, 2], table.examples[slot, number, 3] = ends[2], ends[3]
                        break
        other += 1
    return num_new
