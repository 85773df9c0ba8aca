"""An alignment as files for others: tables, owl:sameAs, SSSOM, Alignment API; and the embeddings behind it.

In: a table made by `alignment_table`, and what is known of the run. Out: one file, whole or not at all. TSV and Parquet
hold every row of the table; the other forms say that two entities are the same, hence hold accepted pairs alone.
A new form is an `Exporter` in the table `exporters`. Whether a file that is there may be overwritten is for the caller
to decide.
"""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl

from largegnn.errors import InputError
from largegnn.export.embeddings import EMBEDDING_FORMS, ENTITY_LIST, export_embeddings
from largegnn.export.info import Exporter, ExportInfo
from largegnn.export.relation_mappings import RELATION_FORMS, export_relations
from largegnn.export.table import COLUMNS, accepted_rows, alignment_table
from largegnn.seams.tables import EXPORTERS

__all__ = [
    "COLUMNS",
    "EMBEDDING_FORMS",
    "ENTITY_LIST",
    "RELATION_FORMS",
    "ExportInfo",
    "Exporter",
    "alignment_table",
    "export",
    "export_embeddings",
    "export_relations",
    "file_of_form",
    "form_names",
]

_log = logging.getLogger(__name__)


def form_names() -> list[str]:
    """What can be exported: the entries of the table `exporters`, and the forms of relations and embeddings."""
    return [*EXPORTERS, *RELATION_FORMS, *EMBEDDING_FORMS]


def file_of_form(form: str) -> str:
    """What the file of a form is called; an unknown form is refused with those there are."""
    if form in EMBEDDING_FORMS:
        return EMBEDDING_FORMS[form].file_name
    if form in RELATION_FORMS:
        return RELATION_FORMS[form]
    if form not in EXPORTERS and ":" not in form:
        raise InputError(f"no export form is called {form[:100]!r}", expected=f"one of {', '.join(form_names())}")
    return _exporter(form).file_name


def export(form: str | Exporter, table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a table by an exporter or the name of one; returns the rows written, and says if there are none."""
    exporter = form if isinstance(form, Exporter) else _exporter_of_pairs(form)
    num_rows = exporter.write(accepted_rows(table) if exporter.accepted_only else table, path, info)
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


def _exporter_of_pairs(form: str) -> Exporter:
    file_of_form(form)
    if form in EMBEDDING_FORMS or form in RELATION_FORMS:
        kind = "embeddings" if form in EMBEDDING_FORMS else "relations"
        raise InputError(f"{form} takes {kind}, not pairs", expected=f"one of {', '.join(EXPORTERS)}", found=form)
    return _exporter(form)


def _exporter(form: str) -> Exporter:
    found: object = EXPORTERS[form]
    if not isinstance(found, Exporter):
        raise InputError(f"{form} is no exporter", expected="a largegnn.export.Exporter", found=type(found).__name__)
    return found
