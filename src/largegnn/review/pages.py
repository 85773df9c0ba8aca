"""Write the files of a finished run: tables of pairs, unmatched entities, relations and duplicates, and the report.

In: a finished run. Out: files in its folder, and the number of rows in each file. `PAGES` maps the name of a file to
the function that writes it.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    Evaluation,
    IntArray,
    LiteralEvidence,
    RelationAlignment,
    TaskNames,
)
from largegnn.artifacts.literals import Literals
from largegnn.export.info import ExportInfo
from largegnn.export.table import alignment_table
from largegnn.export.tabular import plain_names, write_parquet, write_tsv, write_tsv_rows
from largegnn.machine.atomic import write_files, write_text
from largegnn.review.tables import duplicates_table, relations_table, unmatched_table
from largegnn.version import __version__

if TYPE_CHECKING:
    from largegnn.matching.match import MatchOutcome
    from largegnn.run import RunSummary
    from largegnn.settings import ReportSettings

__all__ = ["PAGES", "Page", "ReportInputs", "ReportOutcome", "ReportResult", "export_info", "report"]


@dataclass(frozen=True)
class ReportInputs:
    """A finished run; `duplicates` (d, 2) are entities of one side with equal names and no contradiction."""

    task: AlignmentTask
    names: TaskNames
    alignment: Alignment
    summary: RunSummary
    duplicates: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    relations: RelationAlignment = field(default_factory=RelationAlignment.empty)
    literals: Literals | None = None

    @property
    def match(self) -> MatchOutcome:
        """The outcome of the decision; only a run with pairs is reported."""
        assert self.summary.match is not None
        return self.summary.match


@dataclass(frozen=True)
class ReportOutcome:
    """The names of the files written, with the number of rows in each file."""

    pages: Mapping[str, int]


@dataclass(frozen=True)
class ReportResult:
    """The result of the step `report`: the pages are in the run folder."""

    outcome: ReportOutcome


def report(
    task: AlignmentTask,
    names: TaskNames,
    literals: Literals,
    evidence: LiteralEvidence,
    alignment: Alignment,
    relations: RelationAlignment,
    evaluation: Evaluation,
    settings: ReportSettings,
    *,
    summary: RunSummary,
    folder: Path,
) -> ReportResult:
    """Write the pages that the settings name."""
    summary = dataclasses.replace(summary, evaluation=evaluation)
    inputs = ReportInputs(task, names, alignment, summary, evidence.duplicates, relations, literals)
    return ReportResult(ReportOutcome({name: PAGES[name](inputs, folder / name) for name in settings.pages}))


def alignment_tsv(inputs: ReportInputs, path: Path) -> int:
    """Write the accepted pairs, with score, evidence and, if it is calibrated, confidence."""
    info = _info(inputs)
    return write_tsv(alignment_table(inputs.alignment, inputs.names, calibrated=info.calibrated), path, info)


def alignment_parquet(inputs: ReportInputs, path: Path) -> int:
    """Write all candidate pairs."""
    info = _info(inputs)
    table = alignment_table(inputs.alignment, inputs.names, accepted_only=False, calibrated=info.calibrated)
    return write_parquet(table, path, info)


def unmatched_tsv(inputs: ReportInputs, path: Path) -> int:
    """Write the unmatched entities: the reason, the best candidate, and the entity this candidate is matched with."""
    table = unmatched_table(inputs.task, inputs.names, inputs.alignment)
    return _write_tsv(table, ("entity", "best_candidate", "matched_with"), path)


def relations_tsv(inputs: ReportInputs, path: Path) -> int:
    """Write the aligned relations: score, matched triples, examples."""
    table = relations_table(inputs.relations, inputs.names)
    return _write_tsv(table, ("source", "target", "examples"), path)


def duplicates_tsv(inputs: ReportInputs, path: Path) -> int:
    """Write pairs of entities of one side that are probably the same."""
    table = duplicates_table(inputs.task, inputs.names, inputs.alignment, inputs.duplicates)
    return _write_tsv(table, ("entity", "duplicate", "counterpart"), path)


def report_json(inputs: ReportInputs, path: Path) -> int:
    """Write the figures with their protocol, the costs, the settings and the expected precision of the pairs."""
    write_text(path, json.dumps(inputs.summary.to_dict(), indent=1) + "\n")
    return 1


def report_html(inputs: ReportInputs, path: Path) -> int:
    """Write the whole run on one page."""
    from largegnn.review import report_page

    return report_page.report_html(inputs, path)


Page = Callable[[ReportInputs, Path], int]
PAGES: dict[str, Page] = {
    "alignment.tsv": alignment_tsv,
    "alignment.parquet": alignment_parquet,
    "unmatched.tsv": unmatched_tsv,
    "relations.tsv": relations_tsv,
    "duplicates.tsv": duplicates_tsv,
    "report.json": report_json,
    "report.html": report_html,
}


def export_info(
    summary: RunSummary,
    title: str,
    *,
    base_iri: str | None = None,
    target_base_iri: str | None = None,
    prefixes: Mapping[str, str] | None = None,
) -> ExportInfo:
    """Describe the origin of an alignment, for the head of its files; IRIs and prefixes are for RDF forms."""
    settings, match = summary.settings, summary.match
    assert match is not None, "only a run with pairs is exported"
    return ExportInfo(
        tool_version=__version__,
        title=title,
        source_name="source",
        target_name="target",
        protocol=f"seeds from {settings.protocol.seeds_from}, all other entities are candidates, "
        f"channels {', '.join(settings.channels)}",
        scoring=settings.match.scoring,
        selection=settings.match.selection,
        threshold=match.threshold.threshold,
        calibrated=match.calibration.is_calibrated,
        created=datetime.datetime.now(datetime.UTC).date(),
        base_iri=base_iri,
        target_base_iri=target_base_iri,
        prefixes=dict(prefixes or {}),
    )


def _write_tsv(table: pl.DataFrame, names: tuple[str, ...], path: Path) -> int:
    """Write a table as TSV; tabs and line breaks in the columns `names` are escaped."""
    plain = table.with_columns(plain_names(table[name]).alias(name) for name in names)
    write_files({path: lambda sink: write_tsv_rows(plain, sink)})
    return len(table)


def _info(inputs: ReportInputs) -> ExportInfo:
    # The title is not the name of the run folder, which may be temporary or be renamed later.
    return export_info(inputs.summary, "alignment")
