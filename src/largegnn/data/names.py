"""Find entities by name: the id of a name, and similar names for an unknown one.

In: the names of both graphs. Out: ids. Cost: all names are converted to one column at the first query. Then `find`
takes a pass over the column, a few milliseconds for a million names; `find_all` takes one pass for many names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import IntArray, StringTable
from largegnn.data.shown import shown
from largegnn.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EntityNames"]


class EntityNames:
    """The names of the entities of both sides; the first `num_sources` belong to the source."""

    def __init__(self, names: StringTable, num_sources: int) -> None:
        self._names, self._num_sources = names, num_sources

    def find(self, name: str, side: str | None = None) -> int:
        """Return the id of a name; `side` is needed if both graphs have it. The error suggests similar names."""
        if side not in (None, "source", "target"):
            raise InputError(f"there is no side {side!r}", expected="source or target")
        matches: list[int] = (self._column == _plain(name)).arg_true().to_list()
        ids = [index for index in matches if side in (None, self._side(index))]
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise InputError(f"both graphs have an entity {shown(name)!r}", fix="give the side: source or target")
        near = self.near(name)
        raise InputError(
            f"no entity is called {shown(name)!r}",
            expected=f"an entity of the {side or 'source or target'} graph, written as in its file",
            fix=f"did you mean {' or '.join(near)}?" if near else "largegnn export RUN --form tsv lists the pairs",
        )

    def find_all(self, names: Sequence[str], side: str) -> IntArray:
        """Return the ids of names of one side (k,), -1 for a name that the side does not have."""
        import polars as pl

        from largegnn.data.vocabulary import lookup

        wanted = pl.Series([_plain(name) for name in names], dtype=pl.String)
        first, last = (0, self._num_sources) if side == "source" else (self._num_sources, len(self._names))
        positions = lookup(wanted, self._column[first:last]).astype(np.int64)
        return np.where(positions < 0, positions, positions + first)

    def prepare(self) -> None:
        """Make the column of names now, so that later queries are fast."""
        _ = self._column  # a cached property

    def near(self, name: str) -> list[str]:
        """Find names that resemble a name, the most likely first."""
        from largegnn.data.near import near_names

        return [repr(shown(found)) for found in near_names([_plain(name)], self._column).get(_plain(name), [])]

    def _side(self, index: int) -> str:
        return "source" if index < self._num_sources else "target"

    @cached_property
    def _column(self) -> pl.Series:
        from largegnn.data.vocabulary import name_column

        return name_column(self._names)


def _plain(name: str) -> str:
    """Replace bytes that are not UTF-8, as the shell may pass them, by the replacement character."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
