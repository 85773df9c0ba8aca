"""The entities without an accepted pair: why, what comes closest, and who has that instead.

In: an `Alignment`. Out: a table with one row for each such entity that is no seed. Cost: one pass over the pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import REASONS, Alignment, AlignmentTask, IntArray, TaskNames

if TYPE_CHECKING:
    import polars as pl

__all__ = ["unmatched_table"]


def unmatched_table(task: AlignmentTask, names: TaskNames, alignment: Alignment) -> pl.DataFrame:
    """Columns side, entity, reason, best_candidate, matched_with (whom the best candidate has instead), score."""
    import polars as pl

    from largegnn.data.vocabulary import name_column

    reasons = alignment.reasons
    rows = np.flatnonzero((reasons != REASONS.index("aligned")) & (reasons != REASONS.index("seed")))
    best, score = _best_candidates(alignment, task.num_entities)
    taken = _partners(alignment, task.num_entities)
    candidate = best[rows]
    instead = np.where(candidate >= 0, taken[np.maximum(candidate, 0)], -1)
    entities = name_column(names.entities)
    return pl.DataFrame(
        {
            "side": np.where(rows < task.num_source_entities, "source", "target"),
            "entity": entities.gather(rows),
            "reason": pl.Series(list(REASONS)).gather(reasons[rows].astype(np.int64)),
            "best_candidate": _named(entities, candidate),
            "matched_with": _named(entities, instead),
            "score": pl.Series(np.where(candidate >= 0, score[rows], np.nan)).cast(pl.Float32).fill_nan(None),
        },
        schema={
            "side": pl.String,
            "entity": pl.String,
            "reason": pl.String,
            "best_candidate": pl.String,
            "matched_with": pl.String,
            "score": pl.Float32,
        },
    )


def _named(entities: pl.Series, ids: IntArray) -> pl.Series:
    """Names of ids (m,), nothing for -1."""
    import polars as pl

    return entities.gather(pl.Series(ids.astype(np.int64)).replace(-1, None))


def _best_candidates(alignment: Alignment, num_entities: int) -> tuple[IntArray, IntArray]:
    """The best candidate of each entity (n,), -1 for none, and its score."""
    best, score = np.full(num_entities, -1, dtype=np.int64), np.zeros(num_entities, dtype=np.float32)
    for side, ranks in ((0, alignment.source_ranks), (1, alignment.target_ranks)):
        # From the worst to the best, so that the best is written last.
        order = np.argsort(-ranks, kind="stable")
        best[alignment.pairs[order, side]] = alignment.pairs[order, 1 - side]
        score[alignment.pairs[order, side]] = alignment.scores[order]
    return best, score


def _partners(alignment: Alignment, num_entities: int) -> IntArray:
    """Whom each entity is accepted with (n,), -1 for none."""
    partner = np.full(num_entities, -1, dtype=np.int64)
    accepted = alignment.pairs[alignment.accepted]
    partner[accepted[:, 0]], partner[accepted[:, 1]] = accepted[:, 1], accepted[:, 0]
    return partner
