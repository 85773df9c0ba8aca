"""Make the table of an alignment, with names in place of ids, from which every exporter writes.

In: an `Alignment` and the names. Out: a polars table with a row for each pair, in the order of the alignment: the
columns `COLUMNS`, and a column for each kind of evidence. Cost: one pass over the names, one gather for each side;
about a second for a million pairs of graphs with two million entities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from largegnn.artifacts import Alignment, IntArray, StringTable, TaskNames
from largegnn.data.vocabulary import name_column
from largegnn.errors import ArtifactError

__all__ = ["COLUMNS", "accepted_rows", "alignment_table", "names_at", "share_no_higher"]

# Between `margin` and `confidence` comes a column for each kind of evidence; `confidence` is omitted if uncalibrated.
COLUMNS: dict[str, type[pl.DataType]] = {
    "source": pl.String,
    "target": pl.String,
    "score": pl.Float32,
    "margin": pl.Float32,
    "confidence": pl.Float32,
    "mutual": pl.Boolean,
    "rank": pl.Int16,
    "accepted": pl.Boolean,
}
_COST_OF_SINGLE_READ = 2  # reading a name by itself takes about twice as long as reading it with all others


def alignment_table(
    alignment: Alignment, names: TaskNames, *, accepted_only: bool = True, calibrated: bool = True
) -> pl.DataFrame:
    """Make the table of the accepted pairs, or of all pairs, with their evidence.

    `score` is the raw score of the run, `rank` the rank of the target among the candidates of the source, 1 = best.
    Without calibration there is no column `confidence`.
    """
    num_entities = len(names.entities)
    if alignment.pairs.size and int(alignment.pairs.max()) >= num_entities:
        raise ArtifactError(
            f"a pair holds entity {int(alignment.pairs.max())}, but only {num_entities} entities have names"
        )
    rows = np.flatnonzero(alignment.accepted) if accepted_only else np.arange(len(alignment.pairs))
    ends = names_at(names.entities, alignment.pairs[rows].T.ravel())
    values: dict[str, Any] = {
        "source": ends[: len(rows)],
        "target": ends[len(rows) :],
        "score": alignment.scores[rows],
        "margin": alignment.margins[rows],
        **{name: alignment.column(name)[rows] for name in alignment.columns},
        "confidence": alignment.confidence[rows],
        "mutual": alignment.mutual[rows],
        "rank": alignment.source_ranks[rows],
        "accepted": alignment.accepted[rows],
    }
    if not calibrated:
        del values["confidence"]
    return pl.DataFrame(
        {name: pl.Series(name, column, dtype=COLUMNS.get(name, pl.Float32)) for name, column in values.items()}
    )


def accepted_rows(table: pl.DataFrame) -> pl.DataFrame:
    """Keep only the accepted pairs, for formats that cannot express doubt."""
    return table.filter(pl.col("accepted"))


def share_no_higher(scores: pl.Series) -> pl.Series:
    """For each score, the share of all scores that are no higher, in (0, 1]; NaN counts as the lowest score."""
    ranks = scores.fill_nan(-np.inf).rank("max")
    return (ranks / max(len(scores), 1)).cast(pl.Float32)


def names_at(table: StringTable, ids: IntArray) -> pl.Series:
    """Read the strings at these positions (n,) as a polars column; reads the whole table where that is faster."""
    if _COST_OF_SINGLE_READ * len(ids) < len(table):
        return pl.Series(table.take(ids), dtype=pl.String)
    return name_column(table).gather(ids)
