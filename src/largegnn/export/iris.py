"""Give each entity an IRI, for forms that allow no other names.

In: a table with names, the prefixes and base IRIs. Out: the table with a column of IRIs for each side. A name that is
an IRI stays as it is. A prefixed name is expanded if its prefix is known. Any other name is appended to the base IRI of
its side, percent-encoded. Without a base IRI, and for blank nodes, whose labels mean nothing outside their file, it is
packed into `urn:largegnn:...` (`largegnn.data.iri`); the log holds the number of these names.
Cost: a few passes over the names; some microseconds for each that is not an IRI.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from urllib.parse import quote

import polars as pl

from largegnn.data.iri import PACKED, encode_names
from largegnn.export.info import ExportInfo

__all__ = ["with_iris"]

_log = logging.getLogger(__name__)
_NO_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\\ufffe\uffff]')
_NO_NAME = re.compile(r'[\x00-\x20<>"{}|^`\\\ufffe\uffff%#?]')  # the last three mean something in an IRI


def with_iris(table: pl.DataFrame, info: ExportInfo) -> pl.DataFrame:
    """The table with the columns `source_iri` and `target_iri`."""
    bases = {"source": info.base_iri, "target": info.target_base_iri or info.base_iri}
    iris = {side: _iris(table[side], base, info) for side, base in bases.items()}
    num_packed = sum(int(column.str.starts_with(PACKED).sum()) for column in iris.values())
    if num_packed:
        _log.warning(
            "%s of %s names are not valid IRIs and are written as %s...; give a base IRI or a prefix map",
            f"{num_packed:,}",
            f"{2 * len(table):,}",
            PACKED,
        )
    return table.with_columns(**{f"{side}_iri": column for side, column in iris.items()})


def _iris(names: pl.Series, base: str | None, info: ExportInfo) -> pl.Series:
    iris = names
    for prefix, space in info.prefixes.items():
        # http://... does not have the prefix http.
        known = names.str.starts_with(f"{prefix}:") & ~names.str.starts_with(f"{prefix}://")
        iris = _replaced(iris, known, partial(_expanded, prefix=prefix, space=space))
    if base is not None:
        no_iri = (encode_names(iris, keep_blank=False) != iris) & ~names.str.starts_with(PACKED)
        bare = no_iri & ~names.str.starts_with("_:") & ~names.str.contains("://", literal=True) & (names != "")
        iris = _replaced(iris, bare, lambda name: base + _encoded(name, _NO_NAME))
    return encode_names(iris, keep_blank=False)


def _replaced(names: pl.Series, which: pl.Series, make: Callable[[str], str]) -> pl.Series:
    """The names, with new ones at `which` (n,)."""
    if not bool(which.any()):
        return names
    made = [make(name) if chosen else None for name, chosen in zip(names, which, strict=True)]
    return pl.select(pl.coalesce(pl.Series(made, dtype=pl.String), names)).to_series()


def _expanded(name: str, prefix: str, space: str) -> str:
    return space + _encoded(name.removeprefix(f"{prefix}:"), _NO_IRI)


def _encoded(text: str, unfit: re.Pattern[str]) -> str:
    return unfit.sub(lambda match: quote(match[0], safe=""), text)
