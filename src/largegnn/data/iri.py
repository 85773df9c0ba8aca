"""Write names that are not valid IRIs as IRIs, and read them back; name blank nodes without a label.

`R14` or `http://dbpedia.org/resource/"Heroes"` cannot be written in N-Triples or Turtle, but they can be packed, as
`urn:largegnn:R14` and `urn:largegnn:http%3A//...%22Heroes%22`. A name is packed if the grammar of N-Triples refuses it
or it contains one of two characters XML cannot hold. RFC 3987 is not followed: it refuses many IRIs of real dumps, and
under other names they would no longer match their graph. Blank nodes without a label are numbered in order of
appearance, as `_:[1]`, which cannot be a label. A number is valid within one file: when files are joined, numbers are
raised.
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
    """Encode names for writing between angle brackets; with `keep_blank`, blank nodes stay `_:label`."""
    fits = names.str.contains(_IRI) & ~names.str.starts_with(PACKED)
    if keep_blank:
        fits |= names.str.contains(_LABEL)
    return pack_names(names, ~fits)


def pack_names(names: pl.Series, needs_packing: pl.Series) -> pl.Series:
    """Pack the names where `needs_packing` (n,) is true; `decode_names` restores them."""
    if not bool(needs_packing.any()):
        return names
    rows = zip(names, needs_packing, strict=True)
    packed = [PACKED + quote(name, safe="/") if is_chosen else None for name, is_chosen in rows]
    return pl.select(pl.coalesce(pl.Series(packed, dtype=pl.String), names)).to_series()


def decode_names(names: pl.Series) -> pl.Series:
    """Decode packed names; other names stay as they are."""
    packed = names.str.starts_with(PACKED)
    if not bool(packed.any()):
        return names
    plain = [
        unquote(name.removeprefix(PACKED)) if is_packed else name for name, is_packed in zip(names, packed, strict=True)
    ]
    return pl.Series(plain, dtype=pl.String)


def nameless(number: int) -> str:
    """Return the name of the blank node with this number."""
    return f"_:[{number}]"


def highest_number(names: pl.Series) -> int:
    """Find the highest number of a nameless blank node among the names; 0 if there is none."""
    return int(names.str.extract(_NAMELESS).cast(pl.Int64).max() or 0)  # type: ignore[arg-type]


def renumbered(names: pl.Series, offset: int) -> pl.Series:
    """Raise the numbers of nameless blank nodes by `offset`; other names stay as they are."""
    if not offset or not bool(names.str.starts_with("_:[").any()):
        return names
    numbers = names.str.extract(_NAMELESS).cast(pl.Int64) + offset
    return pl.select(pl.coalesce(pl.format("_:[{}]", numbers), names)).to_series()
