"""An alignment as files for others: tables, owl:sameAs, SSSOM, Alignment API; and the embeddings behind it.

In: a table made by `alignment_table`, and what is known of the run. Out: one file, whole or not at all. TSV and Parquet
hold every row of the table; the other forms say that two entities are the same, hence hold accepted pairs alone.
A new form is a function in `EXPORTERS`. Whether a file that is there may be overwritten is for the caller to decide.
"""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl

from largegnn.errors import InputError
from largegnn.export.alignment_api import write_alignment_api
from largegnn.export.embeddings import EMBEDDING_FORMS, ENTITY_LIST, export_embeddings
from largegnn.export.info import Exporter, ExportInfo
from largegnn.export.same_as import write_same_as
from largegnn.export.sssom import write_sssom
from largegnn.export.table import COLUMNS, alignment_table
from largegnn.export.tabular import write_parquet, write_tsv

__all__ = [
    "COLUMNS",
    "EMBEDDING_FORMS",
    "ENTITY_LIST",
    "EXPORTERS",
    "ExportInfo",
    "Exporter",
    "alignment_table",
    "export",
    "export_embeddings",
]

_log = logging.getLogger(__name__)

EXPORTERS: dict[str, Exporter] = {
    "tsv": write_tsv,
    "parquet": write_parquet,
    "sameas": write_same_as,
    "sssom": write_sssom,
    "alignment-api": write_alignment_api,
}


def export(form: str, table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a table to a file in one of `EXPORTERS`; returns the rows written, and says so where there are none."""
    if form in EMBEDDING_FORMS:
        raise InputError(f"{form} takes embeddings, not pairs", expected=f"one of {', '.join(EXPORTERS)}", found=form)
    if form not in EXPORTERS:
        known = ", ".join([*EXPORTERS, *EMBEDDING_FORMS])
        raise InputError(f"no export form is called {form!r}", expected=f"one of {known}", found=form)
    num_rows = EXPORTERS[form](table, path, info)
    if not num_rows:
        _log.warning(
            "%s was written, but no pair is in it: of %s candidate pairs %s were accepted",
            path,
            f"{len(table):,}",
            f"{int(table['accepted'].sum()):,}",
        )
    elif num_rows < len(table):
        _log.info("%s holds the %s accepted of %s pairs", path, f"{num_rows:,}", f"{len(table):,}")
    return num_rows
