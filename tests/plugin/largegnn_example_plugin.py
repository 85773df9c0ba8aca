"""Parts for LargeGNN that come from another package: a scoring, a selection, a measure, an export form and a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import CandidateGraph, EdgeRanks, FloatArray, IntArray
from largegnn.export.info import Exporter, ExportInfo

if TYPE_CHECKING:
    import polars as pl

    from largegnn.matching.scorings import ScoringContext
    from largegnn.stages.report import ReportInputs


def doubled(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    """Twice the cosine."""
    return np.asarray(2 * (graph.column("cosine") + added), dtype=np.float32)


def nobody_twice(graph: CandidateGraph, scores: FloatArray, k: int, ranks: EdgeRanks | None = None) -> IntArray:
    """The best candidates first, each entity once."""
    taken: set[int] = set()
    selected = []
    for edge in np.argsort(-scores, kind="stable"):
        ends = {int(graph.sources[edge]), int(graph.targets[edge])}
        if not ends & taken:
            taken |= ends
            selected.append(edge)
    return np.sort(np.array(selected, dtype=np.int64))


def hits_at_2(ranks: IntArray) -> float:
    """The share of the links whose partner is among the best two."""
    return float(np.mean(ranks <= 2))


def sizes_page(inputs: ReportInputs, path: Path) -> int:
    """The number of entities of either side."""
    task = inputs.task
    path.write_text(f"{task.num_source_entities} {task.num_target_entities}\n", encoding="utf-8")
    return 1


def _write_markdown(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    rows = [f"| {source} | {target} |\n" for source, target in table.select("source", "target").iter_rows()]
    path.write_text("| source | target |\n|---|---|\n" + "".join(rows), encoding="utf-8")
    return len(rows)


MARKDOWN = Exporter("alignment.md", _write_markdown, accepted_only=True, description="a table in Markdown")
