"""Measures of ranks: our own. Each takes the ranks (k,) of the true partners, 1 = best, and gives one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from largegnn.artifacts import IntArray
from largegnn.artifacts.report import RankFigures
from largegnn.evaluation.metrics import Ranks
from largegnn.seams.tables import MEASURES

__all__ = ["DEFAULT_MEASURES", "Measure", "hits_at_1", "hits_at_5", "hits_at_10", "mrr", "summarise"]

Measure = Callable[[IntArray], float]
DEFAULT_MEASURES = ("hits@1", "hits@5", "hits@10", "mrr")


def hits_at_1(ranks: IntArray) -> float:
    """The share of the links whose partner is ranked first."""
    return float(np.mean(ranks <= 1))


def hits_at_5(ranks: IntArray) -> float:
    """The share of the links whose partner is among the best five."""
    return float(np.mean(ranks <= 5))


def hits_at_10(ranks: IntArray) -> float:
    """The share of the links whose partner is among the best ten."""
    return float(np.mean(ranks <= 10))


def mrr(ranks: IntArray) -> float:
    """The mean of one divided by the rank."""
    return float(np.mean(1.0 / ranks))


def summarise(ranks: Ranks, measures: Sequence[str] = DEFAULT_MEASURES) -> RankFigures:
    """The measures of either direction and of both; None where there is no link to rank."""
    # Both directions rank the same number of links, so the mean of the two is the measure of all ranks together.
    both = np.concatenate([ranks.source_to_target, ranks.target_to_source])
    return RankFigures(*(_all(found, measures) for found in (ranks.source_to_target, ranks.target_to_source, both)))


def _all(ranks: IntArray, measures: Sequence[str]) -> dict[str, float | None]:
    return {name: MEASURES[name](ranks) if len(ranks) else None for name in measures}
