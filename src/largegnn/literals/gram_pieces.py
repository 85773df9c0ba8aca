"""The loops over n-grams in pieces: ranges of texts and of pairs, on the workers of a cluster.

In: the texts of both sides as symbols, the weights of their grams, a pool of workers. Out: what the loops give in one
piece, to the bit.
The idea: what two texts have in common depends on nothing but the two and the weights, and is added up in the order of
the grams of the first. So queries are cut into ranges, the texts they are compared with into ranges too, each sent to
every machine once, and the best k of all ranges are the best k of the whole. Pairs are cut into ranges, each with the
texts it names. Weights travel as the few grams that have one.
Memory here: the postings of one range, and the texts of some pieces. Cost: that of the loops. What is sent: a byte for
each character once for counts, lengths and queries each; 5 bytes for each gram that is searched by, to every machine;
the texts that the pairs of a piece name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from largegnn.literals.symbols import Texts, fixed
from largegnn.machine.pieces import pieces
from largegnn.machine.worker_pool import WorkerPool

__all__ = ["cosines_in_pieces", "counts_in_pieces", "lengths_in_pieces", "nearest_in_pieces"]

_EACH = 4  # pieces for each worker: enough that nobody waits long for the last one
# Texts of a piece, and pairs: from a second on. Less would not pay for the tables of all grams that each piece makes.
_FEWEST_TEXTS, _MOST_TEXTS = 1 << 14, 1 << 17
_FEWEST_PAIRS, _MOST_PAIRS = 1 << 17, 1 << 19
_CORPUS = 1 << 20  # texts that are searched at a time: postings of some 200 MB


@dataclass(frozen=True, eq=False)
class SomeGrams:
    """Numbers for the few grams that have one: `values` (g,) of `grams` (g,)."""

    grams: IntArray
    values: IntArray

    @classmethod
    def of(cls, table: IntArray | FloatArray) -> SomeGrams:
        """What a table of all grams (NUM_GRAMS,) holds."""
        grams = np.flatnonzero(table).astype(np.int32)
        return cls(grams, table[grams])

    def table(self) -> Any:
        """The table of all grams, (NUM_GRAMS,); its empty pages take no memory."""
        whole = np.zeros(NUM_GRAMS, dtype=self.values.dtype)
        whole[self.grams] = self.values
        return fixed(whole)


@dataclass(frozen=True, eq=False)
class Postings:
    """A range of texts by their grams: those of place p are `texts[ptr[p] : ptr[p + 1]]`, each with how often."""

    ptr: IntArray
    texts: IntArray
    often: IntArray
    lengths: FloatArray

    @classmethod
    def of(cls, texts: Texts, place: IntArray, lengths: FloatArray) -> Postings:
        """The texts by the grams that have a place (NUM_GRAMS,) from 1."""
        documents = np.zeros(NUM_GRAMS, dtype=np.int32)
        count_documents(texts.symbols, texts.ptr, 0, len(texts), documents)
        ptr = np.concatenate([[0, 0], np.cumsum(documents[np.flatnonzero(place)], dtype=np.int64)])
        owners, often = np.empty(ptr[-1], dtype=np.int32), np.empty(ptr[-1], dtype=np.uint8)
        fill_postings(texts.symbols, texts.ptr, place, ptr[:-1].copy(), owners, often)
        return cls(ptr, owners, often, lengths)


def counts_in_pieces(texts: Texts, pool: WorkerPool) -> IntArray:
    """In how many of the texts each gram occurs, (NUM_GRAMS,)."""
    total = np.zeros(NUM_GRAMS, dtype=np.int32)
    for _, counted in pool.run(count_piece, ((texts.cut(*each),) for each in _ranges(texts, pool))):
        total[counted.grams] += counted.values
    return total


def count_piece(texts: Texts) -> SomeGrams:
    """In how many of the texts of a piece each gram occurs."""
    documents = np.zeros(NUM_GRAMS, dtype=np.int32)
    count_documents(texts.symbols, texts.ptr, 0, len(texts), documents)
    return SomeGrams.of(documents)


def lengths_in_pieces(texts: Texts, idf: FloatArray, damped: FloatArray, pool: WorkerPool) -> FloatArray:
    """The length of the vector of each text, (n,)."""
    lengths = np.zeros(len(texts), dtype=np.float32)
    weights, ranges = pool.share(SomeGrams.of(idf)), _ranges(texts, pool)
    for number, measured in pool.run(lengths_piece, ((texts.cut(*each), weights, damped) for each in ranges)):
        lengths[slice(*ranges[number])] = measured
    return lengths


def lengths_piece(texts: Texts, idf: SomeGrams, damped: FloatArray) -> FloatArray:
    """The lengths of the vectors of a piece."""
    lengths = np.zeros(len(texts), dtype=np.float32)
    text_lengths(texts.symbols, texts.ptr, 0, len(texts), idf.table(), fixed(damped), lengths)
    return lengths


def nearest_in_pieces(
    own: Texts,
    other: Texts,
    idf: FloatArray,
    damped: FloatArray,
    place: IntArray,
    lengths: FloatArray,
    k: int,
    pool: WorkerPool,
) -> IntArray:
    """The k nearest of the other texts for each own text, (n, k), -1 for none; `lengths` are those of the others."""
    found = np.full((len(own), k), -1, dtype=np.int32)
    products = np.full((len(own), k), -1, dtype=np.float32)
    ranges = _ranges(own, pool)
    weights = pool.share(SomeGrams.of(idf)), damped, pool.share(SomeGrams.of(place))
    for first, last in pieces(len(other), _CORPUS):
        postings = pool.share(Postings.of(other.cut(first, last), place, lengths[first:last]))
        arguments = ((own.cut(*each), *weights, postings, k) for each in ranges)
        for number, (texts, values) in pool.run(nearest_piece, arguments):
            rows = slice(*ranges[number])
            every = np.concatenate([found[rows], np.where(texts >= 0, texts + np.int32(first), texts)], axis=1)
            values = np.concatenate([products[rows], values], axis=1)
            # Stable, and what was found before comes from texts before: of equal ones the first text stays.
            best = np.argsort(-values, axis=1, kind="stable")[:, :k]
            found[rows] = np.take_along_axis(every, best, axis=1)
            products[rows] = np.take_along_axis(values, best, axis=1)
    return found


def nearest_piece(
    texts: Texts, idf: SomeGrams, damped: FloatArray, place: SomeGrams, postings: Postings, k: int
) -> tuple[IntArray, FloatArray]:
    """The nearest texts of a range for each text of a piece, (n, k), counted from its first, and the products."""
    found = np.full((len(texts), k), -1, dtype=np.int32)
    products = np.full((len(texts), k), -1, dtype=np.float32)
    held = (fixed(postings.ptr), fixed(postings.texts), fixed(postings.often), fixed(postings.lengths))
    tables = (idf.table(), fixed(damped), place.table(), *held)
    nearest(texts.symbols, texts.ptr, 0, len(texts), *tables, found, products)
    return found, products


def cosines_in_pieces(
    sides: tuple[Texts, Texts],
    rows: tuple[IntArray, IntArray],
    idf: FloatArray,
    damped: FloatArray,
    lengths: tuple[FloatArray, FloatArray],
    pool: WorkerPool,
) -> FloatArray:
    """The cosine of each pair of texts, (p,); `rows` are those of both sides, (p,) each."""
    cosines = np.zeros(len(rows[0]), dtype=np.float32)
    weights = pool.share(SomeGrams.of(idf))
    ranges = list(pieces(len(cosines), _step(len(cosines), pool, _FEWEST_PAIRS, _MOST_PAIRS)))

    def arguments() -> Iterator[tuple[Any, ...]]:
        for each in ranges:
            named, of = zip(*(np.unique(side[slice(*each)], return_inverse=True) for side in rows), strict=True)
            texts = tuple(side.take(here) for side, here in zip(sides, named, strict=True))
            yield texts, of, weights, damped, tuple(side[here] for side, here in zip(lengths, named, strict=True))

    for number, found in pool.run(cosines_piece, arguments()):
        cosines[slice(*ranges[number])] = found
    return cosines


def cosines_piece(
    sides: tuple[Texts, Texts],
    rows: tuple[IntArray, IntArray],
    idf: SomeGrams,
    damped: FloatArray,
    lengths: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """The cosine of each pair of a piece."""
    cosines = np.zeros(len(rows[0]), dtype=np.float32)
    texts = (sides[0].symbols, sides[0].ptr, sides[1].symbols, sides[1].ptr)
    others = (fixed(damped), fixed(lengths[0]), fixed(lengths[1]), fixed(rows[0]), fixed(rows[1]))
    pair_cosines(*texts, idf.table(), *others, 0, len(cosines), cosines)
    return cosines


def _ranges(texts: Texts, pool: WorkerPool) -> list[tuple[int, int]]:
    return list(pieces(len(texts), _step(len(texts), pool, _FEWEST_TEXTS, _MOST_TEXTS)))


def _step(count: int, pool: WorkerPool, fewest: int, most: int) -> int:
    """Rows in a piece."""
    return min(most, max(fewest, -(-count // (_EACH * pool.num_workers))))
