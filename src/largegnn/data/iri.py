"""Write names that are not valid IRIs as IRIs, and read them back; name blank nodes without a label.

`R14` or `http://dbpedia.org/resource/"Heroes"` cannot be written in N-Triples or Turtle. Packed as `urn:largegnn:R14`
and `urn:largegnn:http%3A//...%22Heroes%22` they can. An IRI is what the grammar of N-Triples accepts, less the two
characters XML cannot hold: real dumps are full of IRIs that RFC 3987 refuses, and under another name they would no
longer match their graph.
Blank nodes without a label are numbered in order of appearance, as `_:[1]`, which no file can write as a label. A
number is valid within one file: where files are put together, the later ones are renumbered.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

import polars as pl

__all__ = ["PACKED", "decode_names", "encode_names", "highest_number", "nameless", "pack_names", "renumbered"]

PACKED = "urn:largegnn:"
_IRI = r'^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\\x{FFFE}\x{FFFF}]*$'
_NAMELESS = r"^_:\[(\d{1,18})\]$"
_LABEL = r"^_:[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?$"


def encode_names(names: pl.Series, keep_blank: bool = True) -> pl.Series:
    """Names as written between angle brackets; blank nodes stay `_:label` where they are allowed."""
    fits = names.str.contains(_IRI) & ~names.str.starts_with(PACKED)
    if keep_blank:
        fits |= names.str.contains(_LABEL)
    return pack_names(names, ~fits)


def pack_names(names: pl.Series, odd: pl.Series) -> pl.Series:
    """The names, those that are `odd` (n,) packed; `decode_names` gives back all of them."""
    if not bool(odd.any()):
        return names
    packed = [PACKED + quote(name, safe="/") if is_odd else None for name, is_odd in zip(names, odd, strict=True)]
    return pl.select(pl.coalesce(pl.Series(packed, dtype=pl.String), names)).to_series()


def decode_names(names: pl.Series) -> pl.Series:
    """The inverse of `encode_names`; names that were never packed stay as they are."""
    packed = names.str.starts_with(PACKED)
    if not bool(packed.any()):
        return names
    plain = [
        unquote(name.removeprefix(PACKED)) if is_packed else name for name, is_packed in zip(names, packed, strict=True)
    ]
    return pl.Series(plain, dtype=pl.String)


def nameless(number: int) -> str:
    """The name of the blank node with this number."""
    return f"_:[{number}]"


def highest_number(names: pl.Series) -> int:
    """The highest number of a nameless blank node among the names; 0 without any."""
    return int(names.str.extract(_NAMELESS).cast(pl.Int64).max() or 0)  # type: ignore[arg-type]


def renumbered(names: pl.Series, offset: int) -> pl.Series:
    """The names, those of nameless blank nodes with numbers higher by `offset`."""
    if not offset or not bool(names.str.starts_with("_:[").any()):
        return names
    numbers = names.str.extract(_NAMELESS).cast(pl.Int64) + offset
    return pl.select(pl.coalesce(pl.format("_:[{}]", numbers), names)).to_series()
