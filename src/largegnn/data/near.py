"""Find names that resemble an unknown one, which may be mistyped or written differently.

In: a few names and all known ones. Out: some of these for each, the likeliest first. First come those with the
same local name (`dbr:Paris` and `http://dbpedia.org/resource/Paris`; case, percent-escapes and underscores aside), then
those whose local name differs by a letter or two and begins alike. Cost: one pass over the names, about a second for a
million; only a bounded number of candidates is compared letter by letter.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from urllib.parse import quote, unquote

import polars as pl

__all__ = ["is_prefixed", "local_name", "near_names"]

_MOST = 3
_MAX_COMPARED = 2_000
_MAX_COMPARED_CHARS = 200
_ALIKE = 0.8  # share of letters in common, as difflib counts
_LOCAL = r"([^/#]+)[/#]?$"
_PREFIX = r"^[A-Za-z][\w.-]*:"
_PREFIXED = rf"{_PREFIX}[^/\s]"


def is_prefixed(names: pl.Series) -> pl.Series:
    """Whether each name is written with a prefix, as `dbr:Paris`, (n,) bool."""
    return names.str.contains(_PREFIXED)


def local_name(names: pl.Series) -> pl.Series:
    """What follows the last slash or hash, or behind the prefix; in small letters, underscores as spaces."""
    local = names.str.extract(_LOCAL).fill_null("").str.replace(_PREFIX, "")
    return local.str.to_lowercase().str.replace_all("_", " ", literal=True)


def near_names(names: Iterable[str], known: pl.Series, most: int = _MOST) -> dict[str, list[str]]:
    """For each name at most `most` of the known ones that resemble it; names that nothing resembles are left out."""
    table = pl.DataFrame({"name": known, "local": local_name(known)})
    near = {name: _near(name, table, most) for name in names if len(name) <= _MAX_COMPARED_CHARS}
    return {name: found for name, found in near.items() if found}


def _near(name: str, table: pl.DataFrame, most: int) -> list[str]:
    wanted = str(local_name(pl.Series([name])).item())
    if not wanted:
        return []
    spelled = pl.col("local").is_in(sorted({wanted, unquote(wanted), quote(wanted).lower(), quote(wanted, "").lower()}))
    same = table.filter(spelled)["name"].head(most).sort().to_list()
    length = pl.col("local").str.len_chars()
    begins_alike = pl.col("local").str.starts_with(wanted[:2])
    candidates = table.filter(~spelled & begins_alike & length.is_between(len(wanted) - 3, len(wanted) + 3))
    candidates = candidates.head(_MAX_COMPARED)
    alike = difflib.get_close_matches(wanted, candidates["local"].unique(maintain_order=True), most, _ALIKE)
    rows = sorted((alike.index(local), found) for found, local in candidates.rows() if local in alike)
    return [*same, *(found for _, found in rows)][:most]
