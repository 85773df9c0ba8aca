"""Find entities by name among millions of names, tolerating typing mistakes.

In: normalised names and the entities that have them. Out: the entities that a query may mean, with a similarity from 0
to 1. The idea: an equal name is found by its hash. Otherwise names that share rare words with the query are compared
with it by edit distance; a word that occurs in no name is replaced by the words that share most of its trigrams. The
number of names compared is limited, so a query takes about as long among millions of names as among thousands.
Cost: one pass over the names; some 100 bytes for each name.
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

_MAX_COMPARED = 300  # names compared with a query
_MAX_ROWS_OF_WORD = 5_000
_MAX_WORDS = 12
_MAX_COMPLETIONS, _MAX_COMPLETED_ROWS = 500, 4_000  # words with a given beginning, and their names
_MAX_WORDS_OF_TRIGRAM = 4_000
_MAX_WORDS_COMPARED = 60
_MAX_SIMILAR_WORDS = 6
_MIN_SIMILARITY = 0.6
_MAX_CHARS = 200


class TextRows:
    """An index of texts by hash. It does not keep the texts: the caller compares the texts of the rows found."""

    def __init__(self, texts: Iterable[str]) -> None:
        hashes = np.fromiter((hash(text) >> 1 for text in texts), np.int64)
        self._rows = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._rows]

    def of(self, text: str) -> list[int]:
        """The rows whose text has the hash of this text."""
        begin, end = span(self._hashes, hash(text) >> 1)
        rows: list[int] = self._rows[begin:end].tolist()
        return rows


class _Postings:
    """An inverted index: the rows that have a key. `keys_of_rows` gives the keys of the rows in order."""

    def __init__(self, keys_of_rows: Iterable[Iterable[str]]) -> None:
        numbers: dict[str, int] = {}
        entries: list[int] = []
        counts: list[int] = []
        for keys in keys_of_rows:
            keys_of_row = [numbers.setdefault(key, len(numbers)) for key in dict.fromkeys(keys)]
            entries += keys_of_row
            counts.append(len(keys_of_row))
        self.keys = sorted(numbers)
        rank = np.empty(len(numbers), dtype=np.int32)
        rank[[numbers[key] for key in self.keys]] = np.arange(len(numbers))
        rows = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        coordinates = (rank[np.array(entries, dtype=np.int64)], rows)
        shape = (len(numbers) + 1, max(1, len(counts)))
        self._matrix = sparse.coo_array((np.ones(len(entries), dtype=bool), coordinates), shape=shape).tocsr()

    def of(self, key: str) -> IntArray:
        """The rows that have a key."""
        index = bisect.bisect_left(self.keys, key)
        is_known = index < len(self.keys) and self.keys[index] == key
        return self._between(index, index + int(is_known))

    def begin_with(self, prefix: str) -> IntArray:
        """The rows that have a key with this beginning; only the first keys count where there are very many."""
        first = bisect.bisect_left(self.keys, prefix)
        last = bisect.bisect_left(self.keys, prefix + "\U0010ffff")
        return np.unique(self._between(first, min(last, first + _MAX_COMPLETIONS)))

    def _between(self, first: int, last: int) -> IntArray:
        rows: IntArray = self._matrix.indices[self._matrix.indptr[first] : self._matrix.indptr[last]]
        return rows


class NameIndex:
    """An index of the names of entities; an entity may have several names."""

    def __init__(self, names: Sequence[str], owners: IntArray) -> None:
        self._names, self._owners = names, owners
        self._rows_by_name = TextRows(names)
        self._words = _Postings(name.split()[:_MAX_WORDS] for name in names)
        self._words_by_trigram = _Postings(map(_trigrams, self._words.keys))

    def __len__(self) -> int:
        return len(self._names)

    def search(self, query: str, maximum: int = 10) -> list[tuple[int, float]]:
        """Find the entities with the most similar names, best first, with the similarity of their best name."""
        wanted = _plain(query)
        if not wanted:
            return []
        best: dict[int, float] = {}
        for row in self._candidate_rows(wanted):
            name = self._names[row]
            similarity = 1.0 if name == wanted else 0.99 * fuzz.token_sort_ratio(wanted, name) / 100
            owner = int(self._owners[row])
            best[owner] = max(best.get(owner, 0.0), similarity)
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:maximum]

    def begin_with(self, prefix: str, maximum: int = 10) -> list[int]:
        """Find entities with a name that has all words, the last word as a beginning; shortest names first."""
        words = _plain(prefix).split()
        if not words:
            return []
        rows = self._words.begin_with(words[-1])
        for word in words[:-1]:
            rows = np.intersect1d(rows, self._words.of(word), assume_unique=True)
        names = sorted(rows[:_MAX_COMPLETED_ROWS].tolist(), key=lambda row: (len(self._names[row]), self._names[row]))
        return list(dict.fromkeys(int(self._owners[row]) for row in names))[:maximum]

    def _candidate_rows(self, wanted: str) -> list[int]:
        """Choose rows of names to compare: equal names, or else names that share the most and the rarest words."""
        exact = [row for row in self._rows_by_name.of(wanted) if self._names[row] == wanted]
        if exact:
            return exact
        groups = []
        for word in list(dict.fromkeys(wanted.split()))[:_MAX_WORDS]:
            known = self._words.of(word)
            groups += [known] if len(known) else [self._words.of(similar) for similar in self._similar_words(word)]
        rows = [np.empty(0, dtype=np.int32)]
        weights = [np.empty(0)]
        for part in sorted(groups, key=len):
            if len(part) > _MAX_ROWS_OF_WORD and len(rows) > 1:
                break  # very frequent words add nothing once rarer words have given rows
            rows.append(part[:_MAX_ROWS_OF_WORD])
            weights.append(np.full(len(rows[-1]), 1.0 / (1.0 + np.log1p(len(part)))))
        distinct_rows, inverse = np.unique(np.concatenate(rows), return_inverse=True)
        sums = np.bincount(inverse, weights=np.concatenate(weights))
        best: list[int] = distinct_rows[np.argsort(-sums, kind="stable")[:_MAX_COMPARED]].tolist()
        return best

    def _similar_words(self, word: str) -> list[str]:
        """Find words of names with a similar spelling."""
        numbers = [self._words_by_trigram.of(trigram)[:_MAX_WORDS_OF_TRIGRAM] for trigram in _trigrams(word)]
        distinct, counts = np.unique(np.concatenate(numbers), return_counts=True)
        likely = distinct[np.argsort(-counts, kind="stable")][:_MAX_WORDS_COMPARED].tolist()
        candidates = [self._words.keys[number] for number in likely]
        ranked = sorted((-Indel.normalized_similarity(word, candidate), candidate) for candidate in candidates)
        return [candidate for distance, candidate in ranked if -distance >= _MIN_SIMILARITY][:_MAX_SIMILAR_WORDS]


def _plain(text: str) -> str:
    return next(iter(normalise([text[:_MAX_CHARS]])), "")


def _trigrams(word: str) -> list[str]:
    framed = f" {word} "
    return list(dict.fromkeys(framed[start : start + 3] for start in range(len(framed) - 2)))
