"""Convert the names of entities to IRIs, for forms that allow no other names.

In: a table with names, the prefixes and base IRIs. Out: the table with a column of IRIs for each side. A name that is
an IRI stays as it is. A prefixed name is expanded if its prefix is known. Any other name is appended to the base IRI of
its side, percent-encoded. Without a base IRI, the name is packed into `urn:largegnn:...` (`largegnn.data.iri`); so are
blank nodes, whose labels mean nothing outside their file. The log holds the number of packed names.
Cost: a few passes over the names; some microseconds for each name that is not an IRI.
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
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\\ufffe\uffff]')
_NOT_IN_LOCAL_NAME = re.compile(r'[\x00-\x20<>"{}|^`\\\ufffe\uffff%#?]')  # %, # and ? have a meaning in an IRI


def with_iris(table: pl.DataFrame, info: ExportInfo) -> pl.DataFrame:
    """Add the columns `source_iri` and `target_iri` to a table."""
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
        # A prefix named http does not apply to http://...
        has_prefix = names.str.starts_with(f"{prefix}:") & ~names.str.starts_with(f"{prefix}://")
        iris = _replaced(iris, has_prefix, partial(_expanded, prefix=prefix, space=space))
    if base is not None:
        is_not_iri = (encode_names(iris, keep_blank=False) != iris) & ~names.str.starts_with(PACKED)
        is_bare = is_not_iri & ~names.str.starts_with("_:") & ~names.str.contains("://", literal=True) & (names != "")
        iris = _replaced(iris, is_bare, lambda name: base + _encoded(name, _NOT_IN_LOCAL_NAME))
    return encode_names(iris, keep_blank=False)


def _replaced(names: pl.Series, mask: pl.Series, convert: Callable[[str], str]) -> pl.Series:
    """The names, converted where `mask` (n,) is true."""
    if not bool(mask.any()):
        return names
    converted = [convert(name) if is_chosen else None for name, is_chosen in zip(names, mask, strict=True)]
    return pl.select(pl.coalesce(pl.Series(converted, dtype=pl.String), names)).to_series()


def _expanded(name: str, prefix: str, space: str) -> str:
    return space + _encoded(name.removeprefix(f"{prefix}:"), _NOT_IN_IRI)


def _encoded(text: str, invalid: re.Pattern[str]) -> str:
    return invalid.sub(lambda match: quote(match[0], safe=""), text)
