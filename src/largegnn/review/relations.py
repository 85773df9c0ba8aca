"""The relations of the two graphs that answer to each other, as a table in names.

In: a `RelationAlignment`. Out: one row for each pair of relations, with score, shares, matched triples and examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import MAPPINGS, RelationAlignment, TaskNames

if TYPE_CHECKING:
    import polars as pl

__all__ = ["relations_table"]


def relations_table(relations: RelationAlignment, names: TaskNames) -> pl.DataFrame:
    """Columns source, target, inverse, mapping, score, source_share, target_share, count, examples.

    An example is `head tail = head tail`, the source's before the target's; `inverse` ones have the target's ends in
    the order of the source's.
    """
    import polars as pl

    sources, targets = (names.relations.take(relations.pairs[:, side]) for side in (0, 1))
    return pl.DataFrame(
        {
            "source": sources,
            "target": targets,
            "inverse": np.array(relations.is_inverse),
            "mapping": [MAPPINGS[code] for code in relations.mappings().tolist()],
            "score": np.array(relations.scores),
            "source_share": np.array(relations.source_shares),
            "target_share": np.array(relations.target_shares),
            "count": np.array(relations.counts),
            "examples": [_shown(rows, names) for rows in relations.examples.tolist()],
        },
        schema={
            "source": pl.String,
            "target": pl.String,
            "inverse": pl.Boolean,
            "mapping": pl.String,
            "score": pl.Float32,
            "source_share": pl.Float32,
            "target_share": pl.Float32,
            "count": pl.Int64,
            "examples": pl.String,
        },
    )


def _shown(rows: list[list[int]], names: TaskNames) -> str:
    there = [names.entities.take(row) for row in rows if row[0] >= 0]
    return "; ".join(f"{head} {tail} = {other_head} {other_tail}" for head, tail, other_head, other_tail in there)
