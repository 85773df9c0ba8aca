"""Entities of one graph that are probably the same: equal names, and no value in which they differ.

In: the names of one side and its values. Out: pairs of entities of that side.
The idea: a record that occurs twice has the same name and contradicts itself in nothing. A name that many bear says
nothing. Only predicates with about one value per entity can contradict; a pair without any value to compare counts
where its names are all that either says.
Cost: linear in the names; the pairs of equal names times the predicates.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import IntArray
from largegnn.literals.texts import EntityTexts
from largegnn.literals.values_evidence import SideValues, compare_values

__all__ = ["find_duplicates"]

_MOST_NAMESAKES = 5  # entities of one name of which any two may be the same
_SAME = 0.95  # similarity from which two values are the same


def find_duplicates(texts: EntityTexts, values: SideValues) -> IntArray:
    """Pairs (d, 2) of entities that are probably the same, ascending, the smaller id first."""
    pairs = _namesakes(texts)
    if not len(pairs):
        return pairs
    agreeing, differing = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.int64)
    for predicate in values.row_of:
        kind = values.profiles[predicate].kind
        if kind == "name" or kind not in values.comparators:
            continue
        rows = values.values(predicate, pairs[:, 0]), values.values(predicate, pairs[:, 1])
        both = np.flatnonzero((rows[0] >= 0) & (rows[1] >= 0))
        is_same = compare_values(values, values, kind, rows[0][both], rows[1][both]) >= _SAME
        agreeing[both] += is_same
        differing[both] += ~is_same
    document_of = dict(zip(texts.entities.tolist(), texts.documents, strict=True))
    says_the_same = np.array([document_of[left] == document_of[right] for left, right in pairs.tolist()])
    found: IntArray = pairs[(differing == 0) & ((agreeing > 0) | says_the_same)]
    return found


def _namesakes(texts: EntityTexts) -> IntArray:
    """Pairs (p, 2) of entities that share a name which few others bear, ascending."""
    owners_of: dict[str, list[int]] = {}
    for owner, name in zip(texts.name_owners.tolist(), texts.names, strict=True):
        owners_of.setdefault(name, []).append(owner)
    pairs = {
        (left, right)
        for owners in owners_of.values()
        if 1 < len(owners) <= _MOST_NAMESAKES
        for place, left in enumerate(owners)
        for right in owners[place + 1 :]
        if left != right
    }
    return np.array(sorted((min(pair), max(pair)) for pair in pairs), dtype=np.int64).reshape(-1, 2)
