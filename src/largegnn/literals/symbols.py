"""Texts as symbols: what the loops over n-grams read.

In: normalised texts (lower-case ASCII letters, digits, spaces). Out: one array of numbers below 37 for all of them, and
where each begins; ranges and choices of it for those who work on a part.
Cost: a byte for each character, 8 bytes for each text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from largegnn.artifacts import FloatArray, IntArray

__all__ = ["Texts", "fixed"]

_SYMBOLS = np.zeros(256, dtype=np.uint8)
_SYMBOLS[ord("a") : ord("z") + 1] = np.arange(1, 27)
_SYMBOLS[ord("0") : ord("9") + 1] = np.arange(27, 37)


def fixed(array: IntArray | FloatArray) -> Any:
    """A view that cannot be written to. What comes from another machine cannot either, so loops are compiled once."""
    view = array.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts end to end, a space before and after each, as numbers below 37; text i is symbols[ptr[i] : ptr[i + 1]]."""

    symbols: IntArray
    ptr: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", fixed(self.symbols))
        object.__setattr__(self, "ptr", fixed(self.ptr))

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """The texts as symbols."""
        joined = np.frombuffer("  ".join(texts).join("  ").encode("ascii"), dtype=np.uint8)
        sizes = np.fromiter((len(text) + 2 for text in texts), dtype=np.int64, count=len(texts))
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        return cls(_SYMBOLS[joined[: ptr[-1]]], ptr)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def cut(self, first: int, last: int) -> Texts:
        """The texts from `first` to `last`."""
        start = self.ptr[first]
        return Texts(self.symbols[start : self.ptr[last]], self.ptr[first : last + 1] - start)

    def take(self, rows: IntArray) -> Texts:
        """The texts at some rows (r,)."""
        sizes = self.ptr[rows + 1] - self.ptr[rows]
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        return Texts(self.symbols[np.repeat(self.ptr[rows] - ptr[:-1], sizes) + np.arange(ptr[-1])], ptr)
