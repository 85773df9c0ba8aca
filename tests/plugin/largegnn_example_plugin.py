"""Parts for LargeGNN that come from another package: a scoring and an export form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import CandidateGraph, FloatArray
from largegnn.export.info import Exporter, ExportInfo

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from largegnn.matching.scorings import ScoringContext


def doubled(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    """Twice the cosine."""
    return np.asarray(2 * (graph.column("cosine") + added), dtype=np.float32)


def _write_markdown(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    rows = [f"| {source} | {target} |\n" for source, target in table.select("source", "target").iter_rows()]
    path.write_text("| source | target |\n|---|---|\n" + "".join(rows), encoding="utf-8")
    return len(rows)


MARKDOWN = Exporter("alignment.md", _write_markdown, accepted_only=True, description="a table in Markdown")
