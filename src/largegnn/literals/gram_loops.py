"""Count, index and compare the character n-grams of texts, in compiled loops.

In: texts as symbols in one array (`Texts` in `grams`). Out: counts of grams, lengths, nearest texts, cosines.
A gram of 2 to 4 symbols is a number below `NUM_GRAMS`. The distinct grams of one text are counted in a small hash table
that fits the processor's first-level cache, so that no text is sorted and no matrix is stored.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import FloatArray, IntArray
from largegnn.machine.compiled import compiled

__all__ = ["NUM_GRAMS", "count_documents", "fill_postings", "nearest", "pair_cosines", "text_lengths"]

_FIRST_TRIGRAM = 1 << 12  # grams of two symbols are below it
_FIRST_FOURGRAM = (1 << 12) + (1 << 18)
NUM_GRAMS = _FIRST_FOURGRAM + (1 << 24)


@compiled
def _slot(table: IntArray, key: int) -> int:
    """The slot of a key in a hash table, or the empty slot (-1) for it; the size of the table is a power of 2."""
    mask = len(table) - 1
    slot = (((key * 0x9E3779B1) & 0xFFFFFFFF) * len(table)) >> 32
    while table[slot] >= 0 and table[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def _gram(symbols: IntArray, start: int, length: int) -> int:
    """The number of the gram of `length` symbols that begins at `start`."""
    gram: int = (np.int64(symbols[start]) << 6) | np.int64(symbols[start + 1])  # type: ignore[assignment]
    if length == 2:
        return gram
    gram = (gram << 6) | symbols[start + 2]
    if length == 3:
        return gram + _FIRST_TRIGRAM
    gram = (gram << 6) | symbols[start + 3]
    return gram + _FIRST_FOURGRAM


@compiled
def _collect(symbols: IntArray, start: int, stop: int, table: IntArray, counts: IntArray, slots: IntArray) -> int:
    """Count the grams of a text; returns the number of distinct grams.

    A gram is written into the empty `table`, its count at the same slot of `counts`; the used slots go into `slots`.
    """
    if stop - start <= 2:  # only the two spaces around an empty text, by which all empty texts would be similar
        return 0
    num_grams = 0
    for length in range(2, 5):
        for position in range(start, stop - length + 1):
            gram = _gram(symbols, position, length)
            slot = _slot(table, gram)
            if table[slot] < 0:
                table[slot] = gram
                counts[slot] = 0
                slots[num_grams] = slot
                num_grams += 1
            counts[slot] += 1
    return num_grams


@compiled
def _empty_table(ptr: IntArray, texts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """An empty hash table for the grams of any of these texts, at most half full, with arrays for counts and slots."""
    longest = 2
    for text in texts:
        longest = max(longest, ptr[text + 1] - ptr[text])
    size = 64
    while size < 6 * longest:
        size *= 2
    return np.full(size, -1, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)


@compiled
def count_documents(symbols: IntArray, ptr: IntArray, first: int, last: int, documents: IntArray) -> None:
    """Add to `documents` (NUM_GRAMS,), for each gram, the number of texts from `first` to `last` that contain it."""
    table, counts, slots = _empty_table(ptr, np.arange(first, last))
    for text in range(first, last):
        num_grams = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        for index in range(num_grams):
            documents[table[slots[index]]] += 1
            table[slots[index]] = -1


@compiled
def text_lengths(
    symbols: IntArray, ptr: IntArray, first: int, last: int, idf: FloatArray, count_weights: FloatArray
) -> FloatArray:
    """The length of the vector of each text from `first` to `last`; `count_weights` (c,) is the weight of a count."""
    lengths = np.zeros(last - first, np.float32)
    table, counts, slots = _empty_table(ptr, np.arange(first, last))
    for text in range(first, last):
        num_grams = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        total = 0.0
        for index in range(num_grams):
            slot = slots[index]
            weight = np.float64(idf[table[slot]]) * count_weights[min(counts[slot], len(count_weights) - 1)]
            total += weight * weight
            table[slot] = -1
        lengths[text - first] = np.sqrt(total)
    return lengths


@compiled
def fill_postings(
    symbols: IntArray,
    ptr: IntArray,
    row_of_gram: IntArray,
    row_ends: IntArray,
    posted_texts: IntArray,
    posted_counts: IntArray,
) -> None:
    """Write each text, and the count of the gram in it, into the rows of its grams; row 0 stands for no row.

    `row_ends` (g,) is the position in `posted_texts` and `posted_counts` for the next text of a row; it is changed.
    """
    table, counts, slots = _empty_table(ptr, np.arange(len(ptr) - 1))
    for text in range(len(ptr) - 1):
        num_grams = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        for index in range(num_grams):
            slot = slots[index]
            row = row_of_gram[table[slot]]
            if row > 0:
                posted_texts[row_ends[row]] = text
                posted_counts[row_ends[row]] = min(counts[slot], 255)
                row_ends[row] += 1
            table[slot] = -1


@compiled
def nearest(
    symbols: IntArray,
    ptr: IntArray,
    first: int,
    last: int,
    idf: FloatArray,
    count_weights: FloatArray,
    row_of_gram: IntArray,
    posting_ptr: IntArray,
    posted_texts: IntArray,
    posted_counts: IntArray,
    lengths: FloatArray,
    k: int,
) -> tuple[IntArray, FloatArray]:
    """The k texts of the postings nearest to each text from `first` to `last`: texts (n, k), -1 for none, and products.

    A product is the cosine times the length of the vector of the text itself; of equal products the first text wins.
    """
    nearest_texts = np.full((last - first, k), -1, np.int32)
    nearest_products = np.full((last - first, k), -1, np.float32)
    table, counts, slots = _empty_table(ptr, np.arange(first, last))
    # A sum for every text of the postings: a hash table of the texts with a common gram would not be faster.
    sums, touched = np.zeros(len(lengths), np.float32), np.empty(len(lengths), np.int32)
    best_products, best_texts = np.empty(k, np.float32), np.empty(k, np.int32)
    for text in range(first, last):
        num_grams = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        num_touched = 0
        for index in range(num_grams):
            slot = slots[index]
            row = row_of_gram[table[slot]]
            if row > 0:
                # The weight of the gram in both vectors has its idf as a factor.
                weight = count_weights[min(counts[slot], len(count_weights) - 1)] * idf[table[slot]] * idf[table[slot]]
                for posting in range(posting_ptr[row], posting_ptr[row + 1]):
                    candidate = posted_texts[posting]
                    if sums[candidate] == 0:
                        touched[num_touched] = candidate
                        num_touched += 1
                    sums[candidate] += weight * count_weights[posted_counts[posting]]
            table[slot] = -1
        num_best = 0
        for index in range(num_touched):
            candidate = touched[index]
            product = sums[candidate] / lengths[candidate]
            sums[candidate] = 0
            worst = best_products[k - 1]
            if num_best == k and (product < worst or (product == worst and candidate > best_texts[k - 1])):
                continue
            # Insertion into the sorted list of the best.
            rank = num_best if num_best < k else k - 1
            num_best = min(num_best + 1, k)
            while rank > 0 and (
                product > best_products[rank - 1]
                or (product == best_products[rank - 1] and candidate < best_texts[rank - 1])
            ):
                best_products[rank], best_texts[rank] = best_products[rank - 1], best_texts[rank - 1]
                rank -= 1
            best_products[rank], best_texts[rank] = product, candidate
        nearest_texts[text - first, :num_best] = best_texts[:num_best]
        nearest_products[text - first, :num_best] = best_products[:num_best]
    return nearest_texts, nearest_products


@compiled
def pair_cosines(
    symbols: IntArray,
    ptr: IntArray,
    right_symbols: IntArray,
    right_ptr: IntArray,
    idf: FloatArray,
    count_weights: FloatArray,
    lengths: FloatArray,
    right_lengths: FloatArray,
    left: IntArray,
    right: IntArray,
) -> FloatArray:
    """The cosine of each pair of texts (p,); fastest where the pairs of a left text follow each other."""
    cosines = np.zeros(len(left), np.float32)
    table, counts, slots = _empty_table(ptr, left)
    right_counts, touched = np.zeros(len(table), np.int32), np.empty(len(table), np.int32)
    max_count = len(count_weights) - 1
    num_grams, in_table = 0, -1  # the left text whose grams are in the table
    for pair in range(len(left)):
        if left[pair] != in_table:
            for index in range(num_grams):
                table[slots[index]] = -1
            in_table = left[pair]
            num_grams = _collect(symbols, ptr[in_table], ptr[in_table + 1], table, counts, slots)
        start, stop = right_ptr[right[pair]], right_ptr[right[pair] + 1]
        total, num_touched = 0.0, 0
        if num_grams > 0 and stop - start > 2:
            for length in range(2, 5):
                for position in range(start, stop - length + 1):
                    slot = _slot(table, _gram(right_symbols, position, length))
                    if table[slot] >= 0:
                        if right_counts[slot] == 0:
                            touched[num_touched] = slot
                            num_touched += 1
                        right_counts[slot] += 1
            for index in range(num_touched):
                slot = touched[index]
                rarity = np.float64(idf[table[slot]])
                left_weight = count_weights[min(counts[slot], max_count)]
                total += rarity * rarity * left_weight * count_weights[min(right_counts[slot], max_count)]
                right_counts[slot] = 0
            total /= np.float64(lengths[in_table]) * right_lengths[right[pair]]
        cosines[pair] = total
    return cosines
