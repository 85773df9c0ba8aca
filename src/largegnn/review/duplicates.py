"""Entities of one graph that are probably the same thing: what to look at before merging two graphs.

In: an `Alignment`, and the pairs of one side with equal names that contradict each other in nothing. Out: a table with
one row for each such pair, and for each entity whose best candidate is accepted with another entity of its side though
it scores nearly as high. Cost: one pass over the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import Alignment, AlignmentTask, FloatArray, IntArray, TaskNames

if TYPE_CHECKING:
    import polars as pl

__all__ = ["duplicates_table"]

_EQUAL = "equal names, no value differs"
_SHARED = "same counterpart"
_NEARLY = 0.9  # of the score of the accepted pair


def duplicates_table(task: AlignmentTask, names: TaskNames, alignment: Alignment, equal: IntArray) -> pl.DataFrame:
    """Columns side, entity, duplicate, because, counterpart and score (of the entity with the counterpart)."""
    import polars as pl

    from largegnn.data.vocabulary import name_column

    shared, counterparts, scores = _sharing(alignment)
    known = {tuple(sorted(pair)) for pair in equal.tolist()}
    fresh = np.array([tuple(sorted(pair)) not in known for pair in shared.tolist()], dtype=bool)
    pairs = np.concatenate([equal.astype(np.int64), shared[fresh]])
    entities = name_column(names.entities)
    nobody = np.full(len(equal), -1)
    others = pl.Series(np.concatenate([nobody, counterparts[fresh]]).astype(np.int64)).replace(-1, None)
    return pl.DataFrame(
        {
            "side": np.where(pairs[:, 0] < task.num_source_entities, "source", "target"),
            "entity": entities.gather(pairs[:, 0]),
            "duplicate": entities.gather(pairs[:, 1]),
            "because": [_EQUAL] * len(equal) + [_SHARED] * int(fresh.sum()),
            "counterpart": entities.gather(others),
            "score": pl.Series([None] * len(equal) + scores[fresh].tolist(), dtype=pl.Float32),
        },
        schema={
            "side": pl.String,
            "entity": pl.String,
            "duplicate": pl.String,
            "because": pl.String,
            "counterpart": pl.String,
            "score": pl.Float32,
        },
    )


def _sharing(alignment: Alignment) -> tuple[IntArray, IntArray, FloatArray]:
    """Entities whose best candidate another one has, with that other (d, 2), the candidate (d,) and the score (d,)."""
    accepted = alignment.accepted
    usual = float(np.median(alignment.scores[accepted])) if accepted.any() else np.inf
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    for side, ranks in ((0, alignment.source_ranks), (1, alignment.target_ranks)):
        own, other = alignment.pairs[:, side].astype(np.int64), alignment.pairs[:, 1 - side].astype(np.int64)
        partner = np.full(int(alignment.pairs.max(initial=-1)) + 1, -1, dtype=np.int64)
        partner[other[accepted]] = own[accepted]
        score_of = np.zeros(len(partner), dtype=np.float32)
        score_of[other[accepted]] = alignment.scores[accepted]
        is_matched = np.zeros(len(partner), dtype=bool)
        is_matched[own[accepted]] = True
        as_good = (alignment.scores >= usual) & (alignment.scores >= _NEARLY * score_of[other])
        rows = np.flatnonzero((ranks == 1) & ~accepted & as_good & ~is_matched[own] & (partner[other] >= 0))
        found.append((np.stack([own[rows], partner[other[rows]]], axis=1), other[rows], alignment.scores[rows]))
    pairs, counterparts, scores = (np.concatenate(part) for part in zip(*found, strict=True))
    return pairs, counterparts, scores
