"""Find names that resemble an unknown name, which may be mistyped or written differently.

In: a few names and all known names. Out: for each name some similar known names, the most likely first: first names
with the same local name (`dbr:Paris` and `http://dbpedia.org/resource/Paris`; case, percent-escapes and underscores are
ignored), then names whose local name begins alike and shares about four fifths of its letters. Cost: one pass over the
known names, about a second for a million; only a bounded number of candidates is compared letter by letter.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from urllib.parse import quote, unquote

import polars as pl

__all__ = ["is_prefixed", "local_name", "near_names"]

_MAX_NEAR = 3
_MAX_COMPARED = 2_000
_MAX_COMPARED_CHARS = 200
_MIN_SIMILARITY = 0.8  # difflib's ratio: about the share of letters in common
_LOCAL = r"([^/#]+)[/#]?$"
_PREFIX = r"^[A-Za-z][\w.-]*:"
_PREFIXED = rf"{_PREFIX}[^/\s]"


def is_prefixed(names: pl.Series) -> pl.Series:
    """Whether each name is written with a prefix, as `dbr:Paris`, (n,) bool."""
    return names.str.contains(_PREFIXED)


def local_name(names: pl.Series) -> pl.Series:
    """Extract what follows the last slash or hash, or the prefix; in small letters, with spaces for underscores."""
    local = names.str.extract(_LOCAL).fill_null("").str.replace(_PREFIX, "")
    return local.str.to_lowercase().str.replace_all("_", " ", literal=True)


def near_names(names: Iterable[str], known: pl.Series, maximum: int = _MAX_NEAR) -> dict[str, list[str]]:
    """Find for each name at most `maximum` known names that resemble it; names without any are omitted."""
    table = pl.DataFrame({"name": known, "local": local_name(known)})
    near_of = {name: _near(name, table, maximum) for name in names if len(name) <= _MAX_COMPARED_CHARS}
    return {name: near for name, near in near_of.items() if near}


def _near(name: str, table: pl.DataFrame, maximum: int) -> list[str]:
    wanted = str(local_name(pl.Series([name])).item())
    if not wanted:
        return []
    is_same = pl.col("local").is_in(sorted({wanted, unquote(wanted), quote(wanted).lower(), quote(wanted, "").lower()}))
    same = table.filter(is_same)["name"].head(maximum).sort().to_list()
    length = pl.col("local").str.len_chars()
    begins_alike = pl.col("local").str.starts_with(wanted[:2])
    candidates = table.filter(~is_same & begins_alike & length.is_between(len(wanted) - 3, len(wanted) + 3))
    candidates = candidates.head(_MAX_COMPARED)
    alike = difflib.get_close_matches(wanted, candidates["local"].unique(maintain_order=True), maximum, _MIN_SIMILARITY)
    ranked = sorted((alike.index(local), known) for known, local in candidates.rows() if local in alike)
    return [*same, *(known for _, known in ranked)][:maximum]
