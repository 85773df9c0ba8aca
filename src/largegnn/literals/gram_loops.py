"""Loop over the n-grams of texts, in compiled code.

In: texts as symbols end to end (`Texts` in `grams`). A gram of up to 4 symbols is a number below `NUM_GRAMS`; the
distinct grams of one text are found with a small hash table that fits the processor's first cache, so that no text is
sorted and no row of a matrix is kept.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import FloatArray, IntArray
from largegnn.machine.compiled import compiled

__all__ = ["NUM_GRAMS", "count_documents", "fill_postings", "nearest", "pair_cosines", "text_lengths"]

_TRIPLES = 1 << 12  # where grams of three symbols begin
_QUADRUPLES = (1 << 12) + (1 << 18)
NUM_GRAMS = _QUADRUPLES + (1 << 24)


@compiled
def _slot(table: IntArray, key: int) -> int:
    """The place of a key in a hash table, or the free place (-1) where it belongs."""
    mask = len(table) - 1
    at = (((key * 0x9E3779B1) & 0xFFFFFFFF) * len(table)) >> 32
    while table[at] >= 0 and table[at] != key:
        at = (at + 1) & mask
    return at


@compiled
def _gram(symbols: IntArray, at: int, length: int) -> int:
    """The number of the gram that begins here."""
    gram: int = (np.int64(symbols[at]) << 6) | np.int64(symbols[at + 1])  # type: ignore[assignment]
    if length == 2:
        return gram
    gram = (gram << 6) | symbols[at + 2]
    if length == 3:
        return gram + _TRIPLES
    gram = (gram << 6) | symbols[at + 3]
    return gram + _QUADRUPLES


@compiled
def _collect(symbols: IntArray, start: int, stop: int, table: IntArray, counts: IntArray, slots: IntArray) -> int:
    """Write the distinct grams of a text into an empty table, their counts, and their places; returns their number."""
    if stop - start <= 2:  # nothing but the spaces around it, which would make all empty texts alike
        return 0
    found = 0
    for length in range(2, 5):
        for at in range(start, stop - length + 1):
            gram = _gram(symbols, at, length)
            slot = _slot(table, gram)
            if table[slot] < 0:
                table[slot] = gram
                counts[slot] = 0
                slots[found] = slot
                found += 1
            counts[slot] += 1
    return found


@compiled
def _empty_table(ptr: IntArray, texts: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """A table for the grams of any of these texts, at most half full, with room for counts and for places."""
    longest = 2
    for text in texts:
        longest = max(longest, ptr[text + 1] - ptr[text])
    size = 64
    while size < 6 * longest:
        size *= 2
    return np.full(size, -1, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)


@compiled
def count_documents(symbols: IntArray, ptr: IntArray, first: int, last: int, documents: IntArray) -> None:
    """Add the texts from `first` to `last` to the number of texts that each gram (NUM_GRAMS,) occurs in."""
    table, counts, slots = _empty_table(ptr, np.arange(first, last))
    for text in range(first, last):
        found = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        for place in range(found):
            documents[table[slots[place]]] += 1
            table[slots[place]] = -1


@compiled
def text_lengths(
    symbols: IntArray, ptr: IntArray, first: int, last: int, idf: FloatArray, damped: FloatArray
) -> FloatArray:
    """The length of the vector of each text from `first` to `last`; `damped` (c,) is the weight of a count."""
    lengths = np.zeros(last - first, np.float32)
    table, counts, slots = _empty_table(ptr, np.arange(first, last))
    for text in range(first, last):
        found = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        total = 0.0
        for place in range(found):
            slot = slots[place]
            weight = np.float64(idf[table[slot]]) * damped[min(counts[slot], len(damped) - 1)]
            total += weight * weight
            table[slot] = -1
        lengths[text - first] = np.sqrt(total)
    return lengths


@compiled
def fill_postings(
    symbols: IntArray, ptr: IntArray, place_of_gram: IntArray, ends: IntArray, texts: IntArray, often: IntArray
) -> None:
    """Note each text with each of its grams that has a place; `ends` (g,) is where the next one of a gram goes."""
    table, counts, slots = _empty_table(ptr, np.arange(len(ptr) - 1))
    for text in range(len(ptr) - 1):
        found = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        for place in range(found):
            slot = slots[place]
            gram = place_of_gram[table[slot]]
            if gram > 0:
                texts[ends[gram]] = text
                often[ends[gram]] = min(counts[slot], 255)
                ends[gram] += 1
            table[slot] = -1


@compiled
def nearest(
    symbols: IntArray,
    ptr: IntArray,
    first: int,
    last: int,
    idf: FloatArray,
    damped: FloatArray,
    place_of_gram: IntArray,
    posting_ptr: IntArray,
    texts: IntArray,
    often: IntArray,
    lengths: FloatArray,
    k: int,
) -> tuple[IntArray, FloatArray]:
    """The texts of the other side with the highest products with each text, ties to the first; (n, k), -1 for none.

    The products (n, k) are cosines but for the length of the text itself.
    """
    found_texts, products = np.full((last - first, k), -1, np.int32), np.full((last - first, k), -1, np.float32)
    table, counts, slots = _empty_table(ptr, np.arange(first, last))
    # A sum for every text of the other side: a table of those met so far would be smaller, and is no faster.
    sums, used = np.zeros(len(lengths), np.float32), np.empty(len(lengths), np.int32)
    best, best_text = np.empty(k, np.float32), np.empty(k, np.int32)
    for text in range(first, last):
        found = _collect(symbols, ptr[text], ptr[text + 1], table, counts, slots)
        num_used = 0
        for place in range(found):
            slot = slots[place]
            gram = place_of_gram[table[slot]]
            if gram > 0:
                # Both texts have the gram, so its rarity counts twice.
                weight = damped[min(counts[slot], len(damped) - 1)] * idf[table[slot]] * idf[table[slot]]
                for posting in range(posting_ptr[gram], posting_ptr[gram + 1]):
                    other = texts[posting]
                    if sums[other] == 0:
                        used[num_used] = other
                        num_used += 1
                    sums[other] += weight * damped[often[posting]]
            table[slot] = -1
        held = 0
        for place in range(num_used):
            other = used[place]
            product = sums[other] / lengths[other]
            sums[other] = 0
            if held == k and (product < best[k - 1] or (product == best[k - 1] and other > best_text[k - 1])):
                continue
            rank = held if held < k else k - 1
            held = min(held + 1, k)
            while rank > 0 and (
                product > best[rank - 1] or (product == best[rank - 1] and other < best_text[rank - 1])
            ):
                best[rank], best_text[rank] = best[rank - 1], best_text[rank - 1]
                rank -= 1
            best[rank], best_text[rank] = product, other
        for rank in range(held):
            found_texts[text - first, rank] = best_text[rank]
            products[text - first, rank] = best[rank]
    return found_texts, products


@compiled
def pair_cosines(
    symbols: IntArray,
    ptr: IntArray,
    other_symbols: IntArray,
    other_ptr: IntArray,
    idf: FloatArray,
    damped: FloatArray,
    lengths: FloatArray,
    other_lengths: FloatArray,
    left: IntArray,
    right: IntArray,
) -> FloatArray:
    """The cosine of each pair of texts (p,); fastest where the pairs of a left text follow each other."""
    cosines = np.zeros(len(left), np.float32)
    table, counts, slots = _empty_table(ptr, left)
    shared, touched = np.zeros(len(table), np.int32), np.empty(len(table), np.int32)
    found, present = 0, -1
    for pair in range(len(left)):
        if left[pair] != present:
            for place in range(found):
                table[slots[place]] = -1
            present = left[pair]
            found = _collect(symbols, ptr[present], ptr[present + 1], table, counts, slots)
        start, stop = other_ptr[right[pair]], other_ptr[right[pair] + 1]
        total, num_touched = 0.0, 0
        if found > 0 and stop - start > 2:
            for length in range(2, 5):
                for at in range(start, stop - length + 1):
                    slot = _slot(table, _gram(other_symbols, at, length))
                    if table[slot] >= 0:
                        if shared[slot] == 0:
                            touched[num_touched] = slot
                            num_touched += 1
                        shared[slot] += 1
            for place in range(num_touched):
                slot = touched[place]
                rarity = np.float64(idf[table[slot]])
                most = len(damped) - 1
                total += rarity * rarity * damped[min(counts[slot], most)] * damped[min(shared[slot], most)]
                shared[slot] = 0
            total /= np.float64(lengths[present]) * other_lengths[right[pair]]
        cosines[pair] = total
    return cosines
