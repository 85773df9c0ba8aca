"""Blank nodes without a label: numbered in order of appearance, as `_:[1]`, which no file can write as a label.

A number means something within one file alone: whoever puts files together gives the later ones other numbers.
"""

from __future__ import annotations

import polars as pl

__all__ = ["highest_number", "nameless", "renumbered"]

_NAMELESS = r"^_:\[(\d{1,18})\]$"


def nameless(number: int) -> str:
    """The name of the blank node with this number."""
    return f"_:[{number}]"


def highest_number(names: pl.Series) -> int:
    """The highest number of a nameless blank node among the names; 0 where there is none."""
    return int(names.str.extract(_NAMELESS).cast(pl.Int64).max() or 0)  # type: ignore[arg-type]


def renumbered(names: pl.Series, offset: int) -> pl.Series:
    """The names, those of nameless blank nodes with numbers higher by `offset`."""
    if not offset or not bool(names.str.starts_with("_:[").any()):
        return names
    numbers = names.str.extract(_NAMELESS).cast(pl.Int64) + offset
    return pl.select(pl.coalesce(pl.format("_:[{}]", numbers), names)).to_series()
