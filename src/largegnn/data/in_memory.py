"""Graphs and links that are in memory already, through the same door as files: written to Parquet, then read.

In: a path, a polars (or pandas-like) frame, an array or a list of rows of names. Out: a path to something the readers
take. Everything is read as text, and all checks of files hold for it. Cost: frames are written as they are; names in
arrays and lists are looked at one by one, about a second for a million rows.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from largegnn.errors import InputError

__all__ = ["as_path"]


def as_path(value: Any, place: Path) -> Path | None:
    """The path of what is given; what is no path is written to `place` first. None stays None."""
    if value is None:
        return None
    if isinstance(value, str | PathLike):
        return Path(value)
    frame = _as_frame(value, place.stem)
    if frame.width not in (2, 3):
        raise InputError(
            f"the {place.stem} have {frame.width} columns",
            expected="three columns for triples (head, relation, tail), two for links",
        )
    try:
        text = frame.select(pl.all().cast(pl.String))
    except pl.exceptions.PolarsError:
        kinds = ", ".join(f"{name}: {kind}" for name, kind in frame.schema.items())
        raise InputError(f"the {place.stem} have a column that is no text", found=kinds) from None
    for column in text.columns:
        if text.get_column(column).null_count():
            raise InputError(f"the {place.stem} have an empty name", where=f"column {column}")
    text.write_parquet(place)
    return place


def _as_frame(value: Any, name: str) -> pl.DataFrame:
    if isinstance(value, pl.DataFrame):
        return value
    if isinstance(value, pl.LazyFrame):
        return value.collect()
    try:
        rows = np.asarray(value, dtype=object)  # else a missing name would become text, and one long name pad all
    except ValueError:
        rows = np.empty(0)
    if rows.ndim != 2:
        raise InputError(
            f"the {name} are of a kind that cannot be read",
            expected="a path, a polars frame, or an array or list of rows of names",
            found=type(value).__name__,
        )
    columns = ("head", "relation", "tail") if rows.shape[1] == 3 else tuple(f"column_{i}" for i in range(rows.shape[1]))
    texts = {column: [_text(cell, name) for cell in rows[:, index]] for index, column in enumerate(columns)}
    return pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String))


def _text(cell: Any, name: str) -> str | None:
    """A name as text; None where there is none."""
    if isinstance(cell, str):
        return cell
    if cell is None or cell != cell:  # the second is how a frame of another library says missing
        return None
    if not isinstance(cell, int | float | np.number):
        raise InputError(f"the {name} hold something that is no name", expected="text or numbers", found=repr(cell))
    return str(cell)
