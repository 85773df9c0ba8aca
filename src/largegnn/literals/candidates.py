"""Find candidate pairs by names and values, each with its literal evidence.

In: the texts of both sides. Out: a `CandidateGraph` with the columns `name` (the most similar pair of names), `text`
(all values as one text) and `neighbors` (the names of the neighbours), each a cosine of n-gram vectors.
The idea: pairs that share something rare are near each other among names or among texts; the k nearest of either side
by either view are candidates, equal names always.
Cost: linear in the texts (see `grams`); distinct names are compared once, however many entities have them.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray
from largegnn.literals.encoders import nearest_meanings
from largegnn.literals.grams import GramSpace
from largegnn.literals.texts import EntityTexts, distinct_texts
from largegnn.machine.progress import progress

__all__ = ["literal_candidates"]

_PIECE = 1 << 16
_MOST_NAMESAKES = 50  # pairs that one pair of equal names may make on each side


def literal_candidates(
    source: EntityTexts, target: EntityTexts, k: int, meanings: tuple[FloatArray, FloatArray] | None = None
) -> CandidateGraph:
    """The candidates of both sides with their evidence; no edges where either side has no text.

    `meanings` are vectors of length 1 for the entities of both sides, (n, d) each; they add the column `meaning`.
    """
    with progress("comparing names and values", 3, "views") as work:
        name_keys, name_cosines = _by_names(source, target, k)
        work.advance()
        documents = GramSpace.of(source.documents, target.documents)
        near = [documents.nearest(k)]
        if meanings is not None:
            near += [nearest_meanings(*meanings, k), nearest_meanings(*meanings[::-1], k)[::-1]]
        keys = _distinct_keys(
            name_keys, *(_keys(source.entities[left], target.entities[right]) for left, right in near)
        )
        work.advance()
        sources, targets = keys >> 32, keys & 0xFFFFFFFF
        places = np.searchsorted(source.entities, sources), np.searchsorted(target.entities, targets)
        name = np.zeros(len(keys), dtype=np.float32)
        np.maximum.at(name, np.searchsorted(keys, name_keys), name_cosines)
        text = documents.cosines(*places)
        neighbors = GramSpace.of(source.neighbors, target.neighbors).cosines(*places)
        work.advance()
    graph = CandidateGraph(sources, targets, {"name": name, "text": text, "neighbors": neighbors})
    return graph if meanings is None else graph.with_evidence(meaning=_products(meanings, *places))


def _products(vectors: tuple[FloatArray, FloatArray], left: IntArray, right: IntArray) -> FloatArray:
    """The products of pairs of rows (p,), at least zero."""
    found = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), _PIECE):
        here = slice(start, start + _PIECE)
        found[here] = np.einsum("pd,pd->p", vectors[0][left[here]], vectors[1][right[here]])
    return np.maximum(found, 0.0)


def _by_names(source: EntityTexts, target: EntityTexts, k: int) -> tuple[IntArray, FloatArray]:
    """For each pair of near names the keys of the entities that have them, and the cosine of the names."""
    if not source.names or not target.names:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    (left, left_of), (right, right_of) = distinct_texts(source.names), distinct_texts(target.names)
    views = GramSpace.of(left, right)
    # Equal names are candidates even if others are nearer.
    equal = {name: number for number, name in enumerate(right)}
    same = np.array([(row, equal[name]) for row, name in enumerate(left) if name in equal], dtype=np.int64)
    pairs = _distinct_keys(_keys(*views.nearest(k)), _keys(*same.reshape(-1, 2).T))
    left_rows, right_rows = pairs >> 32, pairs & 0xFFFFFFFF
    cosines = pl.Series(views.cosines(left_rows, right_rows), dtype=pl.Float32)
    # Every owner of a name with every owner of the other.
    crossed = (
        pl.DataFrame({"left": left_rows, "right": right_rows, "cosine": cosines})
        .join(_owners("left", "source", left_of, source.name_owners), on="left")
        .join(_owners("right", "target", right_of, target.name_owners), on="right")
    )
    return _keys(crossed["source"].to_numpy(), crossed["target"].to_numpy()), crossed["cosine"].to_numpy()


def _owners(name: str, owner: str, name_of: IntArray, owners: IntArray) -> pl.DataFrame:
    """The entities with each distinct name; of a very frequent name, the first ones."""
    frame = pl.DataFrame({name: name_of, owner: owners})
    return frame.filter(pl.int_range(pl.len()).over(name) < _MOST_NAMESAKES)


def _keys(left: IntArray, right: IntArray) -> IntArray:
    keys: IntArray = left.astype(np.int64) << 32 | right.astype(np.int64)
    return keys


def _distinct_keys(*keys: IntArray) -> IntArray:
    """All keys, ascending, each once: by sorting, which is faster than the hash tables of numpy's `unique`."""
    ordered = np.sort(np.concatenate(keys))
    distinct: IntArray = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered
    return distinct
