"""Texts as sparse vectors of character n-grams, weighted by rarity (TF-IDF), and the nearest texts of the other side.

In: normalised texts (lower-case ASCII letters, digits, spaces). Out: rows of length 1, one for each text; and for each
text its k nearest of the other side by cosine.
The idea: 37 symbols take 6 bits, so a gram of up to 4 symbols is a number below 2^24 and needs neither a hash nor a
dictionary; grams of different lengths are told apart by an offset. A frequent gram costs the product of its counts on
both sides and says little: the most expensive ones are left out of the search, within a budget that is linear in the
texts, and the candidates are then scored with all grams.
Cost: linear in the characters, and in the texts for the search; memory about 12 bytes a gram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from largegnn.artifacts import FloatArray, IntArray

__all__ = ["GramSpace", "nearest_texts", "row_cosines"]

_LENGTHS = (2, 3, 4)
_BITS = 6
_OFFSETS = {2: 0, 3: 1 << 12, 4: (1 << 12) + (1 << 18)}
_SIZE = (1 << 12) + (1 << 18) + (1 << 24)
_PIECE = 1 << 17  # texts whose grams are listed at once
_WORK_PER_TEXT = 4_000  # products a text may cost in the search
_LEAST_WORK = 200_000_000  # small collections can afford more


@dataclass(frozen=True, eq=False)
class GramSpace:
    """Which grams there are in two collections of texts, and how much each says."""

    column_of_gram: IntArray
    idf: FloatArray
    costs: IntArray

    @classmethod
    def of(cls, left: Sequence[str], right: Sequence[str]) -> GramSpace:
        """The space of all grams of both sides."""
        counts = [_document_counts(texts) for texts in (left, right)]
        total = counts[0] + counts[1]
        grams = np.flatnonzero(total)
        column = np.full(_SIZE, -1, dtype=np.int32)
        column[grams] = np.arange(len(grams), dtype=np.int32)
        num_texts = len(left) + len(right)
        idf = (np.log((1 + num_texts) / (1 + total[grams])) + 1).astype(np.float32)
        return cls(column, idf, counts[0][grams].astype(np.int64) * counts[1][grams])

    def rows(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """The texts as rows of length 1, (n, grams) float32; a text without grams is a row of zeros."""
        parts = [self._piece(texts[start : start + _PIECE]) for start in range(0, len(texts), _PIECE)]
        if not parts:
            return sparse.csr_matrix(np.zeros((0, len(self.idf)), dtype=np.float32))
        return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr", dtype=np.float32)

    def affordable(self, num_texts: int) -> FloatArray:
        """Ones for the grams a search of so many texts may look at, zeros for the most expensive ones."""
        order = np.argsort(self.costs, kind="stable")
        spent = np.cumsum(self.costs[order])
        allowed = spent <= max(_WORK_PER_TEXT * num_texts, _LEAST_WORK)
        keep = np.zeros(len(self.costs), dtype=np.float32)
        keep[order[allowed]] = 1.0
        return keep

    def _piece(self, texts: Sequence[str]) -> sparse.csr_matrix:
        rows, grams, counts = _count_grams(texts)
        columns = self.column_of_gram[grams]
        known = columns >= 0
        rows, columns, counts = rows[known], columns[known], counts[known]
        weights = (1 + np.log(counts)).astype(np.float32) * self.idf[columns]
        lengths = np.sqrt(np.bincount(rows, weights.astype(np.float64) ** 2, minlength=len(texts)))
        weights /= np.maximum(lengths, 1e-12)[rows].astype(np.float32)
        ptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(texts)))])
        return sparse.csr_matrix((weights, columns, ptr), shape=(len(texts), len(self.idf)))


def nearest_texts(
    left: sparse.csr_matrix, right: sparse.csr_matrix, k: int, keep: FloatArray, threads: int = 1
) -> tuple[IntArray, IntArray]:
    """The k nearest of the right for each row of the left by the grams to `keep`: rows of both sides (p,)."""
    from sparse_dot_topn import sp_matmul_topn

    thin = (left @ sparse.diags_array(keep, format="csr", dtype=np.float32)).tocsr()
    thin.eliminate_zeros()
    found = sp_matmul_topn(thin, right.T.tocsr(), top_n=k, n_threads=threads, sort=False).tocoo()
    return found.row.astype(np.int64), found.col.astype(np.int64)


def row_cosines(
    left: sparse.csr_matrix, right: sparse.csr_matrix, left_rows: IntArray, right_rows: IntArray, piece: int = 1 << 18
) -> FloatArray:
    """The cosine of each pair of rows (p,)."""
    found = np.empty(len(left_rows), dtype=np.float32)
    for start in range(0, len(left_rows), piece):
        here = slice(start, start + piece)
        found[here] = np.asarray(left[left_rows[here]].multiply(right[right_rows[here]]).sum(axis=1)).ravel()
    return found


def _symbols(texts: Sequence[str]) -> tuple[IntArray, IntArray]:
    """All texts end to end, a space before and after each, as numbers below 37; and where each text begins."""
    joined = np.frombuffer(" ".join(["", *(f"{text} " for text in texts)]).encode("ascii"), dtype=np.uint8)
    table = np.zeros(256, dtype=np.uint8)
    table[ord("a") : ord("z") + 1] = np.arange(1, 27)
    table[ord("0") : ord("9") + 1] = np.arange(27, 37)
    sizes = np.fromiter((len(text) + 2 for text in texts), dtype=np.int64, count=len(texts))
    return table[joined], np.concatenate([[0], np.cumsum(sizes)])


def _count_grams(texts: Sequence[str]) -> tuple[IntArray, IntArray, IntArray]:
    """The grams of each text with their counts: rows, grams, counts, ascending by row and gram."""
    symbols, ptr = _symbols(texts)
    wide = symbols.astype(np.int64)
    row_of = np.repeat(np.arange(len(texts)), np.diff(ptr))
    is_empty = np.diff(ptr) == 2  # nothing but the spaces around it, which would make all empty texts alike
    keys = []
    for length in _LENGTHS:
        if len(wide) < length:
            continue
        gram = np.zeros(len(wide) - length + 1, dtype=np.int64)
        for step in range(length):
            gram = (gram << _BITS) | wide[step : len(wide) - length + 1 + step]
        inside = row_of[: len(gram)] == row_of[length - 1 : length - 1 + len(gram)]
        inside &= ~is_empty[row_of[: len(gram)]]
        keys.append((row_of[: len(gram)][inside] << 32) | (gram[inside] + _OFFSETS[length]))
    if not keys:
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    unique, counts = np.unique(np.concatenate(keys), return_counts=True)
    return unique >> 32, unique & 0xFFFFFFFF, counts


def _document_counts(texts: Sequence[str]) -> IntArray:
    """In how many texts each gram occurs, (grams,)."""
    counts = np.zeros(_SIZE, dtype=np.int64)
    for start in range(0, len(texts), _PIECE):
        counts += np.bincount(_count_grams(texts[start : start + _PIECE])[1], minlength=_SIZE)
    return counts
