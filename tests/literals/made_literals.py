"""Make literals from rows written in a test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from largegnn.artifacts import Literals, StringTable

__all__ = ["literals_of"]


def literals_of(rows: Sequence[tuple[int, str, str]]) -> Literals:
    """Make `Literals` of rows (entity, predicate, value), without datatypes and languages."""
    ordered = sorted(rows)
    predicates = sorted({predicate for _, predicate, _ in ordered})
    none = np.zeros(len(ordered), dtype=np.int32)
    empty = StringTable.from_strings([""])
    return Literals(
        np.array([entity for entity, _, _ in ordered]),
        np.array([predicates.index(predicate) for _, predicate, _ in ordered]),
        StringTable.from_strings([value for _, _, value in ordered]),
        none,
        none,
        StringTable.from_strings(predicates),
        empty,
        empty,
    )
