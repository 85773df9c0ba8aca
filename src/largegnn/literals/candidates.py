"""Find candidate pairs by names and values, each with its literal evidence.

In: the texts of both sides. Out: a `CandidateGraph` with the columns `name` (the most similar pair of names), `text`
(all values as one text) and `neighbors` (the names of the neighbours); all three are cosines of n-gram vectors.
The idea: entities that share something rare have similar names or similar texts. The k nearest of each entity by names
and by texts are candidates; entities with equal names are always candidates.
Cost: linear in the texts (see `grams`); distinct names are compared once, however many entities have them.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from largegnn.artifacts import CandidateGraph, FloatArray, IntArray
from largegnn.literals.grams import GramSpace
from largegnn.literals.text_encoders import nearest_meanings
from largegnn.literals.texts import EntityTexts, distinct_texts
from largegnn.machine.progress import progress

__all__ = ["literal_candidates"]

_PIECE_EDGES = 1 << 16
_MAX_NAMESAKES = 50  # entities of one name, on each side, that become candidates by it


def literal_candidates(
    source: EntityTexts, target: EntityTexts, k: int, meanings: tuple[FloatArray, FloatArray] | None = None
) -> CandidateGraph:
    """Find the candidates of both sides with their evidence; there are no edges if a side has no text.

    `meanings` holds, for either side, vectors of length 1 for its entities with a text, (n, d); with them the graph
    has the column `meaning`, too.
    """
    with progress("comparing names and values", 3, "views") as work:
        name_keys, name_cosines = _by_names(source, target, k)
        work.advance()
        documents = GramSpace.of(source.documents, target.documents)
        nearest = [documents.nearest(k)]
        if meanings is not None:
            source_meanings, target_meanings = meanings
            nearest.append(nearest_meanings(source_meanings, target_meanings, k))
            right, left = nearest_meanings(target_meanings, source_meanings, k)
            nearest.append((left, right))
        keys = _distinct_keys(
            name_keys, *(_keys(source.entities[left], target.entities[right]) for left, right in nearest)
        )
        work.advance()
        sources, targets = keys >> 32, keys & 0xFFFFFFFF
        rows = np.searchsorted(source.entities, sources), np.searchsorted(target.entities, targets)
        name = np.zeros(len(keys), dtype=np.float32)
        np.maximum.at(name, np.searchsorted(keys, name_keys), name_cosines)
        text = documents.cosines(*rows)
        neighbors = GramSpace.of(source.neighbors, target.neighbors).cosines(*rows)
        work.advance()
    graph = CandidateGraph(sources, targets, {"name": name, "text": text, "neighbors": neighbors})
    return graph if meanings is None else graph.with_evidence(meaning=_products(meanings, *rows))


def _products(vectors: tuple[FloatArray, FloatArray], left: IntArray, right: IntArray) -> FloatArray:
    """The dot product of each pair of rows (p,); negative products become 0."""
    products = np.empty(len(left), dtype=np.float32)
    for start in range(0, len(left), _PIECE_EDGES):
        piece = slice(start, start + _PIECE_EDGES)
        products[piece] = np.einsum("pd,pd->p", vectors[0][left[piece]], vectors[1][right[piece]])
    return np.maximum(products, 0.0)


def _by_names(source: EntityTexts, target: EntityTexts, k: int) -> tuple[IntArray, FloatArray]:
    """The keys of the pairs of entities with similar names, and the cosine of the names; a key may occur repeatedly."""
    if not source.names or not target.names:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    (left, left_of), (right, right_of) = distinct_texts(source.names), distinct_texts(target.names)
    space = GramSpace.of(left, right)
    # Equal names are always candidates; they may not be among the k nearest where many names have the same n-grams.
    row_in_right = {name: row for row, name in enumerate(right)}
    equal = [(row, row_in_right[name]) for row, name in enumerate(left) if name in row_in_right]
    equal_rows = np.array(equal, dtype=np.int64).reshape(-1, 2)
    name_pairs = _distinct_keys(_keys(*space.nearest(k)), _keys(equal_rows[:, 0], equal_rows[:, 1]))
    left_rows, right_rows = name_pairs >> 32, name_pairs & 0xFFFFFFFF
    cosines = pl.Series(space.cosines(left_rows, right_rows), dtype=pl.Float32)
    # Each pair of names gives the pairs of all entities that have them.
    entity_pairs = (
        pl.DataFrame({"left": left_rows, "right": right_rows, "cosine": cosines})
        .join(_owners("left", "source", left_of, source.name_owners), on="left")
        .join(_owners("right", "target", right_of, target.name_owners), on="right")
    )
    keys = _keys(entity_pairs["source"].to_numpy(), entity_pairs["target"].to_numpy())
    return keys, entity_pairs["cosine"].to_numpy()


def _owners(name: str, owner: str, name_of: IntArray, owners: IntArray) -> pl.DataFrame:
    """A table of distinct names (column `name`) and the entities that have them, at most `_MAX_NAMESAKES` each."""
    frame = pl.DataFrame({name: name_of, owner: owners})
    return frame.filter(pl.int_range(pl.len()).over(name) < _MAX_NAMESAKES)


def _keys(left: IntArray, right: IntArray) -> IntArray:
    """One number for each pair, in the order of (left, right)."""
    keys: IntArray = left.astype(np.int64) << 32 | right.astype(np.int64)
    return keys


def _distinct_keys(*keys: IntArray) -> IntArray:
    """The distinct keys, ascending; sorting them is faster than numpy's `unique`, which uses a hash table."""
    ordered = np.sort(np.concatenate(keys))
    distinct: IntArray = ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered
    return distinct
