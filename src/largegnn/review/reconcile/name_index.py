"""Names to entities, quickly and with mistakes in them: an index of words, and of the letters in the words.

In: normalised names and whose they are. Out: the entities that a query may mean, with a similarity from 0 to 1.
The idea: the very name is found by its hash. Otherwise names that share a rare word with the query are compared with it
letter by letter; a word that no name has is replaced by the words that share most of its three-letter pieces. Only a
bounded number of names is compared, so a query takes about as long among millions as among thousands.
Cost: one pass over the names; some 100 bytes for each.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from rapidfuzz import fuzz
from rapidfuzz.distance import Indel

from largegnn.artifacts import IntArray
from largegnn.literals.normalise import normalise
from largegnn.review.labels import span

__all__ = ["NameIndex"]

_MOST_COMPARED = 300
_MOST_FREQUENT = 5_000
_MOST_WORDS = 12
_NEAR_WORDS = 6
_MOST_PIECES = 4_000
_LONGEST = 200


class NameIndex:
    """The names of some entities; one entity may have several."""

    def __init__(self, names: Sequence[str], owners: IntArray) -> None:
        self._names, self._owners = names, owners
        words: dict[str, int] = {}
        of_name, ends = [], []
        for name in names:
            found = dict.fromkeys(name.split()[:_MOST_WORDS])
            of_name += [words.setdefault(word, len(words)) for word in found]
            ends.append(len(of_name))
        order = sorted(words)
        rank = np.empty(len(words), dtype=np.int64)
        rank[[words[word] for word in order]] = np.arange(len(words))
        self._words = order
        numbers = rank[np.array(of_name, dtype=np.int64)] if of_name else np.empty(0, dtype=np.int64)
        rows = np.repeat(np.arange(len(names)), np.diff([0, *ends]))
        self._word_ptr, self._word_rows = _grouped(numbers, rows, len(order))
        hashes = np.fromiter((hash(name) >> 1 for name in names), np.int64, len(names))
        self._hash_rows = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._hash_rows]
        self._pieces, self._piece_ptr, self._piece_words = _index_pieces(order)

    def __len__(self) -> int:
        return len(self._names)

    def search(self, query: str, most: int = 10) -> list[tuple[int, float]]:
        """The entities whose names come nearest, best first, with the similarity of the nearest name of each."""
        wanted = _plain(query)
        if not wanted:
            return []
        rows = self._rows(wanted)
        best: dict[int, float] = {}
        for row in rows:
            name = self._names[row]
            alike = 1.0 if name == wanted else 0.99 * fuzz.token_sort_ratio(wanted, name) / 100
            owner = int(self._owners[row])
            best[owner] = max(best.get(owner, 0.0), alike)
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:most]

    def begin_with(self, prefix: str, most: int = 10) -> list[int]:
        """Entities with a name in which every word is there and the last one begins as given, shortest names first."""
        words = _plain(prefix).split()
        if not words:
            return []
        first = bisect.bisect_left(self._words, words[-1])
        last = bisect.bisect_left(self._words, words[-1] + "\U0010ffff")
        begin, end = int(self._word_ptr[first]), int(self._word_ptr[min(last, first + 500)])
        rows = np.unique(self._word_rows[begin:end])
        for word in words[:-1]:
            rows = np.intersect1d(rows, self._rows_of(word), assume_unique=True)
        names = sorted(rows[:_MOST_PIECES].tolist(), key=lambda row: (len(self._names[row]), self._names[row]))
        return list(dict.fromkeys(int(self._owners[row]) for row in names))[:most]

    def _rows(self, wanted: str) -> list[int]:
        """Names worth comparing: this very name, or those that share the most and the rarest words."""
        begin, end = span(self._hashes, hash(wanted) >> 1)
        exact = [row for row in self._hash_rows[begin:end].tolist() if self._names[row] == wanted]
        if exact:
            return exact
        groups = []
        for word in list(dict.fromkeys(wanted.split()))[:_MOST_WORDS]:
            known = self._rows_of(word)
            groups += [known] if len(known) else [self._rows_of(near) for near in self._near(word)]
        rows: list[IntArray] = []
        gains: list[npt.NDArray[np.float64]] = []
        for part in sorted(groups, key=len):
            if len(part) > _MOST_FREQUENT and rows:
                break  # words so frequent tell nothing beside others
            rows.append(part[:_MOST_FREQUENT])
            gains.append(np.full(len(rows[-1]), 1.0 / (1.0 + np.log1p(len(part)))))
        if not rows:
            return []
        found, places = np.unique(np.concatenate(rows), return_inverse=True)
        weights = np.bincount(places, weights=np.concatenate(gains))
        best: list[int] = found[np.argsort(-weights, kind="stable")[:_MOST_COMPARED]].tolist()
        return best

    def _rows_of(self, word: str) -> IntArray:
        place = bisect.bisect_left(self._words, word)
        if place == len(self._words) or self._words[place] != word:
            return self._word_rows[:0]
        return self._word_rows[self._word_ptr[place] : self._word_ptr[place + 1]]

    def _near(self, word: str) -> list[str]:
        """Words of names that are spelled nearly like this one."""
        found = [self._words_with(piece) for piece in _pieces(word)]
        known = [part for part in found if len(part)]
        if not known:
            return []
        numbers, counts = np.unique(np.concatenate(known), return_counts=True)
        likely = numbers[np.argsort(-counts, kind="stable")][:60].tolist()
        rated = [(Indel.normalized_similarity(word, self._words[number]), number) for number in likely]
        best = sorted((-alike, number) for alike, number in rated if alike >= 0.6)
        return [self._words[number] for _, number in best[:_NEAR_WORDS]]

    def _words_with(self, piece: str) -> IntArray:
        place = bisect.bisect_left(self._pieces, piece)
        if place == len(self._pieces) or self._pieces[place] != piece:
            return self._piece_words[:0]
        return self._piece_words[self._piece_ptr[place] : self._piece_ptr[place + 1]][:_MOST_PIECES]


def _plain(text: str) -> str:
    return next(iter(normalise([text[:_LONGEST]])), "")


def _pieces(word: str) -> list[str]:
    framed = f" {word} "
    return list(dict.fromkeys(framed[at : at + 3] for at in range(len(framed) - 2)))


def _index_pieces(words: Iterable[str]) -> tuple[list[str], IntArray, IntArray]:
    """Three-letter pieces, sorted, and which words have each."""
    known: dict[str, int] = {}
    pieces, owners = [], []
    for number, word in enumerate(words):
        for piece in _pieces(word):
            pieces.append(known.setdefault(piece, len(known)))
            owners.append(number)
    order = sorted(known)
    rank = np.empty(len(known), dtype=np.int64)
    rank[[known[piece] for piece in order]] = np.arange(len(known))
    numbers = rank[np.array(pieces, dtype=np.int64)] if pieces else np.empty(0, dtype=np.int64)
    return order, *_grouped(numbers, np.array(owners, dtype=np.int64), len(order))


def _grouped(keys: IntArray, values: IntArray, num_keys: int) -> tuple[IntArray, IntArray]:
    """Values (n,) by their keys (n,): offsets (num_keys + 1,), and the values in that order."""
    order = np.argsort(keys, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=num_keys))])
    return ptr, values[order].astype(np.int32)
