"""Find entities by name: an id for a name, and near names for an unknown one.

In: the names of both graphs. Out: ids. Names are compared as bytes in their table; no table of Python strings is made.
The first few names are found by passes over the table, byte by byte from the end; then a sorted index of hashes is
made, which takes seconds at a million, and serves any number. Cost: one pass over the bytes, then a search by halving.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from largegnn.artifacts import IntArray, StringTable
from largegnn.data.shown import shown
from largegnn.errors import InputError

__all__ = ["EntityNames"]

_FEW, _SMALL = 8, 10_000  # names that are searched without an index, in tables larger than this


class EntityNames:
    """The names of the entities of both sides, the first `num_sources` being the source's."""

    def __init__(self, names: StringTable, num_sources: int) -> None:
        self._names, self._num_sources = names, num_sources
        self._num_searched = 0

    def find(self, name: str, side: str | None = None) -> int:
        """The id of a name; `side` is needed where both graphs have it. An unknown name gets near ones."""
        if side not in (None, "source", "target"):
            raise InputError(f"there is no side {side!r}", expected="source or target")
        ids = [index for index in self._all(name) if side in (None, self._side(index))]
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
        """The ids of names of one side (k,), -1 for those it does not have."""
        found = np.full(len(names), -1, dtype=np.int64)
        for row, name in enumerate(names):
            found[row] = next((index for index in self._all(name) if self._side(index) == side), -1)
        return found

    def prepare(self) -> None:
        """Make the index now, for many names to find."""
        self._num_searched = _FEW
        _ = self._index

    def near(self, name: str) -> list[str]:
        """Names that resemble this one, the likeliest first."""
        from largegnn.data.near import near_names
        from largegnn.data.vocabulary import name_column

        name = name.encode("utf-8", "replace").decode("utf-8")  # the shell may give half a character
        return [repr(shown(found)) for found in near_names([name], name_column(self._names)).get(name, [])]

    def _side(self, index: int) -> str:
        return "source" if index < self._num_sources else "target"

    def _all(self, name: str) -> list[int]:
        """The ids that have this very name."""
        try:
            wanted = name.encode("utf-8")
        except UnicodeEncodeError:
            return []
        self._num_searched += 1
        if self._num_searched <= _FEW and len(self._names) > _SMALL:
            return self._pass_over(wanted)
        hashes, order = self._index
        begin, end = np.searchsorted(hashes, [zlib.crc32(wanted), zlib.crc32(wanted) + 1])
        return sorted(index for index in order[begin:end].tolist() if self._names[index] == name)

    def _pass_over(self, wanted: bytes) -> list[int]:
        """The same without an index: names of this length, fewer with every byte that is compared."""
        data, ptr = self._names.data, self._names.data_ptr
        found = np.flatnonzero(ptr[1:] - ptr[:-1] == len(wanted))
        for back, byte in enumerate(reversed(wanted), start=1):
            found = found[data[ptr[found + 1] - back] == byte]
        return [int(index) for index in found]

    @cached_property
    def _index(self) -> tuple[IntArray, IntArray]:
        """The hashes of all names, ascending, and whose each is."""
        data, ptr = memoryview(self._names.data.tobytes()), self._names.data_ptr.tolist()
        hashes = np.fromiter(
            (zlib.crc32(data[ptr[index] : ptr[index + 1]]) for index in range(len(self._names))),
            dtype=np.int64,
            count=len(self._names),
        )
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order
