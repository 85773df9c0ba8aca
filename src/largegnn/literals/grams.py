"""Texts as vectors of character n-grams, weighted by rarity (TF-IDF), and the nearest texts of the other side.

In: normalised texts (lower-case ASCII letters, digits, spaces). Out: cosines of pairs of texts; and for each text its k
nearest of the other side.
The idea: 37 symbols take 6 bits, so a gram of up to 4 symbols is a number below 2^25 and needs no dictionary; grams of
different lengths are told apart by an offset. Vectors are never written down: a text is short, and its grams are
counted anew whenever they are needed, which is faster than to read them from memory. A frequent gram costs the product
of its counts on both sides and says little: the most expensive ones are left out of the search, within a budget that is
linear in the texts, and the candidates are then scored with all grams.
Cost: linear in the characters, and in the texts for the search; a byte for each character, 4 bytes in a few tables for
every gram there is, 5 bytes for each gram of a text that is searched by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import FloatArray, IntArray
from largegnn.literals.gram_loops import (
    NUM_GRAMS,
    count_documents,
    fill_postings,
    nearest,
    pair_cosines,
    text_lengths,
)
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors

__all__ = ["GramSpace", "Texts"]

_PIECE = 1 << 12  # texts that one thread takes at a time
_PAIRS = 1 << 15
_MOST_COUNTERS = 4  # tables of all grams, one for each thread that counts
_WORK_PER_TEXT = 4_000  # products a text may cost in the search
_LEAST_WORK = 200_000_000  # small collections can afford more
# What a gram counts for that occurs so often in a text; 0 times nothing.
_DAMPED = np.concatenate([[0.0], 1 + np.log(np.arange(1, 256))]).astype(np.float32)
_SYMBOLS = np.zeros(256, dtype=np.uint8)
_SYMBOLS[ord("a") : ord("z") + 1] = np.arange(1, 27)
_SYMBOLS[ord("0") : ord("9") + 1] = np.arange(27, 37)


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts end to end, a space before and after each, as numbers below 37; text i is symbols[ptr[i] : ptr[i + 1]]."""

    symbols: IntArray
    ptr: IntArray

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """The texts as symbols."""
        joined = np.frombuffer("  ".join(texts).join("  ").encode("ascii"), dtype=np.uint8)
        sizes = np.fromiter((len(text) + 2 for text in texts), dtype=np.int64, count=len(texts))
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        return cls(_SYMBOLS[joined[: ptr[-1]]], ptr)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def num_texts_of_gram(self) -> IntArray:
        """In how many of the texts each gram occurs, (NUM_GRAMS,)."""

        def count(first: int, last: int) -> IntArray:
            documents = np.zeros(NUM_GRAMS, dtype=np.int32)
            count_documents(self.symbols, self.ptr, first, last, documents)
            return documents

        size = max(1, -(-len(self) // min(num_processors(), _MOST_COUNTERS)))
        counted = by_all_processors(count, len(self), size)
        total = counted[0] if counted else np.zeros(NUM_GRAMS, dtype=np.int32)
        for other in counted[1:]:
            total += other
        return total


@dataclass(frozen=True, eq=False)
class GramSpace:
    """The texts of both sides, how much each gram says (NUM_GRAMS,), and the lengths of the vectors of the texts."""

    left: Texts
    right: Texts
    idf: FloatArray
    documents: tuple[IntArray, IntArray]
    lengths: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, left: Sequence[str], right: Sequence[str]) -> GramSpace:
        """The space of all grams of both sides."""
        sides = Texts.of(left), Texts.of(right)
        documents = sides[0].num_texts_of_gram(), sides[1].num_texts_of_gram()
        # Most grams occur nowhere: their pages of these tables are never touched, and take no memory.
        grams = np.union1d(np.flatnonzero(documents[0]), np.flatnonzero(documents[1]))
        idf = np.zeros(NUM_GRAMS, dtype=np.float32)
        idf[grams] = np.log((1 + len(left) + len(right)) / (1.0 + documents[0][grams] + documents[1][grams])) + 1
        return cls(*sides, idf, documents, (_lengths(sides[0], idf), _lengths(sides[1], idf)))

    def cosines(self, left_rows: IntArray, right_rows: IntArray) -> FloatArray:
        """The cosine of each pair of texts (p,); fastest where the pairs of a left text stand together."""
        left_rows, right_rows = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (left_rows, right_rows))
        found = np.zeros(len(left_rows), dtype=np.float32)
        texts = (self.left.symbols, self.left.ptr, self.right.symbols, self.right.ptr)
        how = (*texts, self.idf, _DAMPED, *self.lengths, left_rows, right_rows)
        by_all_processors(lambda first, last: pair_cosines(*how, first, last, found), len(found), _PAIRS)
        return found

    def nearest(self, k: int) -> tuple[IntArray, IntArray]:
        """The k nearest of each text from either side, by the grams that are affordable: rows of both (p,)."""
        place, allowed = self._affordable()
        forth = self._search(0, k, place, allowed)
        back = self._search(1, k, place, allowed)
        return np.concatenate([forth[0], back[1]]), np.concatenate([forth[1], back[0]])

    def _affordable(self) -> tuple[IntArray, IntArray]:
        """The place of each gram (NUM_GRAMS,) among those to search by, from 1, 0 for the others; and those grams."""
        grams = np.flatnonzero(self.documents[0])
        grams = grams[self.documents[1][grams] > 0]
        costs = self.documents[0][grams].astype(np.int64) * self.documents[1][grams]
        order = np.argsort(costs, kind="stable")
        budget = max(_WORK_PER_TEXT * (len(self.left) + len(self.right)), _LEAST_WORK)
        allowed = np.sort(grams[order[np.cumsum(costs[order]) <= budget]])
        place = np.zeros(NUM_GRAMS, dtype=np.int32)
        place[allowed] = np.arange(1, len(allowed) + 1, dtype=np.int32)
        return place, allowed

    def _search(self, side: int, k: int, place: IntArray, allowed: IntArray) -> tuple[IntArray, IntArray]:
        """The k nearest of the other side for each text of this one: rows of this side and of the other (p,)."""
        own, other = (self.left, self.right) if side == 0 else (self.right, self.left)
        posting_ptr = np.concatenate([[0, 0], np.cumsum(self.documents[1 - side][allowed], dtype=np.int64)])
        texts = np.empty(posting_ptr[-1], dtype=np.int32)
        often = np.empty(posting_ptr[-1], dtype=np.uint8)
        fill_postings(other.symbols, other.ptr, place, posting_ptr[:-1].copy(), texts, often)
        found = np.full((len(own), k), -1, dtype=np.int32)
        how = (self.idf, _DAMPED, place, posting_ptr, texts, often, self.lengths[1 - side], found)
        by_all_processors(lambda first, last: nearest(own.symbols, own.ptr, first, last, *how), len(own), _PIECE)
        rows, ranks = np.nonzero(found >= 0)
        return rows, found[rows, ranks].astype(np.int64)


def _lengths(texts: Texts, idf: FloatArray) -> FloatArray:
    """The length of the vector of each text (n,)."""
    lengths = np.zeros(len(texts), dtype=np.float32)

    def measure(first: int, last: int) -> None:
        text_lengths(texts.symbols, texts.ptr, first, last, idf, _DAMPED, lengths)

    by_all_processors(measure, len(texts), _PIECE)
    return lengths
