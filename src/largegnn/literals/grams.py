"""Texts as vectors of character n-grams, weighted by rarity (TF-IDF), and the nearest texts of the other side.

In: normalised texts (lower-case ASCII letters, digits, spaces). Out: cosines of pairs of texts; and for each text its k
nearest of the other side.
The idea: 37 symbols take 6 bits, so a gram of up to 4 symbols is a number below 2^25 and needs no dictionary; grams of
different lengths are told apart by an offset. Vectors are never written down: a text is short, and its grams are
counted anew whenever they are needed, which is faster than to read them from memory. A frequent gram costs the product
of its counts on both sides and says little: the most expensive ones are left out of the search, within a budget that is
linear in the texts, and the candidates are then scored with all grams.
Cost: linear in the characters, and in the texts for the search; a byte for each character, 4 bytes in a few tables for
every gram there is, 5 bytes for each gram of a text that is searched by. Where a run has a cluster, its workers take
the texts in pieces (`gram_pieces`).
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
from largegnn.literals.gram_pieces import (
    cosines_in_pieces,
    counts_in_pieces,
    lengths_in_pieces,
    nearest_in_pieces,
)
from largegnn.literals.symbols import Texts, fixed
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors
from largegnn.machine.worker_pool import WorkerPool, wider_pool

__all__ = ["GramSpace"]

_PIECE = 1 << 12  # texts that one thread takes at a time
_PAIRS = 1 << 15
_MOST_COUNTERS = 4  # tables of all grams, one for each thread that counts
_WORK_PER_TEXT = 4_000  # products a text may cost in the search
_LEAST_WORK = 200_000_000  # small collections can afford more
_WORTH_SENDING = 1 << 16  # texts of both sides; fewer take seconds here, and so does the start of a worker
# What a gram counts for that occurs so often in a text; 0 times nothing.
_DAMPED: FloatArray = fixed(np.concatenate([[0.0], 1 + np.log(np.arange(1, 256))]).astype(np.float32))


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
        pool = _pool(sides)
        documents = _counts(sides[0], pool), _counts(sides[1], pool)
        # Most grams occur nowhere: their pages of these tables are never touched, and take no memory.
        grams = np.union1d(np.flatnonzero(documents[0]), np.flatnonzero(documents[1]))
        idf = np.zeros(NUM_GRAMS, dtype=np.float32)
        idf[grams] = np.log((1 + len(left) + len(right)) / (1.0 + documents[0][grams] + documents[1][grams])) + 1
        lengths = _lengths(sides[0], fixed(idf), pool), _lengths(sides[1], fixed(idf), pool)
        return cls(*sides, fixed(idf), documents, lengths)

    def cosines(self, left_rows: IntArray, right_rows: IntArray) -> FloatArray:
        """The cosine of each pair of texts (p,); fastest where the pairs of a left text stand together."""
        rows = _plain(left_rows), _plain(right_rows)
        if (pool := _pool((self.left, self.right))) is not None:
            return cosines_in_pieces((self.left, self.right), rows, self.idf, _DAMPED, self.lengths, pool)
        found = np.zeros(len(left_rows), dtype=np.float32)
        texts = (self.left.symbols, self.left.ptr, self.right.symbols, self.right.ptr)
        how = (*texts, self.idf, _DAMPED, *self.lengths, *rows)
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
        return fixed(place), allowed

    def _search(self, side: int, k: int, place: IntArray, allowed: IntArray) -> tuple[IntArray, IntArray]:
        """The k nearest of the other side for each text of this one: rows of this side and of the other (p,)."""
        own, other = (self.left, self.right) if side == 0 else (self.right, self.left)
        how = (own, other, self.idf, _DAMPED, place, self.lengths[1 - side], k)
        if (pool := _pool((own, other))) is not None:
            found = nearest_in_pieces(*how, pool)
        else:
            found = _nearest_here(*how, self.documents[1 - side][allowed])
        rows, ranks = np.nonzero(found >= 0)
        return rows, found[rows, ranks].astype(np.int64)


def _nearest_here(
    own: Texts,
    other: Texts,
    idf: FloatArray,
    damped: FloatArray,
    place: IntArray,
    lengths: FloatArray,
    k: int,
    num_postings: IntArray,
) -> IntArray:
    """The k nearest of the other texts for each own text, (n, k), -1 for none."""
    posting_ptr = np.concatenate([[0, 0], np.cumsum(num_postings, dtype=np.int64)])
    texts = np.empty(posting_ptr[-1], dtype=np.int32)
    often = np.empty(posting_ptr[-1], dtype=np.uint8)
    fill_postings(other.symbols, other.ptr, place, posting_ptr[:-1].copy(), texts, often)
    found, products = np.full((len(own), k), -1, dtype=np.int32), np.empty((0, k), dtype=np.float32)
    how = (idf, damped, place, *map(fixed, (posting_ptr, texts, often)), lengths, found, products)
    by_all_processors(lambda first, last: nearest(own.symbols, own.ptr, first, last, *how), len(own), _PIECE)
    return found


def _pool(sides: tuple[Texts, Texts]) -> WorkerPool | None:
    """The workers of a cluster, where the texts are worth it and they are more than the threads of this process."""
    return wider_pool() if len(sides[0]) + len(sides[1]) >= _WORTH_SENDING else None


def _plain(rows: IntArray) -> IntArray:
    """Rows in the one form that the loops are compiled for."""
    plain: IntArray = fixed(np.ascontiguousarray(rows, dtype=np.int64))
    return plain


def _counts(texts: Texts, pool: WorkerPool | None) -> IntArray:
    """In how many of the texts each gram occurs, (NUM_GRAMS,)."""
    if pool is not None:
        return counts_in_pieces(texts, pool)

    def count(first: int, last: int) -> IntArray:
        documents = np.zeros(NUM_GRAMS, dtype=np.int32)
        count_documents(texts.symbols, texts.ptr, first, last, documents)
        return documents

    size = max(1, -(-len(texts) // min(num_processors(), _MOST_COUNTERS)))
    counted = by_all_processors(count, len(texts), size)
    total = counted[0] if counted else np.zeros(NUM_GRAMS, dtype=np.int32)
    for other in counted[1:]:
        total += other
    return total


def _lengths(texts: Texts, idf: FloatArray, pool: WorkerPool | None) -> FloatArray:
    """The length of the vector of each text (n,)."""
    lengths = np.zeros(len(texts), dtype=np.float32)

    def measure(first: int, last: int) -> None:
        text_lengths(texts.symbols, texts.ptr, first, last, idf, _DAMPED, lengths)

    if pool is not None:
        lengths = lengths_in_pieces(texts, idf, _DAMPED, pool)
    else:
        by_all_processors(measure, len(texts), _PIECE)
    found: FloatArray = fixed(lengths)
    return found
