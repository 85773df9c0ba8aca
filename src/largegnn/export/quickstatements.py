"""Write QuickStatements (version 1), commands that add the pairs to Wikidata as `exact match` (P2888).

In: a table with Wikidata on one side. Out: a command for each accepted pair: the item, P2888, and the IRI of the other
entity. Pairs without an item of Wikidata, or with two items, cannot be written; the log holds their number.
"""

from __future__ import annotations

import logging
from pathlib import Path

import polars as pl

from largegnn.errors import InputError
from largegnn.export.info import Exporter, ExportInfo, write_lines
from largegnn.export.iris import with_iris

__all__ = ["QUICKSTATEMENTS"]

_log = logging.getLogger(__name__)
_ITEM = r"^(?:https?://www\.wikidata\.org/(?:entity|wiki)/|wd:)?([QLPM][1-9][0-9]*)$"


def _write_quickstatements(table: pl.DataFrame, path: Path, info: ExportInfo) -> int:
    """Write a file of commands."""
    items = {side: table[side].str.extract(_ITEM) for side in ("source", "target")}
    is_source, is_target = items["source"].is_not_null(), items["target"].is_not_null()
    has_one_item = is_source ^ is_target
    if len(table) and not has_one_item.any():
        raise InputError(
            "no pair has an item of Wikidata on exactly one side: there is nothing to write",
            expected="names such as http://www.wikidata.org/entity/Q42 in one of the graphs",
            found=str(table["source"][0])[:200],
        )
    if not has_one_item.all():
        num_left_out = f"{(~has_one_item).sum():,}"
        _log.warning("%s of %s pairs have no item of Wikidata, or two", num_left_out, f"{len(table):,}")
    named = with_iris(table.with_columns(item=items["source"].fill_null(items["target"])).filter(has_one_item), info)
    other_iri = pl.when(is_source.filter(has_one_item)).then(named["target_iri"]).otherwise(named["source_iri"])
    commands = named.select(pl.format('{}\tP2888\t"{}"', "item", other_iri))
    return write_lines(commands, path, pl.DataFrame.to_series, "" if len(commands) else "\n")


QUICKSTATEMENTS = Exporter(
    "alignment.quickstatements.tsv",
    _write_quickstatements,
    accepted_only=True,
    description="QuickStatements for Wikidata, exact match (P2888)",
)
