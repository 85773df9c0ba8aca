"""Make tables in names: unmatched entities, duplicates within a graph, aligned relations.

In: an `Alignment` or a `RelationAlignment`. Out: polars tables, one row per entity, pair of entities or pair of
relations. Cost: one pass over the pairs.
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
_NEARLY = 0.9  # of the score of the accepted pair


def unmatched_table(task: AlignmentTask, names: TaskNames, alignment: Alignment) -> pl.DataFrame:
    """One row for each entity without an accepted pair that is no seed.

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
            "best_candidate": entities.gather(_or_null(candidate)),
            "matched_with": entities.gather(_or_null(matched_with)),
            "score": pl.Series(np.where(candidate >= 0, score[rows], np.nan), dtype=pl.Float32).fill_nan(None),
        }
    )


def duplicates_table(task: AlignmentTask, names: TaskNames, alignment: Alignment, equal: IntArray) -> pl.DataFrame:
    """Entities of one graph that are probably the same, to check before the graphs are merged.

    One row for each pair (d, 2) of `equal`, which have equal names and no contradiction, and for each entity whose best
    candidate is accepted with another entity of its side although it scores nearly as high.
    Columns side, entity, duplicate, because, counterpart and score (of the entity with the counterpart).
    """
    shared, counterparts, scores = _shared_counterparts(alignment)
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
            "counterpart": entities.gather(_or_null(np.concatenate([np.full(len(equal), -1), counterparts[is_new]]))),
            "score": pl.concat([unknown, pl.Series(scores[is_new], dtype=pl.Float32)]),
        }
    )


def relations_table(relations: RelationAlignment, names: TaskNames) -> pl.DataFrame:
    """One row for each pair of aligned relations.

    Columns source, target, inverse, mapping, score, source_share, target_share, count, examples. An example is
    `head tail = head tail`, the source's before the target's; an `inverse` one has the target's ends in the order of
    the source's.
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
    """The entity that each entity is accepted with (n,), -1 for unmatched ones."""
    partner = np.full(num_entities, -1, dtype=np.int64)
    accepted = alignment.pairs[alignment.accepted]
    partner[accepted[:, 0]], partner[accepted[:, 1]] = accepted[:, 1], accepted[:, 0]
    return partner


def _sides(task: AlignmentTask, entities: IntArray) -> pl.Series:
    return pl.Series(("source", "target")).gather((entities >= task.num_source_entities).astype(np.int64))


def _or_null(ids: IntArray) -> pl.Series:
    """Ids (m,), null for -1."""
    return pl.Series(ids.astype(np.int64)).replace(-1, None)


def _best_candidates(alignment: Alignment, num_entities: int) -> tuple[IntArray, IntArray]:
    """The best candidate of each entity (n,), -1 where there is no candidate, and its score."""
    best, score = np.full(num_entities, -1, dtype=np.int64), np.zeros(num_entities, dtype=np.float32)
    for side, ranks in ((0, alignment.source_ranks), (1, alignment.target_ranks)):
        # From the worst to the best, so that the best is written last.
        order = np.argsort(-ranks, kind="stable")
        best[alignment.pairs[order, side]] = alignment.pairs[order, 1 - side]
        score[alignment.pairs[order, side]] = alignment.scores[order]
    return best, score


def _shared_counterparts(alignment: Alignment) -> tuple[IntArray, IntArray, FloatArray]:
    """Entities whose best candidate is matched elsewhere, with its partner (d, 2), the candidate and the score (d,)."""
    accepted = alignment.accepted
    usual = float(np.median(alignment.scores[accepted])) if accepted.any() else np.inf
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    size = int(alignment.pairs.max(initial=-1)) + 1
    partner = partners(alignment, size)
    score_of = np.zeros(size, dtype=np.float32)
    score_of[alignment.pairs[accepted]] = alignment.scores[accepted, None]
    for side, ranks in ((0, alignment.source_ranks), (1, alignment.target_ranks)):
        own, other = alignment.pairs[:, side].astype(np.int64), alignment.pairs[:, 1 - side].astype(np.int64)
        is_as_good = (alignment.scores >= usual) & (alignment.scores >= _NEARLY * score_of[other])
        rows = np.flatnonzero((ranks == 1) & ~accepted & is_as_good & (partner[own] < 0) & (partner[other] >= 0))
        found.append((np.stack([own[rows], partner[other[rows]]], axis=1), other[rows], alignment.scores[rows]))
    pairs, counterparts, scores = (np.concatenate(part) for part in zip(*found, strict=True))
    return pairs, counterparts, scores


def _examples(rows: list[list[int]], names: TaskNames) -> str:
    known = [names.entities.take(row) for row in rows if row[0] >= 0]
    return "; ".join(f"{head} {tail} = {other_head} {other_tail}" for head, tail, other_head, other_tail in known)
