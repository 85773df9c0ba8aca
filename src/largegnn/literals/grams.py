"""Compare texts by TF-IDF vectors of character n-grams, and find the nearest texts of the other side.

In: normalised texts (lower-case ASCII letters, digits, spaces) of both sides. Out: cosines of pairs of texts; and for
each text its k nearest of the other side.
The idea: 37 symbols take 6 bits, so a gram of 2 to 4 symbols is a number below 2^25 and needs no dictionary. Vectors
are never stored: texts are short, and counting their grams again is faster than reading them from memory. A gram costs
the product of its numbers of texts on both sides; the most expensive grams, which distinguish least, are omitted from
the search, so that its cost is linear in the texts. Candidates are then scored with all grams.
Cost: linear in the characters and the texts. Memory: 1 byte for each character, 4 bytes in a few tables for every
possible gram, 5 bytes for each gram of the texts that are searched at a time.
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

_MIN_PIECE_TEXTS = 1 << 12
_MIN_PIECE_PAIRS = 1 << 15
_PIECES_PER_WORKER = 8
_MAX_COUNT_PIECES = 8  # each of them has a table of all grams
_CORPUS_TEXTS = 1 << 20  # texts that are searched at a time: postings of some 200 MB
_PRODUCTS_PER_TEXT = 4_000  # the budget of the search
_MIN_PRODUCTS = 200_000_000  # the budget for small collections, which can afford more for each text
_WORTH_SENDING = 1 << 16  # texts of both sides; fewer take seconds here, and so does the start of a worker
# The symbol of each ASCII character: 0 for a space, 1 to 26 for letters, 27 to 36 for digits.
_SYMBOLS = np.zeros(256, dtype=np.uint8)
_SYMBOLS[ord("a") : ord("z") + 1] = np.arange(1, 27)
_SYMBOLS[ord("0") : ord("9") + 1] = np.arange(27, 37)


def _read_only(array: IntArray | FloatArray) -> Any:
    """A read-only view. Arrays from another machine are read-only, and numba compiles once for each type."""
    view = array.view()
    view.flags.writeable = False
    return view


# The weight of a gram by its count in a text, 1 + log(count).
_COUNT_WEIGHTS: FloatArray = _read_only(np.concatenate([[0.0], 1 + np.log(np.arange(1, 256))]).astype(np.float32))


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts as symbols, numbers below 37, in one array: text i, between two spaces, is symbols[ptr[i] : ptr[i + 1]]."""

    symbols: IntArray
    ptr: IntArray

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Convert normalised texts to symbols."""
        joined = np.frombuffer("  ".join(texts).join("  ").encode("ascii"), dtype=np.uint8)
        sizes = np.fromiter((len(text) + 2 for text in texts), dtype=np.int64, count=len(texts))
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        return cls(_SYMBOLS[joined[: ptr[-1]]], ptr)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def part(self, first: int, last: int) -> Texts:
        """The texts from `first` to `last` (exclusive)."""
        start = self.ptr[first]
        return Texts(self.symbols[start : self.ptr[last]], self.ptr[first : last + 1] - start)


@dataclass(frozen=True, eq=False)
class GramTable:
    """A table of all grams in sparse form: the `values` (g,) of some `grams` (g,); the value of all others is 0.

    Only the sparse form is sent to other machines.
    """

    grams: IntArray
    values: IntArray

    def __reduce__(self) -> tuple[Any, ...]:
        return GramTable, (self.grams, self.values)

    @cached_property
    def dense(self) -> Any:
        """The values of all grams, (NUM_GRAMS,); pages of zeros take no memory."""
        dense = np.zeros(NUM_GRAMS, dtype=self.values.dtype)
        dense[self.grams] = self.values
        return _read_only(dense)


@dataclass(frozen=True, eq=False)
class Postings:
    """An inverted index: the texts that contain a gram.

    Row r belongs to one gram and holds `texts[ptr[r] : ptr[r + 1]]`, with the count of the gram in each text in
    `counts`; row 0 is empty. `lengths` (n,) are the lengths of the texts' vectors.
    """

    ptr: IntArray
    texts: IntArray
    counts: IntArray
    lengths: FloatArray

    @classmethod
    def of(cls, texts: Texts, row_of_gram: GramTable, documents: IntArray, lengths: FloatArray) -> Postings:
        """Index the texts by the grams that have a row; `documents` (g,) is the number of texts of each such gram."""
        ptr = np.concatenate([[0, 0], np.cumsum(documents, dtype=np.int64)])
        posted, counts = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1], dtype=np.uint8)
        symbols, text_ptr = _read_only(texts.symbols), _read_only(texts.ptr)
        fill_postings(symbols, text_ptr, row_of_gram.dense, ptr[:-1].copy(), posted, counts)
        return cls(ptr, posted, counts, lengths)


@dataclass(frozen=True, eq=False)
class GramSpace:
    """The TF-IDF vectors of the texts of both sides.

    `idf` holds the weight of each gram, `documents` for either side the number of texts with each gram, `lengths` for
    either side the lengths of the texts' vectors.
    """

    left: Texts
    right: Texts
    idf: GramTable
    documents: tuple[IntArray, IntArray]
    lengths: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, left: Sequence[str], right: Sequence[str]) -> GramSpace:
        """Count the grams of both sides, and weight them by rarity."""
        sides = Texts.of(left), Texts.of(right)
        send = _is_large(*sides)
        documents = _count(sides[0], send), _count(sides[1], send)
        grams = np.union1d(np.flatnonzero(documents[0]), np.flatnonzero(documents[1]))
        weights = np.log((1 + len(left) + len(right)) / (1.0 + documents[0][grams] + documents[1][grams])) + 1
        idf = GramTable(grams.astype(np.int32), weights.astype(np.float32))
        return cls(*sides, idf, documents, (_measure(sides[0], idf, send), _measure(sides[1], idf, send)))

    def cosines(self, left_rows: IntArray, right_rows: IntArray) -> FloatArray:
        """The cosine of each pair of texts (p,); fastest where the pairs of a left text follow each other."""
        left = np.ascontiguousarray(left_rows, dtype=np.int64)
        right = np.ascontiguousarray(right_rows, dtype=np.int64)
        send = _is_large(self.left, self.right)
        ranges = _ranges(len(left), _MIN_PIECE_PAIRS, send)
        pairs = ((left[first:last], right[first:last]) for first, last in ranges)
        return _joined(map_pieces(cosines_piece, pairs, self.left, self.right, self.idf, *self.lengths, send=send))

    def nearest(self, k: int) -> tuple[IntArray, IntArray]:
        """The k nearest texts of the other side for each text of both sides: pairs of left and right rows (p,).

        Only the grams that the budget allows are compared.
        """
        row_of_gram = self._searched_grams()
        left_queries, right_found = self._search(0, k, row_of_gram)
        right_queries, left_found = self._search(1, k, row_of_gram)
        return np.concatenate([left_queries, left_found]), np.concatenate([right_found, right_queries])

    def _searched_grams(self) -> GramTable:
        """The cheapest grams within the budget, each with its row in the postings, from 1."""
        grams = np.flatnonzero(self.documents[0])
        grams = grams[self.documents[1][grams] > 0]
        costs = self.documents[0][grams].astype(np.int64) * self.documents[1][grams]
        order = np.argsort(costs, kind="stable")
        budget = max(_PRODUCTS_PER_TEXT * (len(self.left) + len(self.right)), _MIN_PRODUCTS)
        allowed = np.sort(grams[order[np.cumsum(costs[order]) <= budget]])
        return GramTable(allowed.astype(np.int32), np.arange(1, len(allowed) + 1, dtype=np.int32))

    def _search(self, side: int, k: int, row_of_gram: GramTable) -> tuple[IntArray, IntArray]:
        """The k nearest texts of the other side for each text of `side`: rows of `side` and of the other side (p,)."""
        queries, corpus = (self.left, self.right) if side == 0 else (self.right, self.left)
        send = _is_large(queries, corpus)
        nearest_texts = np.full((len(queries), k), -1, dtype=np.int32)
        nearest_products = np.full((len(queries), k), -1, dtype=np.float32)
        for first, last in pieces(len(corpus), _CORPUS_TEXTS):
            searched, documents = corpus, self.documents[1 - side][row_of_gram.grams]
            if len(corpus) > _CORPUS_TEXTS:
                searched = corpus.part(first, last)
                documents = _count(searched, send)[row_of_gram.grams]
            postings = Postings.of(searched, row_of_gram, documents, self.lengths[1 - side][first:last])
            ranges = list(_ranges(len(queries), _MIN_PIECE_TEXTS, send))
            results = map_pieces(nearest_piece, ranges, queries, self.idf, row_of_gram, postings, k, send=send)
            for (start, end), (rows, products) in zip(ranges, results, strict=True):
                texts = np.concatenate([nearest_texts[start:end], np.where(rows >= 0, rows + first, -1)], axis=1)
                products = np.concatenate([nearest_products[start:end], products], axis=1)
                # The sort is stable and earlier results come first: of equal products the first text is kept.
                best = np.argsort(-products, axis=1, kind="stable")[:, :k]
                nearest_texts[start:end] = np.take_along_axis(texts, best, axis=1)
                nearest_products[start:end] = np.take_along_axis(products, best, axis=1)
        query_rows, ranks = np.nonzero(nearest_texts >= 0)
        return query_rows, nearest_texts[query_rows, ranks].astype(np.int64)


def count_piece(first: int, last: int, texts: Texts) -> tuple[IntArray, IntArray]:
    """Count, for each gram of the texts from `first` to `last`, the texts that contain it; returns grams and counts."""
    documents = np.zeros(NUM_GRAMS, dtype=np.int32)
    count_documents(_read_only(texts.symbols), _read_only(texts.ptr), first, last, documents)
    grams = np.flatnonzero(documents)
    return grams, documents[grams]


def lengths_piece(first: int, last: int, texts: Texts, idf: GramTable) -> FloatArray:
    """The lengths of the vectors of the texts from `first` to `last`."""
    return text_lengths(_read_only(texts.symbols), _read_only(texts.ptr), first, last, idf.dense, _COUNT_WEIGHTS)


def nearest_piece(
    first: int, last: int, queries: Texts, idf: GramTable, row_of_gram: GramTable, postings: Postings, k: int
) -> tuple[IntArray, FloatArray]:
    """The k texts in `postings` nearest to each query from `first` to `last`, and their products, (n, k) each."""
    return nearest(
        _read_only(queries.symbols),
        _read_only(queries.ptr),
        first,
        last,
        idf.dense,
        _COUNT_WEIGHTS,
        row_of_gram.dense,
        _read_only(postings.ptr),
        _read_only(postings.texts),
        _read_only(postings.counts),
        _read_only(postings.lengths),
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
    """The cosine of each pair of texts in a piece."""
    return pair_cosines(
        _read_only(left.symbols),
        _read_only(left.ptr),
        _read_only(right.symbols),
        _read_only(right.ptr),
        idf.dense,
        _COUNT_WEIGHTS,
        _read_only(left_lengths),
        _read_only(right_lengths),
        _read_only(left_rows),
        _read_only(right_rows),
    )


def _count(texts: Texts, send: bool) -> IntArray:
    """The number of texts that contain each gram, (NUM_GRAMS,)."""
    size = max(1, -(-len(texts) // min(num_workers(send), _MAX_COUNT_PIECES)))
    total = np.zeros(NUM_GRAMS, dtype=np.int32)
    for grams, documents in map_pieces(count_piece, pieces(len(texts), size), texts, send=send):
        total[grams] += documents
    return total


def _measure(texts: Texts, idf: GramTable, send: bool) -> FloatArray:
    """The length of the vector of each text (n,)."""
    return _joined(map_pieces(lengths_piece, _ranges(len(texts), _MIN_PIECE_TEXTS, send), texts, idf, send=send))


def _joined(parts: Iterator[FloatArray]) -> FloatArray:
    """The parts as one array; no parts give an empty array."""
    return np.concatenate([np.empty(0, dtype=np.float32), *parts])


def _ranges(count: int, min_size: int, send: bool) -> Iterator[tuple[int, int]]:
    """Split `count` rows into ranges (start, end): several for each worker, but of at least `min_size` rows."""
    return pieces(count, max(min_size, -(-count // (_PIECES_PER_WORKER * num_workers(send)))))


def _is_large(left: Texts, right: Texts) -> bool:
    """Whether the texts are worth sending to other machines."""
    return len(left) + len(right) >= _WORTH_SENDING
