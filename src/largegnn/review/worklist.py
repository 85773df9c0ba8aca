"""Filter, search and order the pairs to review.

In: an alignment. Out: rows of the alignment: the pairs that the selection chose, and the best candidate of every
source. Cost: a pass over arrays for each new set of filters; some milliseconds for a hundred thousand pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import polars as pl

from largegnn.artifacts import Alignment, AlignmentTask, IntArray, Mask
from largegnn.review.labels import Labels
from largegnn.review.pair_view import audit_sample

__all__ = ["AUDIT_SIZE", "ORDERS", "STATES", "Filters", "Worklist"]

AUDIT_SIZE = 200
_MAX_CACHED_LISTS = 8
_MAX_QUERY_WORDS = 8
STATES = ("all", "accepted", "below threshold", "not mutual")
ORDERS = ("nearest the threshold", "least confident", "most confident", "random")


@dataclass(frozen=True)
class Filters:
    """The filters of the worklist; the default gives all undecided pairs.

    A degree is the number of triples of the end with fewer triples; a `max_degree` of 0 is no limit.
    """

    query: str = ""
    low: float = 0.0
    high: float = 1.0
    state: str = "all"
    min_degree: int = 0
    max_degree: int = 0
    contradiction: bool = False
    audit: bool = False
    decided: str = "open"
    order: str = "nearest the threshold"


class Worklist:
    """The worklist of an alignment."""

    def __init__(
        self, task: AlignmentTask, labels: Labels, alignment: Alignment, selected: Mask, threshold: float
    ) -> None:
        self._labels, self._alignment, self._threshold = labels, alignment, threshold
        self.rows: IntArray = np.flatnonzero(selected | alignment.accepted | (alignment.source_ranks == 1))
        pairs = alignment.pairs[self.rows]
        self._confidence = alignment.confidence[self.rows].astype(np.float64)
        accepted = alignment.accepted[self.rows]
        self.states = np.where(accepted, 1, np.where(selected[self.rows], 2, 3))  # positions in STATES
        degrees = np.bincount(task.triples[:, (0, 2)].ravel(), minlength=task.num_entities)
        self._degree = degrees[pairs].min(axis=1) if len(pairs) else np.zeros(0, dtype=np.int64)
        self._contradicts = np.zeros(len(self.rows), dtype=bool)
        if "contradiction" in alignment.columns:
            self._contradicts = alignment.column("contradiction")[self.rows] > 0
        self.has_contradictions = bool(self._contradicts.any())
        self.audit = audit_sample(alignment, AUDIT_SIZE)
        self._in_audit = np.isin(self.rows, self.audit)
        self._cached_filtered = lru_cache(_MAX_CACHED_LISTS)(self._filtered)
        self._shuffled = np.random.default_rng(0).permutation(len(self.rows))

    def prepare(self) -> None:
        """Make the texts for the search now, so that the first search does not wait."""
        _ = self._texts

    def find(self, filters: Filters, verdict: IntArray) -> IntArray:
        """Find the rows of the alignment that pass the filters, in order; `verdict` (p,) is 0 for undecided pairs."""
        rows = self._cached_filtered(replace(filters, decided="all"))
        if filters.decided == "all":
            return rows
        is_open = verdict[rows] == 0
        chosen: IntArray = rows[is_open if filters.decided == "open" else ~is_open]
        return chosen

    def _filtered(self, filters: Filters) -> IntArray:
        """Find the rows by all filters except `decided`, the only filter whose outcome changes during a review."""
        keep = (self._confidence >= filters.low) & (self._confidence <= filters.high)
        if filters.state in STATES[1:]:
            keep &= self.states == STATES.index(filters.state)
        if filters.min_degree:
            keep &= self._degree >= filters.min_degree
        if filters.max_degree:
            keep &= self._degree <= filters.max_degree
        if filters.contradiction:
            keep &= self._contradicts
        if filters.audit:
            keep &= self._in_audit
        if filters.query.strip():
            keep &= self._matches_query(filters.query)
        positions = np.flatnonzero(keep)
        return self.rows[positions[self._ordered(positions, filters.order)]]

    def _ordered(self, positions: IntArray, order: str) -> IntArray:
        confidence = self._confidence[positions]
        if order == "random":
            return np.argsort(self._shuffled[positions], kind="stable")
        if order == "most confident":
            return np.argsort(-confidence, kind="stable")
        if order == "least confident":
            return np.argsort(confidence, kind="stable")
        return np.argsort(np.abs(confidence - self._threshold), kind="stable")

    def _matches_query(self, query: str) -> Mask:
        """Whether the names and identifiers of the two ends of a pair contain all words of a query, (r,)."""
        keep = np.ones(len(self.rows), dtype=bool)
        for word in query.casefold().split()[:_MAX_QUERY_WORDS]:
            keep &= self._texts.str.contains(word, literal=True).to_numpy()
        return keep

    @cached_property
    def _texts(self) -> pl.Series:
        """The names and identifiers of both ends in lower case, (r,); made on the first search."""
        entities = np.unique(self._alignment.pairs[self.rows])
        identifiers = pl.Series(self._labels.names.entities.take(entities), dtype=pl.String)
        text = identifiers + " " + pl.Series(self._labels.of_many(entities), dtype=pl.String)
        positions = np.searchsorted(entities, self._alignment.pairs[self.rows])
        lower = text.str.to_lowercase()
        return lower.gather(positions[:, 0]) + " " + lower.gather(positions[:, 1])
