"""The files every run ends with: our pages. Each takes what a finished run is and a path, and returns its rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from largegnn.export.table import alignment_table
from largegnn.export.tabular import plain_names, write_parquet, write_tsv, write_tsv_rows
from largegnn.machine.atomic import write_files, write_text
from largegnn.review.duplicates import duplicates_table
from largegnn.review.origin import export_info
from largegnn.review.relations import relations_table
from largegnn.review.unmatched import unmatched_table

if TYPE_CHECKING:
    import polars as pl

    from largegnn.export.info import ExportInfo
    from largegnn.stages.report import ReportInputs

__all__ = [
    "Page",
    "alignment_parquet",
    "alignment_tsv",
    "duplicates_tsv",
    "relations_tsv",
    "report_json",
    "unmatched_tsv",
]

Page = Callable[["ReportInputs", Path], int]


def alignment_tsv(inputs: ReportInputs, path: Path) -> int:
    """The accepted pairs, with score, evidence and, where it is calibrated, confidence."""
    info = _info(inputs)
    return write_tsv(alignment_table(inputs.alignment, inputs.names, calibrated=info.calibrated), path, info)


def alignment_parquet(inputs: ReportInputs, path: Path) -> int:
    """All candidate pairs."""
    info = _info(inputs)
    table = alignment_table(inputs.alignment, inputs.names, accepted_only=False, calibrated=info.calibrated)
    return write_parquet(table, path, info)


def unmatched_tsv(inputs: ReportInputs, path: Path) -> int:
    """The entities without an accepted pair: why, their best candidate, and who has it instead."""
    table = unmatched_table(inputs.task, inputs.names, inputs.alignment)
    return _write_named(table, ("entity", "best_candidate", "matched_with"), path)


def relations_tsv(inputs: ReportInputs, path: Path) -> int:
    """The relations that answer to each other: score, matched triples, examples."""
    table = relations_table(inputs.relations, inputs.names)
    return _write_named(table, ("source", "target", "examples"), path)


def duplicates_tsv(inputs: ReportInputs, path: Path) -> int:
    """Entities of one side that are probably the same."""
    table = duplicates_table(inputs.task, inputs.names, inputs.alignment, inputs.duplicates)
    return _write_named(table, ("entity", "duplicate", "counterpart"), path)


def report_json(inputs: ReportInputs, path: Path) -> int:
    """Figures with their protocol, costs, settings, and what to expect of the pairs."""
    write_text(path, json.dumps(inputs.summary.to_dict(), indent=1) + "\n")
    return 1


def _write_named(table: pl.DataFrame, names: tuple[str, ...], path: Path) -> int:
    """A table as TSV; the columns that hold `names` may not hold a tab or a line break."""
    plain = table.with_columns(plain_names(table[name]).alias(name) for name in names)
    write_files({path: lambda sink: write_tsv_rows(plain, sink)})
    return len(table)


def _info(inputs: ReportInputs) -> ExportInfo:
    # Not named after the run folder: that may be a temporary one, or be renamed.
    return export_info(inputs.summary, "alignment")
