"""Find nearest neighbours by any searcher: `search`, `search_both`, and the table's own searchers.

In: vectors of queries (q, d) and of a corpus (c, d), of any length, in memory or memory-mapped, with masks of what is
covered and the ids of the rows. Out: `Neighbors`, for each query the ids and cosines of its k nearest, by (-score,
row), and how they were found.
All checks are here, so that a searcher gets only rows with a direction: uncovered rows and vectors of zeros find
nothing and are never found. "auto" searches exactly on a GPU, and on the processor up to the size where that takes a
minute or so; beyond, by inverted lists (IVF). HNSW answers a query fastest but takes far longer to build than IVF,
which does not pay where each corpus is searched once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import IntArray, Mask, Neighbors
from largegnn.errors import ArtifactError, InputError
from largegnn.machine.compiled import can_compile
from largegnn.machine.pieces import num_workers
from largegnn.matching.exact_search import exact_search, exact_search_both
from largegnn.matching.faiss_search import RecallAim, flat_search, hnsw_search, ivf_search
from largegnn.matching.unit_rows import UnitRows, check_rows
from largegnn.parts import SEARCHERS

__all__ = [
    "SearchOptions",
    "Searcher",
    "faiss_flat",
    "faiss_hnsw",
    "faiss_ivf",
    "is_exact",
    "search",
    "search_both",
    "torch_exact",
]

_log = logging.getLogger(__name__)

# Multiply-adds of an exact search that a processor gets done while one waits: a minute on two cores.
_EXACT_ON_CPU = 5e12


@dataclass(frozen=True)
class SearchOptions:
    """Where and how precisely to search.

    `recall` is what an approximate search must reach on a sample of `recall_sample` queries; "ivf" may read the share
    `most_read` of its lists for that, and becomes "torch" where it would need more (1: never) unless that would take
    hours; `half` starts an exact search in half precision (None: on a GPU), which changes its time, not its result;
    `max_memory_gb` bounds the memory of a search besides its input and output, for "ivf" and "hnsw" also besides their
    index.
    """

    device: str = "cpu"
    recall: float = 0.95
    recall_sample: int = 1000
    most_read: float = 0.02
    seed: int = 0
    max_memory_gb: float = 4.0
    half: bool | None = None

    def __post_init__(self) -> None:
        if not 0 < self.recall <= 1:
            raise InputError("invalid recall", expected="more than 0, at most 1", found=str(self.recall))
        if not 0 < self.most_read <= 1:
            raise InputError("no such share of lists", expected="more than 0, at most 1", found=str(self.most_read))
        if self.max_memory_gb <= 0 or self.recall_sample < 1:
            raise InputError("memory and sample of a search must be positive", found=str(self))
        if torch.device(self.device).type == "cuda" and not torch.cuda.is_available():
            raise InputError("there is no GPU that can be used", found=self.device, fix="name cpu as the device")

    @property
    def max_bytes(self) -> int:
        """The memory allowed."""
        return int(self.max_memory_gb * 1e9)


class Searcher(Protocol):
    """Finds the k nearest of the corpus for every query, best first, equal ones by index."""

    def __call__(self, queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions, /) -> Neighbors:
        """Indices (q, k) among the rows of the corpus, -1 where there are fewer, exact scores, and a record."""
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
    """The k nearest of the corpus (c, d) for each of the queries (q, d), by cosine; ids and masks (q,) and (c,).

    Without ids a row is named by its number. A query that is not covered is in the result, without neighbours.
    """
    _check(queries, corpus, k, method)
    query_rows = check_rows(queries, query_covered, "queries")
    corpus_rows = check_rows(corpus, corpus_covered, "corpus")
    return _search(query_rows, corpus_rows, k, method, options or SearchOptions(), query_ids, corpus_ids)


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
    """The k nearest targets (t, d) of each source (s, d), and the k nearest sources of each target."""
    _check(sources, targets, k, method)
    options = options or SearchOptions()
    source_rows = check_rows(sources, source_covered, "sources")
    target_rows = check_rows(targets, target_covered, "targets")
    if _by_one_product(source_rows, target_rows, method, options):
        _log.info("searching %d x %d rows of %d both ways at once", len(source_rows), len(target_rows), target_rows.dim)
        near_targets, near_sources = exact_search_both(source_rows, target_rows, k, max_bytes=options.max_bytes)
        return (
            _named(near_targets, source_rows, target_rows, "torch", source_ids, target_ids),
            _named(near_sources, target_rows, source_rows, "torch", target_ids, source_ids),
        )
    return (
        _search(source_rows, target_rows, k, method, options, source_ids, target_ids),
        _search(target_rows, source_rows, k, method, options, target_ids, source_ids),
    )


def _by_one_product(sources: UnitRows, targets: UnitRows, method: str, options: SearchOptions) -> bool:
    """Whether both ways are searched exactly, by products of this machine's processors."""
    is_cpu = torch.device(options.device).type == "cpu" and not options.half
    exact = method == "torch" or (
        method == "auto" and is_exact(len(sources), len(targets), targets.dim, options.device)
    )
    is_alone = num_workers(gpus=True, own_threads=True) == 1  # several share the queries, one way after the other
    return is_cpu and exact and is_alone and can_compile()


def _check(queries: npt.NDArray[Any], corpus: npt.NDArray[Any], k: int, method: str) -> None:
    """Refuse invalid arguments before any work is done."""
    if method != "auto":
        SEARCHERS[method]
    if k < 1:
        raise InputError("a search needs at least one neighbour", expected="k of at least 1", found=str(k))
    if queries.ndim != 2 or corpus.ndim != 2 or queries.shape[1] != corpus.shape[1]:
        raise ArtifactError(f"a search needs (q, d) and (c, d) arrays, not {queries.shape} and {corpus.shape}")


def _search(
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    method: str,
    options: SearchOptions,
    query_ids: IntArray | None,
    corpus_ids: IntArray | None,
) -> Neighbors:
    """Search among checked rows, and replace rows by ids in what was found."""
    if method == "auto":
        method = "torch" if is_exact(len(queries), len(corpus), corpus.dim, options.device) else "ivf"
        _log.info("searching %d x %d rows of %d by %s", len(queries), len(corpus), corpus.dim, method)
    found = SEARCHERS[method](queries, corpus, k, options)
    return _named(found, queries, corpus, method, query_ids, corpus_ids)


def _named(
    found: Neighbors,
    queries: UnitRows,
    corpus: UnitRows,
    method: str,
    query_ids: IntArray | None,
    corpus_ids: IntArray | None,
) -> Neighbors:
    """What was found among checked rows, with ids in place of rows."""
    rows = corpus.positions(found.ids)
    ids = rows if corpus_ids is None else np.where(rows >= 0, corpus_ids[rows], -1)
    scores = found.scores
    if queries.kept is not None:
        shape = (len(queries.vectors), found.k)
        all_ids, all_scores = np.full(shape, -1, dtype=np.int32), np.full(shape, -np.inf, dtype=np.float32)
        all_ids[queries.kept], all_scores[queries.kept] = ids, scores
        ids, scores = all_ids, all_scores
    # A searcher that used another one has recorded its name.
    record = found.record if found.record.method in SEARCHERS else replace(found.record, method=method)
    names = np.arange(len(queries.vectors)) if query_ids is None else query_ids
    return Neighbors(names, ids, scores, record)


def is_exact(num_queries: int, num_rows: int, dim: int, device: torch.device | str) -> bool:
    """Whether the method `auto` compares every query with every row."""
    return torch.device(device).type == "cuda" or num_queries * num_rows * dim <= _EXACT_ON_CPU


def torch_exact(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """Exact, on the device, or in pieces on the workers of a cluster."""
    return exact_search(queries, corpus, k, device=options.device, half=options.half, max_bytes=options.max_bytes)


def faiss_flat(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """Exact, by Faiss."""
    return flat_search(queries, corpus, k, max_bytes=options.max_bytes)


def faiss_ivf(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """Approximate, by inverted lists."""
    return ivf_search(queries, corpus, k, _aim(options), seed=options.seed)


def faiss_hnsw(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """Approximate, over a graph of neighbours."""
    return hnsw_search(queries, corpus, k, _aim(options), seed=options.seed)


def _aim(options: SearchOptions) -> RecallAim:
    return RecallAim(options.recall, options.recall_sample, options.most_read, options.max_bytes)
