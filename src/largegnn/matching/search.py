"""Find nearest neighbours by any searcher: `search` in one direction, `search_both` in both.

In: vectors of queries (q, d) and of a corpus (c, d), of any length, in memory or memory-mapped, with masks of covered
rows and the ids of the rows. Out: `Neighbors`, for each query the ids and cosines of its k nearest, by (-score, row),
with a record of the search.
All checks are here, so that a searcher gets only rows with a direction: uncovered rows and vectors of zeros find
nothing and are never found. "auto" searches exactly on a GPU, on the processor up to about a minute of work, and else
by inverted lists (IVF).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import IntArray, Mask, Neighbors
from largegnn.errors import ArtifactError, InputError
from largegnn.matching.unit_rows import UnitRows, check_rows
from largegnn.parts import SEARCHERS

__all__ = ["SearchOptions", "Searcher", "is_exact", "search", "search_both"]

_log = logging.getLogger(__name__)

# Maximum multiply-adds of an exact search on a processor: about a minute on two cores.
_MAX_EXACT_ON_CPU = 5e12


@dataclass(frozen=True)
class SearchOptions:
    """Where and how precisely to search.

    `recall` is required of an approximate search, on a sample of the queries; `max_memory_gb` bounds the memory of a
    search besides its input and output, for "ivf" also besides its index.
    """

    device: str = "cpu"
    recall: float = 0.95
    seed: int = 0
    max_memory_gb: float = 4.0

    @property
    def max_bytes(self) -> int:
        """The maximum memory in bytes."""
        return int(self.max_memory_gb * 1e9)


class Searcher(Protocol):
    """A function that finds the k nearest of the corpus for every query, best first, equal scores by index."""

    def __call__(self, queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions, /) -> Neighbors:
        """Return indices (q, k) of rows of the corpus, -1 if there are fewer than k, with exact scores and a record."""
        ...


def search(
    queries: npt.NDArray[Any],
    corpus: npt.NDArray[Any],
    k: int,
    method: str = "auto",
    *,
    query_ids: IntArray | None = None,
    corpus_ids: IntArray | None = None,
    query_covered: Mask | None = None,
    corpus_covered: Mask | None = None,
    options: SearchOptions | None = None,
) -> Neighbors:
    """Find the k nearest of the corpus (c, d) for each of the queries (q, d), by cosine; ids and masks (q,) and (c,).

    By default the id of a row is its index. A query that is not covered is in the result, without neighbours.
    """
    _check(queries, corpus, k, method)
    query_rows = check_rows(queries, query_covered, "queries")
    corpus_rows = check_rows(corpus, corpus_covered, "corpus")
    found = _search(query_rows, corpus_rows, k, method, options or SearchOptions())
    return _with_ids(found, query_rows, query_ids, corpus_rows, corpus_ids)


def search_both(
    sources: npt.NDArray[Any],
    targets: npt.NDArray[Any],
    k: int,
    method: str = "auto",
    *,
    source_ids: IntArray | None = None,
    target_ids: IntArray | None = None,
    source_covered: Mask | None = None,
    target_covered: Mask | None = None,
    options: SearchOptions | None = None,
) -> tuple[Neighbors, Neighbors]:
    """Find the k nearest targets (t, d) of each source (s, d), and the k nearest sources of each target."""
    _check(sources, targets, k, method)
    options = options or SearchOptions()
    source_rows = check_rows(sources, source_covered, "sources")
    target_rows = check_rows(targets, target_covered, "targets")
    near_targets = _search(source_rows, target_rows, k, method, options)
    near_sources = _search(target_rows, source_rows, k, method, options)
    return (
        _with_ids(near_targets, source_rows, source_ids, target_rows, target_ids),
        _with_ids(near_sources, target_rows, target_ids, source_rows, source_ids),
    )


def _check(queries: npt.NDArray[Any], corpus: npt.NDArray[Any], k: int, method: str) -> None:
    """Refuse invalid arguments before any work is done."""
    if method != "auto":
        SEARCHERS[method]
    if k < 1:
        raise InputError("a search needs at least one neighbour", expected="k of at least 1", found=str(k))
    if queries.ndim != 2 or corpus.ndim != 2 or queries.shape[1] != corpus.shape[1]:
        raise ArtifactError(f"a search needs (q, d) and (c, d) arrays, not {queries.shape} and {corpus.shape}")


def _search(queries: UnitRows, corpus: UnitRows, k: int, method: str, options: SearchOptions) -> Neighbors:
    """Search among checked rows."""
    if method == "auto":
        method = "torch" if is_exact(len(queries), len(corpus), corpus.dim, options.device) else "ivf"
        _log.info("searching %d x %d rows of %d by %s", len(queries), len(corpus), corpus.dim, method)
    return SEARCHERS[method](queries, corpus, k, options)


def _with_ids(
    found: Neighbors, queries: UnitRows, query_ids: IntArray | None, corpus: UnitRows, corpus_ids: IntArray | None
) -> Neighbors:
    """Replace rows by ids, and add the queries that were not searched."""
    all_query_ids = np.arange(len(queries.vectors)) if query_ids is None else query_ids
    all_corpus_ids = np.arange(len(corpus.vectors)) if corpus_ids is None else corpus_ids
    kept_ids = all_corpus_ids if corpus.kept is None else all_corpus_ids[corpus.kept]
    ids, scores = np.append(kept_ids, -1)[found.ids], found.scores
    if queries.kept is not None:
        shape = (len(all_query_ids), found.k)
        all_ids, all_scores = np.full(shape, -1, dtype=np.int32), np.full(shape, -np.inf, dtype=np.float32)
        all_ids[queries.kept], all_scores[queries.kept] = ids, scores
        ids, scores = all_ids, all_scores
    return Neighbors(all_query_ids, ids, scores, found.record)


def is_exact(num_queries: int, num_rows: int, dim: int, device: torch.device | str) -> bool:
    """Whether the method `auto` compares every query with every row."""
    return torch.device(device).type == "cuda" or num_queries * num_rows * dim <= _MAX_EXACT_ON_CPU
