"""Names that are no IRIs, in formats that allow only IRIs: packed into one on the way out, unpacked on the way in.

`R14` or `http://dbpedia.org/resource/"Heroes"` cannot stand in N-Triples or Turtle. Written as `urn:largegnn:R14` and
`urn:largegnn:http%3A//...%22Heroes%22` they can, and are read back as what they were.
An IRI is what the grammar of N-Triples takes for one, less the two characters XML cannot hold: real dumps are full of
IRIs that RFC 3987 refuses, and under another name they would no longer meet their graph.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

import polars as pl

__all__ = ["PACKED", "decode_names", "encode_names", "pack_names"]

PACKED = "urn:largegnn:"
_IRI = r'^[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\\x{FFFE}\x{FFFF}]*$'
_LABEL = r"^_:[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?$"


def encode_names(names: pl.Series, keep_blank: bool = True) -> pl.Series:
    """Names as they stand between angle brackets; blank nodes stay `_:label` where they are allowed."""
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
