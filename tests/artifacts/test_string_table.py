from __future__ import annotations

import numpy as np
import pytest

from largegnn.artifacts import StringTable


def test_take_by_hand() -> None:
    table = StringTable.from_strings(["a", "", "é😀", "b"])
    assert table.take([2, 0, 2, 1]) == ["é😀", "a", "é😀", ""]
    assert table.take(np.array([3], dtype=np.int32)) == ["b"]
    assert table.take(range(4)) == list(table)
    assert table.take([]) == []
    assert StringTable.from_strings([]).take([]) == []
    for wrong in ([4], [0, -1]):
        with pytest.raises(IndexError):
            table.take(wrong)


def test_take_touches_only_what_is_asked_for() -> None:
    """A look-up in a table of millions must not copy it."""

    class Guarded(np.ndarray[tuple[int, ...], np.dtype[np.uint8]]):
        def tobytes(self, order: object = None) -> bytes:
            raise AssertionError("the whole table was copied")

    table = StringTable.from_strings(["a"] * 1000)
    object.__setattr__(table, "data", table.data.view(Guarded))
    assert table.take([999]) == ["a"]
