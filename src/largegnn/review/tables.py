"""Make readable tables (entity and relation names) of a result: unmatched entities, duplicates, aligned relations.

In: an `Alignment` or a `RelationAlignment`, and the names. Out: polars tables with one row for each entity, pair of
entities or pair of relations. Cost: one pass over the pairs.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from largegnn.artifacts import (
    MAPPINGS,
    REASONS,
    Alignment,
    AlignmentTask,
    FloatArray,
    IntArray,
    RelationAlignment,
    TaskNames,
)
from largegnn.data.vocabulary import name_column

__all__ = ["duplicates_table", "partners", "relations_table", "unmatched_table"]

_EQUAL = "equal names, no value differs"
_SHARED = "same counterpart"
_MIN_SCORE_RATIO = 0.9  # of the score of a possible duplicate to that of the accepted pair


def unmatched_table(task: AlignmentTask, names: TaskNames, alignment: Alignment) -> pl.DataFrame:
    """List the entities that are neither a seed nor in an accepted pair, one row for each.

    Columns side, entity, reason, best_candidate, matched_with (the entity that the best candidate is accepted with),
    score.
    """
    reasons = alignment.reasons
    rows = np.flatnonzero((reasons != REASONS.index("aligned")) & (reasons != REASONS.index("seed")))
    best, score = _best_candidates(alignment, task.num_entities)
    candidate = best[rows]
    matched_with = np.where(candidate >= 0, partners(alignment, task.num_entities)[candidate], -1)
    entities = name_column(names.entities)
    return pl.DataFrame(
        {
            "side": _sides(task, rows),
            "entity": entities.gather(rows),
            "reason": pl.Series(REASONS).gather(reasons[rows].astype(np.int64)),
            "best_candidate": entities.gather(_nullable(candidate)),
            "matched_with": entities.gather(_nullable(matched_with)),
            "score": pl.Series(np.where(candidate >= 0, score[rows], np.nan), dtype=pl.Float32).fill_nan(None),
        }
    )


def duplicates_table(task: AlignmentTask, names: TaskNames, alignment: Alignment, equal: IntArray) -> pl.DataFrame:
    """List pairs of entities of one graph that are probably the same, to check before the graphs are merged.

    There is a row for each pair of `equal` (d, 2), which have equal names and no contradiction; and for each unmatched
    entity whose best candidate is accepted with another entity of its side, if its score with that candidate is at
    least 0.9 of the accepted pair's and at least the median of all accepted scores.
    Columns side, entity, duplicate, because, counterpart and score (of the entity with the counterpart).
    """
    shared, candidates, scores = _shared_counterparts(alignment)
    known = {tuple(sorted(pair)) for pair in equal.tolist()}
    is_new = np.array([tuple(sorted(pair)) not in known for pair in shared.tolist()], dtype=bool)
    pairs = np.concatenate([equal.astype(np.int64), shared[is_new]])
    entities = name_column(names.entities)
    unknown = pl.Series([None] * len(equal), dtype=pl.Float32)
    return pl.DataFrame(
        {
            "side": _sides(task, pairs[:, 0]),
            "entity": entities.gather(pairs[:, 0]),
            "duplicate": entities.gather(pairs[:, 1]),
            "because": pl.Series([_EQUAL] * len(equal) + [_SHARED] * int(is_new.sum()), dtype=pl.String),
            "counterpart": entities.gather(_nullable(np.concatenate([np.full(len(equal), -1), candidates[is_new]]))),
            "score": pl.concat([unknown, pl.Series(scores[is_new], dtype=pl.Float32)]),
        }
    )


def relations_table(relations: RelationAlignment, names: TaskNames) -> pl.DataFrame:
    """List the aligned relations, one row for each pair.

    Columns source, target, inverse, mapping, score, source_share, target_share, count, examples. An example is
    `head tail = head tail`, with the source triple before the target triple; where the relations are inverse, the ends
    of the target triple are exchanged.
    """
    sources, targets = (names.relations.take(relations.pairs[:, side]) for side in (0, 1))
    return pl.DataFrame(
        {
            "source": pl.Series(sources, dtype=pl.String),
            "target": pl.Series(targets, dtype=pl.String),
            "inverse": pl.Series(np.array(relations.is_inverse), dtype=pl.Boolean),
            "mapping": pl.Series(MAPPINGS).gather(relations.mappings().astype(np.int64)),
            "score": pl.Series(np.array(relations.scores), dtype=pl.Float32),
            "source_share": pl.Series(np.array(relations.source_shares), dtype=pl.Float32),
            "target_share": pl.Series(np.array(relations.target_shares), dtype=pl.Float32),
            "count": pl.Series(np.array(relations.counts), dtype=pl.Int64),
            "examples": pl.Series([_examples(rows, names) for rows in relations.examples.tolist()], dtype=pl.String),
        }
    )


def partners(alignment: Alignment, num_entities: int) -> IntArray:
    """The entity that each entity is accepted with (n,); -1 for unmatched entities."""
    partner = np.full(num_entities, -1, dtype=np.int64)
    accepted = alignment.pairs[alignment.accepted]
    partner[accepted[:, 0]] = accepted[:, 1]
    partner[accepted[:, 1]] = accepted[:, 0]
    return partner


def _sides(task: AlignmentTask, entities: IntArray) -> pl.Series:
    return pl.Series(("source", "target")).gather((entities >= task.num_source_entities).astype(np.int64))


def _nullable(ids: IntArray) -> pl.Series:
    """The ids (m,) as a column, with null in place of -1."""
    return pl.Series(ids.astype(np.int64)).replace(-1, None)


def _best_candidates(alignment: Alignment, num_entities: int) -> tuple[IntArray, IntArray]:
    """The best candidate of each entity (n,), -1 where there is no candidate, and its score (n,)."""
    best = np.full(num_entities, -1, dtype=np.int64)
    score = np.zeros(num_entities, dtype=np.float32)
    for side, ranks in ((0, alignment.source_ranks), (1, alignment.target_ranks)):
        # From the worst to the best, so that the best is written last.
        order = np.argsort(-ranks, kind="stable")
        best[alignment.pairs[order, side]] = alignment.pairs[order, 1 - side]
        score[alignment.pairs[order, side]] = alignment.scores[order]
    return best, score


def _shared_counterparts(alignment: Alignment) -> tuple[IntArray, IntArray, FloatArray]:
    """Find unmatched entities whose best candidate is accepted with another entity of their side.

    Returns pairs of the entity and that other entity (d, 2), the candidates (d,) and the scores (d,).
    """
    accepted = alignment.accepted
    median_score = float(np.median(alignment.scores[accepted])) if accepted.any() else np.inf
    by_side: list[tuple[IntArray, IntArray, FloatArray]] = []
    size = int(alignment.pairs.max(initial=-1)) + 1
    partner = partners(alignment, size)
    score_of = np.zeros(size, dtype=np.float32)
    score_of[alignment.pairs[accepted]] = alignment.scores[accepted, None]
    for side, ranks in ((0, alignment.source_ranks), (1, alignment.target_ranks)):
        entity = alignment.pairs[:, side].astype(np.int64)
        candidate = alignment.pairs[:, 1 - side].astype(np.int64)
        is_as_good = (alignment.scores >= median_score) & (alignment.scores >= _MIN_SCORE_RATIO * score_of[candidate])
        rows = np.flatnonzero((ranks == 1) & ~accepted & is_as_good & (partner[entity] < 0) & (partner[candidate] >= 0))
        pairs = np.stack([entity[rows], partner[candidate[rows]]], axis=1)
        by_side.append((pairs, candidate[rows], alignment.scores[rows]))
    all_pairs, candidates, scores = (np.concatenate(part) for part in zip(*by_side, strict=True))
    return all_pairs, candidates, scores


def _examples(rows: list[list[int]], names: TaskNames) -> str:
    examples = [names.entities.take(row) for row in rows if row[0] >= 0]
    return "; ".join(f"{head} {tail} = {other_head} {other_tail}" for head, tail, other_head, other_tail in examples)
