"""Export an alignment as files: tables, owl:sameAs, SSSOM, Alignment API and others; and export its embeddings.

In: a table made by `alignment_table`, and an `ExportInfo` about the run. Out: a file, written completely or not at all.
TSV and Parquet hold every row of the table; the other forms state that two entities are the same, and therefore hold
only accepted pairs. Relations and embeddings have their own forms. A new form is an `Exporter` in `EXPORTERS`. The
caller decides whether an existing file may be overwritten.
"""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl

from largegnn.errors import InputError
from largegnn.export.embeddings import EMBEDDING_FORMS, ENTITY_LIST, export_embeddings
from largegnn.export.info import Exporter, ExportInfo
from largegnn.export.sssom import RELATION_FORMS, export_relations
from largegnn.export.table import COLUMNS, accepted_rows, alignment_table
from largegnn.parts import EXPORTERS

__all__ = [
    "COLUMNS",
    "EMBEDDING_FORMS",
    "ENTITY_LIST",
    "EXPORTERS",
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
    """The names of all forms, for alignments (including the forms of installed packages), relations and embeddings."""
    return [*EXPORTERS, *RELATION_FORMS, *EMBEDDING_FORMS]


def file_of_form(form: str) -> str:
    """The default file name of a form; an unknown form raises an error that lists the known forms."""
    if form in EMBEDDING_FORMS:
        return EMBEDDING_FORMS[form].file_name
    if form in RELATION_FORMS:
        return RELATION_FORMS[form]
    return _exporter(form).file_name


def export(form: str | Exporter, table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a table by an exporter or its name; returns the number of rows written, and warns if it is 0."""
    exporter = form if isinstance(form, Exporter) else _exporter(form)
    num_rows = exporter.write(accepted_rows(table) if exporter.accepted_only else table, path, info)
    if not num_rows:
        _log.warning(
            "%s was written, but it holds no pair: of %s candidate pairs, %s were accepted",
            path,
            f"{len(table):,}",
            f"{int(table['accepted'].sum()):,}",
        )
    elif num_rows < len(table):
        _log.info("%s holds the %s accepted of %s pairs", path, f"{num_rows:,}", f"{len(table):,}")
    return num_rows


def _exporter(form: str) -> Exporter:
    """Look up an exporter by its name, which may be the name in an installed package or `module:name`."""
    if form in EMBEDDING_FORMS or form in RELATION_FORMS:
        kind = "embeddings" if form in EMBEDDING_FORMS else "relations"
        raise InputError(f"{form} takes {kind}, not pairs", expected=f"one of {', '.join(EXPORTERS)}", found=form)
    if form not in EXPORTERS and ":" not in form:
        raise InputError(f"no export form is called {form[:100]!r}", expected=f"one of {', '.join(form_names())}")
    exporter: object = EXPORTERS[form]
    if not isinstance(exporter, Exporter):
        raise InputError(
            f"{form} is not an exporter", expected="a largegnn.export.Exporter", found=type(exporter).__name__
        )
    return exporter
