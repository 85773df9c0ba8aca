"""Find candidate pairs by names and values, each with its literal evidence.

In: the texts of both sides. Out: a `CandidateGraph` with the columns `name` (the most similar pair of names), `text`
(all values as one text) and `neighbors` (the names of the neighbours), each a cosine of n-gram vectors.
The idea: pairs that share something rare are near each other among names or among texts; the k nearest of either side
by either view are candidates, equal names always.
Cost: linear in the texts (see `grams`); distinct names are compared once, however many entities have them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray
from largegnn.literals.encoders import nearest_meanings
from largegnn.literals.grams import GramSpace
from largegnn.literals.texts import EntityTexts
from largegnn.machine.progress import progress

__all__ = ["SideTexts", "literal_candidates"]

_PIECE = 1 << 16
_MOST_NAMESAKES = 50  # pairs that one pair of equal names may make on each side


@dataclass(frozen=True, eq=False)
class SideTexts:
    """The texts of a side and those of its neighbours, one for each of `texts.entities`."""

    texts: EntityTexts
    neighbors: list[str]


def literal_candidates(
    source: SideTexts, target: SideTexts, k: int, meanings: tuple[FloatArray, FloatArray] | None = None
) -> CandidateGraph:
    """The candidates of both sides with their evidence; no edges where either side has no text.

    `meanings` are vectors of length 1 for the entities of both sides, (n, d) each; they add the column `meaning`.
    """
    with progress("comparing names and values", 3, "views") as work:
        keys, name_keys, name_cosines = _by_names(source.texts, target.texts, k)
        work.advance()
        documents = GramSpace.of(source.texts.documents, target.texts.documents)
        rows = documents.nearest(k)
        keys = _distinct_keys(keys, _keys(source.texts.entities[rows[0]], target.texts.entities[rows[1]]))
        if meanings is not None:
            for rows in (nearest_meanings(*meanings, k), nearest_meanings(*meanings[::-1], k)[::-1]):
                keys = _distinct_keys(keys, _keys(source.texts.entities[rows[0]], target.texts.entities[rows[1]]))
        work.advance()
        sources, targets = keys >> 32, keys & 0xFFFFFFFF
        places = (
            np.searchsorted(source.texts.entities, sources),
            np.searchsorted(target.texts.entities, targets),
        )
        name = np.zeros(len(keys), dtype=np.float32)
        np.maximum.at(name, np.searchsorted(keys, name_keys), name_cosines)
        text = documents.cosines(*places)
        near = GramSpace.of(source.neighbors, target.neighbors).cosines(*places)
        work.advance()
    graph = CandidateGraph(sources, targets, {"name": name, "text": text, "neighbors": near})
    if meanings is None:
        return graph
    return graph.with_evidence(meaning=_products(meanings, *places))


def _products(vectors: tuple[FloatArray, FloatArray], left: IntArray, right: IntArray) -> FloatArray:
    """The products of pairs of rows (p,), at least zero."""
    found = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), _PIECE):
        here = slice(start, start + _PIECE)
        found[here] = np.einsum("pd,pd->p", vectors[0][left[here]], vectors[1][right[here]])
    return np.maximum(found, 0.0)


def _by_names(source: EntityTexts, target: EntityTexts, k: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Keys of the entity pairs with near names; and for each pair of names the key of its entities, and its cosine."""
    none = np.empty(0, dtype=np.int64)
    if not source.names or not target.names:
        return none, none, np.empty(0, dtype=np.float32)
    left, left_of = _distinct(source.names)
    right, right_of = _distinct(target.names)
    views = GramSpace.of(left, right)
    rows = views.nearest(k)
    # Equal names are candidates even if others are nearer.
    equal = {name: number for number, name in enumerate(right)}
    same = np.array([(row, equal[name]) for row, name in enumerate(left) if name in equal], dtype=np.int64).reshape(
        -1, 2
    )
    pairs = _distinct_keys(_keys(*rows), _keys(same[:, 0], same[:, 1]))
    cosines = views.cosines(pairs >> 32, pairs & 0xFFFFFFFF)
    crossed, of = _cross(
        _Owners.of(left_of, source.name_owners, len(left)),
        _Owners.of(right_of, target.name_owners, len(right)),
        pairs >> 32,
        pairs & 0xFFFFFFFF,
    )
    return _distinct_keys(crossed), crossed, cosines[of]


def _distinct(names: list[str]) -> tuple[list[str], IntArray]:
    """The distinct names, and which of them each name is."""
    numbers: dict[str, int] = {}
    of = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), dtype=np.int64, count=len(names))
    return list(numbers), of


@dataclass(frozen=True, eq=False)
class _Owners:
    """The entities with each distinct name: those of name i are `entities[starts[i] : starts[i] + counts[i]]`."""

    entities: IntArray
    starts: IntArray
    counts: IntArray

    @classmethod
    def of(cls, name_of: IntArray, owners: IntArray, num_names: int) -> _Owners:
        """Grouped by name; of a very frequent name, some."""
        sizes = np.bincount(name_of, minlength=num_names)
        starts = np.cumsum(sizes) - sizes
        return cls(owners[np.argsort(name_of, kind="stable")], starts, np.minimum(sizes, _MOST_NAMESAKES))


def _cross(left: _Owners, right: _Owners, left_names: IntArray, right_names: IntArray) -> tuple[IntArray, IntArray]:
    """Every owner of a name with every owner of the other, for pairs of names (p,): keys (k,), and of which pair."""
    wide = right.counts[right_names]
    sizes = left.counts[left_names] * wide
    of = np.repeat(np.arange(len(sizes)), sizes)
    within = np.arange(len(of)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    row, column = within // wide[of], within % wide[of]
    sources = left.entities[left.starts[left_names[of]] + row]
    targets = right.entities[right.starts[right_names[of]] + column]
    return _keys(sources, targets), of


def _keys(left: IntArray, right: IntArray) -> IntArray:
    keys: IntArray = left.astype(np.int64) << 32 | right.astype(np.int64)
    return keys


def _distinct_keys(*keys: IntArray) -> IntArray:
    """All keys, ascending, each once: by sorting, which is faster than the hash tables of numpy's `unique`."""
    ordered = np.sort(np.concatenate(keys))
    distinct: IntArray = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered
    return distinct
