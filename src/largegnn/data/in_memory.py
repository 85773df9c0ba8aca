"""Write graphs and links that are in memory to Parquet, so that the readers of files read them.

In: a path, a polars (or pandas-like) frame, an array or a list of rows of names. Out: a path to a file the readers
accept. Everything is read as text, and all checks of files apply. A frame with the column names of a file (`head`,
`relation`, `tail`; `source`, `target`) may have other columns too; the columns of any other frame are read from left to
right. Cost: frames are written as they are; names in arrays and lists are checked one by one, about a second for a
million rows.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from largegnn.data.columns import LINKS, NAMES, TRIPLES, Roles
from largegnn.data.shown import listed
from largegnn.errors import InputError

__all__ = ["as_path", "as_paths", "as_table"]

_ROLES: dict[str, Roles] = {"source": TRIPLES, "target": TRIPLES, "source_names": NAMES, "target_names": NAMES}


def as_path(value: Any, place: Path) -> Path | None:
    """Return the path of a value; a value that is not a path is written to `place` first. None stays None.

    The name of `place` tells what the value holds: triples for source and target, names for source_names and
    target_names, otherwise links.
    """
    if value is None:
        return None
    if isinstance(value, str | PathLike):
        return Path(value)
    name = place.stem
    frame = _with_known_columns(_as_frame(value, name), name)
    try:
        text = frame.select(pl.all().cast(pl.String))
    except pl.exceptions.PolarsError:
        kinds = ", ".join(f"{column}: {kind}" for column, kind in frame.schema.items())
        raise InputError(f"the {name} have a column that is not text", found=kinds) from None
    for column in text.columns:
        empty = text.get_column(column).fill_null("") == ""
        if empty.any():
            raise InputError(f"the {name} have an empty name", where=f"column {column}, row {empty.arg_max()}")
    text.write_parquet(place)
    return place


def as_table(value: Any, place: Path) -> Path | None:
    """Return the path of a table whose rows are entities; a frame is written to `place` with all its columns."""
    if value is None or isinstance(value, str | PathLike):
        return None if value is None else Path(value)
    _as_frame(value, place.stem).write_parquet(place)
    return place


def as_paths(value: Any, place: Path) -> tuple[Path, ...]:
    """Return the paths of a value: a path, several paths, or a value that is written to `place` first."""
    if isinstance(value, list | tuple) and all(isinstance(path, str | PathLike) for path in value):
        return tuple(Path(path) for path in value)
    path = as_path(value, place)
    return () if path is None else (path,)


def _with_known_columns(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Select the columns of triples, links or names, under the names that the readers expect."""
    roles = _ROLES.get(name, LINKS)
    wanted = roles.names
    indices = roles.find(frame.columns)
    if indices is None and frame.width == len(wanted):
        indices = tuple(range(frame.width))
    if indices is None:
        raise InputError(
            f"the {name} have {frame.width} columns",
            expected=f"{len(wanted)} ({', '.join(wanted)}), or columns of these names",
            found=listed(frame.columns, 10) or "none",
        )
    return frame.select(pl.nth(index).alias(new) for index, new in zip(indices, wanted, strict=True))


def _as_frame(value: Any, name: str) -> pl.DataFrame:
    if isinstance(value, pl.DataFrame):
        return value
    if isinstance(value, pl.LazyFrame):
        return value.collect()
    try:
        rows = np.asarray(value, dtype=object)  # a string type would turn missing names into text
    except ValueError:
        rows = np.empty(0)
    if rows.ndim != 2:
        raise InputError(
            f"the {name} are of a kind that cannot be read",
            expected="a path, a polars frame, or an array or list of rows of names",
            found=type(value).__name__,
        )
    columns = [f"column {number}" for number in range(rows.shape[1])]
    texts = {column: [_text(cell, name) for cell in rows[:, number]] for number, column in enumerate(columns)}
    return pl.DataFrame(texts, schema=dict.fromkeys(columns, pl.String))


def _text(cell: Any, name: str) -> str | None:
    """Convert a name to text; None if it is missing."""
    if isinstance(cell, str):
        return cell
    if cell is None or cell != cell:  # NaN, which other libraries use for missing values
        return None
    if not isinstance(cell, int | float | np.number):
        raise InputError(f"the {name} hold something that is not a name", expected="text or numbers", found=repr(cell))
    return str(cell)
