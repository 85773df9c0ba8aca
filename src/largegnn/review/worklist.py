"""Filter, search and order the pairs to review.

In: an alignment. Out: rows of it: the pairs that the selection chose, and the best candidate of every other source.
Cost: a pass over arrays; some milliseconds for a hundred thousand pairs.
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
_MOST_LISTS = 8
STATES = ("all", "accepted", "below threshold", "not mutual")
ORDERS = ("nearest the threshold", "least confident", "most confident", "random")


@dataclass(frozen=True)
class Filters:
    """The filters of the worklist; the default gives all undecided pairs. `most_degree` 0 stands for no limit."""

    query: str = ""
    low: float = 0.0
    high: float = 1.0
    state: str = "all"
    least_degree: int = 0
    most_degree: int = 0
    contradiction: bool = False
    audit: bool = False
    decided: str = "open"
    order: str = "nearest the threshold"


class Worklist:
    """The worklist of one alignment."""

    def __init__(
        self, task: AlignmentTask, labels: Labels, alignment: Alignment, selected: Mask, threshold: float
    ) -> None:
        self._labels, self._alignment, self._threshold = labels, alignment, threshold
        self.rows: IntArray = np.flatnonzero(selected | alignment.accepted | (alignment.source_ranks == 1))
        pairs = alignment.pairs[self.rows]
        self._rating = alignment.confidence[self.rows].astype(np.float64)
        accepted = alignment.accepted[self.rows]
        self.states = np.where(accepted, 1, np.where(selected[self.rows], 2, 3))
        degrees = np.bincount(task.triples[:, (0, 2)].ravel(), minlength=task.num_entities)
        self._degree = degrees[pairs].min(axis=1) if len(pairs) else np.zeros(0, dtype=np.int64)
        against = alignment.column("contradiction") if "contradiction" in alignment.columns else None
        self._contradicts = np.zeros(len(self.rows), dtype=bool) if against is None else against[self.rows] > 0
        self.has_contradictions = bool(self._contradicts.any())
        self.audit = audit_sample(alignment, AUDIT_SIZE)
        self._in_audit = np.isin(self.rows, self.audit)
        self._last_lists = lru_cache(_MOST_LISTS)(self._filtered)
        self._shuffled = np.random.default_rng(0).permutation(len(self.rows))

    def prepare(self) -> None:
        """Make the texts for the search now, and not with the first search."""
        _ = self._texts

    def find(self, filters: Filters, verdict: IntArray) -> IntArray:
        """The rows of the alignment that pass the filters, in order; `verdict` (p,) is 0 for undecided pairs."""
        rows = self._last_lists(replace(filters, decided="all"))
        if filters.decided == "all":
            return rows
        wanted: IntArray = rows[(verdict[rows] == 0) == (filters.decided == "open")]
        return wanted

    def _filtered(self, filters: Filters) -> IntArray:
        """The rows by all filters but `decided`, which alone changes."""
        keep = (self._rating >= filters.low) & (self._rating <= filters.high)
        if filters.state in STATES[1:]:
            keep &= self.states == STATES.index(filters.state)
        if filters.least_degree:
            keep &= self._degree >= filters.least_degree
        if filters.most_degree:
            keep &= self._degree <= filters.most_degree
        if filters.contradiction:
            keep &= self._contradicts
        if filters.audit:
            keep &= self._in_audit
        if filters.query.strip():
            keep &= self._holds(filters.query)
        found = np.flatnonzero(keep)
        return self.rows[found[self._order(found, filters.order)]]

    def _order(self, found: IntArray, order: str) -> IntArray:
        rating = self._rating[found]
        if order == "random":
            return np.argsort(self._shuffled[found], kind="stable")
        if order == "most confident":
            return np.argsort(-rating, kind="stable")
        if order == "least confident":
            return np.argsort(rating, kind="stable")
        return np.argsort(np.abs(rating - self._threshold), kind="stable")

    def _holds(self, query: str) -> Mask:
        """The pairs that have all words of a query in a name or identifier of either end."""
        keep = np.ones(len(self.rows), dtype=bool)
        for word in query.casefold().split()[:8]:
            keep &= self._texts.str.contains(word, literal=True).to_numpy()
        return keep

    @cached_property
    def _texts(self) -> pl.Series:
        """Names and identifiers of both ends in small letters, (r,); made on the first search."""
        entities = np.unique(self._alignment.pairs[self.rows])
        identifiers = pl.Series(self._labels.names.entities.take(entities), dtype=pl.String)
        text = identifiers + " " + pl.Series(self._labels.of_many(entities), dtype=pl.String)
        place = np.searchsorted(entities, self._alignment.pairs[self.rows])
        lower = text.str.to_lowercase()
        return lower.gather(place[:, 0]) + " " + lower.gather(place[:, 1])
