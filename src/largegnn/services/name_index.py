"""Find entities by name, with typing mistakes, among millions of names.

In: normalised names and their owners. Out: the entities that a query may mean, with a similarity from 0 to 1.
The idea: an equal name is found by its hash. Otherwise names that share rare words with the query are compared with it
letter by letter; a word that is in no name is replaced by the words that share most of its three-letter pieces. The
number of names compared is limited, so that a query takes about as long among millions as among thousands.
Cost: one pass over the names; some 100 bytes for each.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

import numpy as np
from rapidfuzz import fuzz
from rapidfuzz.distance import Indel
from scipy import sparse

from largegnn.artifacts import IntArray
from largegnn.literals.normalise import normalise
from largegnn.review.lookup import span

__all__ = ["NameIndex", "TextRows"]

_MOST_COMPARED = 300
_MOST_FREQUENT = 5_000
_MOST_WORDS = 12
_MOST_ENDINGS = 500
_NEAR_WORDS, _LEAST_SIMILAR = 6, 0.6
_MOST_PIECES = 4_000
_LONGEST = 200


class TextRows:
    """The rows of texts by hash. The texts are not kept: a caller compares those of the rows found."""

    def __init__(self, texts: Iterable[str]) -> None:
        hashes = np.fromiter((hash(text) >> 1 for text in texts), np.int64)
        self._rows = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._rows]

    def of(self, text: str) -> list[int]:
        """The rows of texts with the hash of this one."""
        begin, end = span(self._hashes, hash(text) >> 1)
        rows: list[int] = self._rows[begin:end].tolist()
        return rows


class _Postings:
    """The rows that have a key; `keys_of_rows` gives the keys of each row."""

    def __init__(self, keys_of_rows: Iterable[Iterable[str]]) -> None:
        numbers: dict[str, int] = {}
        entries: list[int] = []
        counts: list[int] = []
        for keys in keys_of_rows:
            found = [numbers.setdefault(key, len(numbers)) for key in dict.fromkeys(keys)]
            entries += found
            counts.append(len(found))
        self.keys = sorted(numbers)
        rank = np.empty(len(numbers), dtype=np.int32)
        rank[[numbers[key] for key in self.keys]] = np.arange(len(numbers))
        rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        ends = (rank[np.array(entries, dtype=np.int64)], rows)
        shape = (len(numbers) + 1, max(1, len(counts)))
        self._matrix = sparse.coo_array((np.ones(len(entries), dtype=bool), ends), shape=shape).tocsr()

    def of(self, key: str) -> IntArray:
        """The rows that have a key."""
        place = bisect.bisect_left(self.keys, key)
        is_known = place < len(self.keys) and self.keys[place] == key
        return self._between(place, place + int(is_known))

    def begin_with(self, prefix: str) -> IntArray:
        """The rows that have a key with this beginning; of the first keys alone, where there are very many."""
        first = bisect.bisect_left(self.keys, prefix)
        last = bisect.bisect_left(self.keys, prefix + "\U0010ffff")
        return np.unique(self._between(first, min(last, first + _MOST_ENDINGS)))

    def _between(self, first: int, last: int) -> IntArray:
        rows: IntArray = self._matrix.indices[self._matrix.indptr[first] : self._matrix.indptr[last]]
        return rows


class NameIndex:
    """The names of some entities; an entity may have several."""

    def __init__(self, names: Sequence[str], owners: IntArray) -> None:
        self._names, self._owners = names, owners
        self._rows_by_name = TextRows(names)
        self._words = _Postings(name.split()[:_MOST_WORDS] for name in names)
        self._pieces = _Postings(map(_pieces, self._words.keys))

    def __len__(self) -> int:
        return len(self._names)

    def search(self, query: str, most: int = 10) -> list[tuple[int, float]]:
        """The entities with the most similar names, best first, with the similarity of the best name of each."""
        wanted = _plain(query)
        if not wanted:
            return []
        best: dict[int, float] = {}
        for row in self._candidate_rows(wanted):
            name = self._names[row]
            similarity = 1.0 if name == wanted else 0.99 * fuzz.token_sort_ratio(wanted, name) / 100
            owner = int(self._owners[row])
            best[owner] = max(best.get(owner, 0.0), similarity)
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:most]

    def begin_with(self, prefix: str, most: int = 10) -> list[int]:
        """Entities with a name that has every word, the last word as a beginning; shortest names first."""
        words = _plain(prefix).split()
        if not words:
            return []
        rows = self._words.begin_with(words[-1])
        for word in words[:-1]:
            rows = np.intersect1d(rows, self._words.of(word), assume_unique=True)
        names = sorted(rows[:_MOST_PIECES].tolist(), key=lambda row: (len(self._names[row]), self._names[row]))
        return list(dict.fromkeys(int(self._owners[row]) for row in names))[:most]

    def _candidate_rows(self, wanted: str) -> list[int]:
        """Names to compare: equal ones, or those that share the most and the rarest words."""
        exact = [row for row in self._rows_by_name.of(wanted) if self._names[row] == wanted]
        if exact:
            return exact
        groups = []
        for word in list(dict.fromkeys(wanted.split()))[:_MOST_WORDS]:
            known = self._words.of(word)
            groups += [known] if len(known) else [self._words.of(near) for near in self._near_words(word)]
        rows, gains = [np.empty(0, dtype=np.int32)], [np.empty(0)]
        for part in sorted(groups, key=len):
            if len(part) > _MOST_FREQUENT and len(rows) > 1:
                break  # such frequent words add nothing to rarer ones
            rows.append(part[:_MOST_FREQUENT])
            gains.append(np.full(len(rows[-1]), 1.0 / (1.0 + np.log1p(len(part)))))
        found, places = np.unique(np.concatenate(rows), return_inverse=True)
        weights = np.bincount(places, weights=np.concatenate(gains))
        best: list[int] = found[np.argsort(-weights, kind="stable")[:_MOST_COMPARED]].tolist()
        return best

    def _near_words(self, word: str) -> list[str]:
        """Words of names with a similar spelling."""
        found = np.concatenate([self._pieces.of(piece)[:_MOST_PIECES] for piece in _pieces(word)])
        numbers, counts = np.unique(found, return_counts=True)
        likely = [self._words.keys[number] for number in numbers[np.argsort(-counts, kind="stable")][:60].tolist()]
        rated = sorted((-Indel.normalized_similarity(word, other), other) for other in likely)
        return [other for distance, other in rated if -distance >= _LEAST_SIMILAR][:_NEAR_WORDS]


def _plain(text: str) -> str:
    return next(iter(normalise([text[:_LONGEST]])), "")


def _pieces(word: str) -> list[str]:
    framed = f" {word} "
    return list(dict.fromkeys(framed[at : at + 3] for at in range(len(framed) - 2)))
