"""Compare texts by vectors of character n-grams, weighted by rarity (TF-IDF), and find the nearest texts.

In: normalised texts (lower-case ASCII letters, digits, spaces) of both sides. Out: cosines of pairs of texts; and for
each text its k nearest of the other side.
The idea: 37 symbols take 6 bits, so a gram of up to 4 symbols is a number below 2^25 and needs no dictionary; offsets
keep grams of different lengths apart. Vectors are never stored: a text is short, and counting its grams anew is faster
than reading them from memory. The cost of a gram is the product of its counts on both sides: the most expensive grams,
which distinguish least, are left out of the search, within a budget that is linear in the texts. Candidates are then
scored with all grams. Cost: linear in the characters, and in the texts for the search; a byte for each character, 4
bytes in a few tables for every gram there is, 5 bytes for each gram of the texts that are searched at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
from largegnn.machine.pieces import map_pieces, num_workers, pieces

__all__ = ["GramSpace", "GramTable", "Texts"]

_TEXTS, _PAIRS = 1 << 12, 1 << 15  # of a piece, at least
_PIECES_EACH = 8  # for each worker
_MOST_COUNTERS = 8  # tables of all grams at a time
_CORPUS = 1 << 20  # texts that are searched at a time: postings of some 200 MB
_WORK_PER_TEXT = 4_000  # products a text may cost in the search
_LEAST_WORK = 200_000_000  # small collections can afford more
_WORTH_SENDING = 1 << 16  # texts of both sides; fewer take seconds here, and so does the start of a worker
_SYMBOLS = np.zeros(256, dtype=np.uint8)
_SYMBOLS[ord("a") : ord("z") + 1] = np.arange(1, 27)
_SYMBOLS[ord("0") : ord("9") + 1] = np.arange(27, 37)


def _fixed(array: IntArray | FloatArray) -> Any:
    """A read-only view. Arrays from another machine are read-only too, so loops are compiled once."""
    view = array.view()
    view.flags.writeable = False
    return view


# The weight of a gram by its count in a text.
_DAMPED: FloatArray = _fixed(np.concatenate([[0.0], 1 + np.log(np.arange(1, 256))]).astype(np.float32))


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

    def cut(self, first: int, last: int) -> Texts:
        """The texts from `first` to `last`."""
        start = self.ptr[first]
        return Texts(self.symbols[start : self.ptr[last]], self.ptr[first : last + 1] - start)


@dataclass(frozen=True, eq=False)
class GramTable:
    """The `values` (g,) of some `grams` (g,); all others have 0. Only these few are sent to another machine."""

    grams: IntArray
    values: IntArray

    def __reduce__(self) -> tuple[Any, ...]:
        return GramTable, (self.grams, self.values)

    @cached_property
    def whole(self) -> Any:
        """The table of all grams, (NUM_GRAMS,); its empty pages take no memory."""
        whole = np.zeros(NUM_GRAMS, dtype=self.values.dtype)
        whole[self.grams] = self.values
        return _fixed(whole)


@dataclass(frozen=True, eq=False)
class Postings:
    """Texts by their grams: those of place p are `texts[ptr[p] : ptr[p + 1]]`, each with how often."""

    ptr: IntArray
    texts: IntArray
    often: IntArray
    lengths: FloatArray

    @classmethod
    def of(cls, texts: Texts, places: GramTable, documents: IntArray, lengths: FloatArray) -> Postings:
        """The texts by the grams with a place; `documents` (g,) is the number of texts of each."""
        ptr = np.concatenate([[0, 0], np.cumsum(documents, dtype=np.int64)])
        owners, often = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1], dtype=np.uint8)
        fill_postings(_fixed(texts.symbols), _fixed(texts.ptr), places.whole, ptr[:-1].copy(), owners, often)
        return cls(ptr, owners, often, lengths)


@dataclass(frozen=True, eq=False)
class GramSpace:
    """The texts of both sides, the weight of each gram, its number of texts of each side, and the vectors' lengths."""

    left: Texts
    right: Texts
    idf: GramTable
    documents: tuple[IntArray, IntArray]
    lengths: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, left: Sequence[str], right: Sequence[str]) -> GramSpace:
        """The space of all grams of both sides."""
        sides = Texts.of(left), Texts.of(right)
        send = _is_large(*sides)
        documents = _count(sides[0], send), _count(sides[1], send)
        grams = np.union1d(np.flatnonzero(documents[0]), np.flatnonzero(documents[1]))
        weights = np.log((1 + len(left) + len(right)) / (1.0 + documents[0][grams] + documents[1][grams])) + 1
        idf = GramTable(grams.astype(np.int32), weights.astype(np.float32))
        return cls(*sides, idf, documents, (_measure(sides[0], idf, send), _measure(sides[1], idf, send)))

    def cosines(self, left_rows: IntArray, right_rows: IntArray) -> FloatArray:
        """The cosine of each pair of texts (p,); fastest where the pairs of a left text follow each other."""
        left, right = (np.ascontiguousarray(rows, dtype=np.int64) for rows in (left_rows, right_rows))
        send = _is_large(self.left, self.right)
        some = ((left[first:last], right[first:last]) for first, last in _ranges(len(left), _PAIRS, send))
        return _joined(map_pieces(cosines_piece, some, self.left, self.right, self.idf, *self.lengths, send=send))

    def nearest(self, k: int) -> tuple[IntArray, IntArray]:
        """The k nearest of each text from either side, by the affordable grams: rows of both (p,)."""
        places = self._affordable()
        forth = self._search(0, k, places)
        back = self._search(1, k, places)
        return np.concatenate([forth[0], back[1]]), np.concatenate([forth[1], back[0]])

    def _affordable(self) -> GramTable:
        """The place of each gram to search by, from 1."""
        grams = np.flatnonzero(self.documents[0])
        grams = grams[self.documents[1][grams] > 0]
        costs = self.documents[0][grams].astype(np.int64) * self.documents[1][grams]
        order = np.argsort(costs, kind="stable")
        budget = max(_WORK_PER_TEXT * (len(self.left) + len(self.right)), _LEAST_WORK)
        allowed = np.sort(grams[order[np.cumsum(costs[order]) <= budget]])
        return GramTable(allowed.astype(np.int32), np.arange(1, len(allowed) + 1, dtype=np.int32))

    def _search(self, side: int, k: int, places: GramTable) -> tuple[IntArray, IntArray]:
        """The k nearest of the other side for each text of this one: rows of this side and of the other (p,)."""
        own, other = (self.left, self.right) if side == 0 else (self.right, self.left)
        send = _is_large(own, other)
        found = np.full((len(own), k), -1, dtype=np.int32)
        products = np.full((len(own), k), -1, dtype=np.float32)
        for first, last in pieces(len(other), _CORPUS):
            corpus, documents = other, self.documents[1 - side][places.grams]
            if len(other) > _CORPUS:
                corpus = other.cut(first, last)
                documents = _count(corpus, send)[places.grams]
            postings = Postings.of(corpus, places, documents, self.lengths[1 - side][first:last])
            ranges = list(_ranges(len(own), _TEXTS, send))
            results = map_pieces(nearest_piece, ranges, own, self.idf, places, postings, k, send=send)
            for (start, end), (texts, values) in zip(ranges, results, strict=True):
                every = np.concatenate([found[start:end], np.where(texts >= 0, texts + first, -1)], axis=1)
                values = np.concatenate([products[start:end], values], axis=1)
                # Stable, and earlier results are of earlier texts: of equal products the first text stays.
                best = np.argsort(-values, axis=1, kind="stable")[:, :k]
                found[start:end] = np.take_along_axis(every, best, axis=1)
                products[start:end] = np.take_along_axis(values, best, axis=1)
        rows, ranks = np.nonzero(found >= 0)
        return rows, found[rows, ranks].astype(np.int64)


def count_piece(first: int, last: int, texts: Texts) -> tuple[IntArray, IntArray]:
    """The grams of the texts from `first` to `last`, and the number of texts of each."""
    documents = np.zeros(NUM_GRAMS, dtype=np.int32)
    count_documents(_fixed(texts.symbols), _fixed(texts.ptr), first, last, documents)
    grams = np.flatnonzero(documents)
    return grams, documents[grams]


def lengths_piece(first: int, last: int, texts: Texts, idf: GramTable) -> FloatArray:
    """The lengths of the vectors of the texts from `first` to `last`."""
    return text_lengths(_fixed(texts.symbols), _fixed(texts.ptr), first, last, idf.whole, _DAMPED)


def nearest_piece(
    first: int, last: int, own: Texts, idf: GramTable, places: GramTable, postings: Postings, k: int
) -> tuple[IntArray, FloatArray]:
    """The nearest of the texts in `postings` for each text from `first` to `last`, and the products, (n, k) each."""
    return nearest(
        _fixed(own.symbols),
        _fixed(own.ptr),
        first,
        last,
        idf.whole,
        _DAMPED,
        places.whole,
        _fixed(postings.ptr),
        _fixed(postings.texts),
        _fixed(postings.often),
        _fixed(postings.lengths),
        k,
    )


def cosines_piece(
    left_rows: IntArray,
    right_rows: IntArray,
    left: Texts,
    right: Texts,
    idf: GramTable,
    left_lengths: FloatArray,
    right_lengths: FloatArray,
) -> FloatArray:
    """The cosine of each pair of a piece."""
    return pair_cosines(
        _fixed(left.symbols),
        _fixed(left.ptr),
        _fixed(right.symbols),
        _fixed(right.ptr),
        idf.whole,
        _DAMPED,
        _fixed(left_lengths),
        _fixed(right_lengths),
        _fixed(left_rows),
        _fixed(right_rows),
    )


def _count(texts: Texts, send: bool) -> IntArray:
    """The number of texts that each gram occurs in, (NUM_GRAMS,)."""
    size = max(1, -(-len(texts) // min(num_workers(send), _MOST_COUNTERS)))
    total = np.zeros(NUM_GRAMS, dtype=np.int32)
    for grams, documents in map_pieces(count_piece, pieces(len(texts), size), texts, send=send):
        total[grams] += documents
    return total


def _measure(texts: Texts, idf: GramTable, send: bool) -> FloatArray:
    """The length of the vector of each text (n,)."""
    return _joined(map_pieces(lengths_piece, _ranges(len(texts), _TEXTS, send), texts, idf, send=send))


def _joined(parts: Iterator[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _ranges(count: int, least: int, send: bool) -> Iterator[tuple[int, int]]:
    """Where each piece begins and ends, so that each worker takes some."""
    return pieces(count, max(least, -(-count // (_PIECES_EACH * num_workers(send)))))


def _is_large(left: Texts, right: Texts) -> bool:
    """Whether the texts are worth sending to other machines."""
    return len(left) + len(right) >= _WORTH_SENDING
