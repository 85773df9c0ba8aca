"""Rank the true partner of each test link among its candidates, and compute H@k and MRR (the ideal setting).

In: the vectors of both sides and the rows that each link joins; or all scores as a matrix; or the scores of candidate
edges. Out: `Ranks` in both directions; `summarise` computes H@k and MRR from them.
The idea: one matrix product scores a chunk of queries against all candidates. The score of the true partner is read
from that product, and the rank is the number of candidates that score at least as high. Nothing is sorted.
Ties count against us: matrix products round equal vectors differently by position, by some 1e-7, so scores within 1e-6
(2e-6 for CSLS) are equal, and a model that maps everything to one point ranks its links last instead of by chance.
An uncovered entity or a vector of zeros is no candidate, and a link with such an end is ranked last, never first.
Cost: O(n k d) for n of k links in each direction, O(k^2 d) for the means of CSLS; memory O(k d) and two chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import IntArray
from largegnn.artifacts.report import RankFigures
from largegnn.errors import ArtifactError
from largegnn.machine.compiled import compiled
from largegnn.machine.precision import full_precision
from largegnn.machine.progress import progress

__all__ = [
    "DEFAULT_MEASURES",
    "MAX_MULTIPLICATIONS",
    "MEASURES",
    "SCORE_TOLERANCE",
    "SIMILARITIES",
    "Measure",
    "Ranks",
    "Similarity",
    "rank_edges",
    "rank_links",
    "rank_links_by",
    "rank_matrix",
    "summarise",
]

Similarity = Literal["cosine", "csls"]
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "csls")
SCORE_TOLERANCE = 1e-6
# Maximum number of multiplications for the ranks by cosine and CSLS: ten minutes on two cores, one or two on a GPU.
MAX_MULTIPLICATIONS = {"cpu": 1e13, "cuda": 2e15}
_MAX_COMPARED_ENTRIES = 1 << 23  # entries of a matrix that are compared at once


@dataclass(frozen=True, eq=False)
class Ranks:
    """The rank of each link's true partner, 1 = best, in either direction: (k,) int64."""

    source_to_target: IntArray
    target_to_source: IntArray

    def hits_at_1(self) -> float:
        """Mean H@1 of both directions."""
        return float(np.mean([(self.source_to_target == 1).mean(), (self.target_to_source == 1).mean()]))


Measure = Callable[[IntArray], float]
"""A function from the ranks (k,) of the true partners, 1 = best, to one number."""
MEASURES: dict[str, Measure] = {
    "hits@1": lambda ranks: float(np.mean(ranks <= 1)),
    "hits@5": lambda ranks: float(np.mean(ranks <= 5)),
    "hits@10": lambda ranks: float(np.mean(ranks <= 10)),
    "mrr": lambda ranks: float(np.mean(1.0 / ranks)),
}
DEFAULT_MEASURES = tuple(MEASURES)


def summarise(ranks: Ranks, measures: Sequence[str] = DEFAULT_MEASURES) -> RankFigures:
    """Compute the measures of each direction and of both together; None if there is no link to rank."""
    # Both directions rank the same number of links, so the mean of the two is the measure of all ranks together.
    both = np.concatenate([ranks.source_to_target, ranks.target_to_source])
    return RankFigures(*(_measure(found, measures) for found in (ranks.source_to_target, ranks.target_to_source, both)))


def _measure(ranks: IntArray, measures: Sequence[str]) -> dict[str, float | None]:
    return {name: MEASURES[name](ranks) if len(ranks) else None for name in measures}


def rank_links(
    source_vectors: npt.NDArray[Any],
    target_vectors: npt.NDArray[Any],
    scoring: Similarity = "csls",
    csls_k: int = 10,
    *,
    source_covered: npt.NDArray[np.bool_] | None = None,
    target_covered: npt.NDArray[np.bool_] | None = None,
    device: torch.device | str = "cpu",
    chunk_bytes: int = 1 << 28,
) -> Ranks:
    """Rank each link's target among all targets and its source among all sources, from vectors (k, d) and masks (k,).

    Row i of the sources and row i of the targets are a link. CSLS(s, t) = 2 cos(s, t) - r(s) - r(t), where r is the
    mean cosine to the `csls_k` nearest entities of the other side (to all entities if there are fewer). The scores of
    a chunk take `chunk_bytes`, or one row if a row is larger. The default suits a processor's caches and 15K links; a
    GPU with 700K links is faster with some gigabytes.
    """
    if scoring not in SIMILARITIES:
        raise ArtifactError(f"ranks are by cosine or csls, not {scoring}")
    if csls_k < 1:
        raise ArtifactError(f"CSLS needs a neighbourhood of at least 1, not {csls_k}")
    if source_vectors.shape != target_vectors.shape:
        raise ArtifactError(f"links need two (k, d) arrays, not {source_vectors.shape} and {target_vectors.shape}")
    ranks = rank_links_by(
        source_vectors,
        target_vectors,
        csls_k=csls_k if scoring == "csls" else None,
        source_covered=source_covered,
        target_covered=target_covered,
        device=device,
        chunk_bytes=chunk_bytes,
    )
    return ranks[scoring]


def rank_links_by(
    source_vectors: npt.NDArray[Any],
    target_vectors: npt.NDArray[Any],
    *,
    links: tuple[IntArray, IntArray] | None = None,
    csls_k: int | None = 10,
    means: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
    source_covered: npt.NDArray[np.bool_] | None = None,
    target_covered: npt.NDArray[np.bool_] | None = None,
    device: torch.device | str = "cpu",
    chunk_bytes: int = 1 << 28,
) -> dict[Similarity, Ranks]:
    """Rank by cosine and by CSLS from one set of products; by cosine alone if `csls_k` is None. See `rank_links`.

    `links` are the source rows (n,) and target rows (n,) of the links to rank; all rows are candidates in any case.
    `means` are r of CSLS for the sources and the targets, if a search has computed them already: computing them costs
    as much as all ranks.
    """
    sides = [(source_vectors, source_covered), (target_vectors, target_covered)]
    has_vector = [_with_direction(vectors, covered) for vectors, covered in sides]
    rows = links or (np.arange(len(source_vectors)), np.arange(len(source_vectors)))
    with full_precision():
        sources, targets = (_directions(side[0], kept, device) for side, kept in zip(sides, has_vector, strict=True))
        nearest: list[torch.Tensor | None] = [None, None]
        if means is not None:
            nearest = [
                torch.from_numpy(mean[kept].astype(np.float32)).to(device)
                for mean, kept in zip(means, has_vector, strict=True)
            ]
        elif csls_k is not None:
            nearest = [
                _mean_nearest(sources, targets, csls_k, chunk_bytes),
                _mean_nearest(targets, sources, csls_k, chunk_bytes),
            ]
        is_ranked = has_vector[0][rows[0]] & has_vector[1][rows[1]]
        # Only rows with a vector were kept: the index of a row among them is the number of such rows before it.
        ends = [
            torch.from_numpy((np.cumsum(kept) - 1)[linked[is_ranked]]).to(device)
            for kept, linked in zip(has_vector, rows, strict=True)
        ]
        forward = _count_at_least_as_good(sources, ends[0], targets, ends[1], nearest[1], chunk_bytes)
        backward = _count_at_least_as_good(targets, ends[1], sources, ends[0], nearest[0], chunk_bytes)
    num_sources, num_targets = len(has_vector[0]), len(has_vector[1])
    result: dict[Similarity, Ranks] = {}
    for index, similarity in enumerate(SIMILARITIES[: len(forward)]):
        result[similarity] = Ranks(
            _unranked_last(forward[index], is_ranked, num_targets),
            _unranked_last(backward[index], is_ranked, num_sources),
        )
    return result


def rank_matrix(
    scores: torch.Tensor, gold_rows: IntArray, gold_columns: IntArray, tolerance: float = SCORE_TOLERANCE
) -> Ranks:
    """Rank each gold entry (k,) of a score matrix (q, c) in its row and column; scores within `tolerance` are equal."""
    rows, columns = (
        torch.from_numpy(np.array(ids, dtype=np.int64)).to(scores.device) for ids in (gold_rows, gold_columns)
    )
    bars = scores[rows, columns] - tolerance
    return Ranks(_rank_rows(scores, rows, bars), _rank_rows(scores.T, columns, bars))


def _rank_rows(scores: torch.Tensor, rows: torch.Tensor, bars: torch.Tensor) -> IntArray:
    """Count the scores of each of these `rows` (k,) that reach the bar (k,) of the row, some rows at a time."""
    step = max(1, _MAX_COMPARED_ENTRIES // max(scores.shape[1], 1))
    counted = [
        _num_reaching(scores.index_select(0, chunk), chunk_bars[:, None])
        for chunk, chunk_bars in zip(torch.split(rows, step), torch.split(bars, step), strict=True)
    ]
    ranks: IntArray = torch.cat(counted).cpu().numpy()
    return ranks


def _num_reaching(scores: torch.Tensor, bars: torch.Tensor) -> torch.Tensor:
    """Count the scores of each row (k, c) that reach the bar (k, 1) of the row; the scores are overwritten.

    Comparing in place needs no extra memory, and summing 0/1 floats is about eight times as fast as summing booleans.
    The sum is exact below 2^24 columns.
    """
    return scores.ge_(bars).sum(dim=1).to(torch.int64)


def rank_edges(
    ends: IntArray,
    scores: npt.NDArray[Any],
    gold_ends: IntArray,
    gold_scores: npt.NDArray[Any],
    num_candidates: int,
    tolerance: float = SCORE_TOLERANCE,
) -> IntArray:
    """Rank gold edges (k,) among the edges (e,) of the same end; a gold pair that is no edge (score NaN) is last."""
    # Gold edges are few and edges many: gold edges are sorted by end, and each edge is compared with those of its end.
    order = np.argsort(gold_ends, kind="stable")
    num_ends = 1 + max(int(ends.max(initial=-1)), int(gold_ends.max(initial=-1)))
    gold_ptr = np.concatenate([[0], np.cumsum(np.bincount(gold_ends, minlength=num_ends))])
    as_good = np.zeros(len(gold_ends), dtype=np.int64)
    _count_rivals(ends, scores, gold_ptr, gold_scores[order].astype(np.float64) - tolerance, as_good)
    ranks = np.empty_like(as_good)
    ranks[order] = as_good
    return np.where(np.isnan(gold_scores), max(num_candidates, 2), ranks)


@compiled
def _count_rivals(
    ends: IntArray, scores: npt.NDArray[Any], gold_ptr: IntArray, bars: npt.NDArray[Any], as_good: IntArray
) -> None:
    """Count for each gold edge the edges of the same end whose score reaches the bar of the gold edge."""
    for edge in range(len(ends)):
        for gold in range(gold_ptr[ends[edge]], gold_ptr[ends[edge] + 1]):
            if scores[edge] >= bars[gold]:
                as_good[gold] += 1


def _with_direction(vectors: npt.NDArray[Any], covered: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    """Whether each row of (k, d) is covered and has a vector that is not zero, (k,)."""
    nonzero: npt.NDArray[np.bool_] = np.logical_or.reduce(vectors, axis=1)
    if covered is None:
        return nonzero
    if covered.shape != nonzero.shape:
        raise ArtifactError(f"a mask {covered.shape} does not cover {nonzero.shape} links")
    return nonzero & covered


def _directions(vectors: npt.NDArray[Any], kept: npt.NDArray[np.bool_], device: torch.device | str) -> torch.Tensor:
    """Copy the kept rows of (k, d) to the device and scale each to length 1; the caller's array is unchanged."""
    rows = torch.from_numpy(vectors[kept]).to(device, torch.float32)
    if not bool(torch.isfinite(rows).all()):
        raise ArtifactError("a covered vector holds NaN or infinity")
    # Dividing by the largest entry first keeps the squares of very long and very short vectors within float32.
    rows /= torch.linalg.vector_norm(rows, ord=torch.inf, dim=1, keepdim=True)
    rows /= torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows


def _score_buffer(num_queries: int, candidates: torch.Tensor, chunk_bytes: int) -> torch.Tensor:
    """Allocate the scores of a chunk, (rows, c), once: a new array for every chunk would double the peak memory."""
    rows = max(1, min(num_queries, chunk_bytes // (4 * max(len(candidates), 1))))
    return candidates.new_empty(rows, len(candidates))


def _mean_nearest(queries: torch.Tensor, candidates: torch.Tensor, k: int, chunk_bytes: int) -> torch.Tensor:
    """Compute the mean cosine of each query (q, d) to its k nearest candidates (c, d), (q,)."""
    means = torch.zeros(len(queries), device=queries.device)
    k = min(k, len(candidates))
    if k == 0:
        return means
    buffer = _score_buffer(len(queries), candidates, chunk_bytes)
    step = len(buffer)
    for start in range(0, len(queries), step):
        chunk = queries[start : start + step]
        scores = torch.mm(chunk, candidates.T, out=buffer[: len(chunk)])
        means[start : start + step] = scores.topk(k, dim=1, sorted=False).values.mean(dim=1)
    return means


def _count_at_least_as_good(
    queries: torch.Tensor,
    query_indices: torch.Tensor,
    candidates: torch.Tensor,
    gold_indices: torch.Tensor,
    candidate_means: torch.Tensor | None,
    chunk_bytes: int,
) -> IntArray:
    """Count the candidates (c, d) that score at least as high as the gold (q,) of each query: the ranks, (1 or 2, q).

    The first row is by cosine; the second, if `candidate_means` are given, by CSLS. `query_indices` (q,) are the rows
    of the queries.
    """
    num_scorings = 1 if candidate_means is None else 2
    ranks = torch.empty(num_scorings, len(query_indices), dtype=torch.int64, device=queries.device)
    buffer = _score_buffer(len(query_indices), candidates, chunk_bytes)
    step = len(buffer)
    with progress("ranking test links", len(query_indices), "links") as work:
        for start in range(0, len(query_indices), step):
            here = slice(start, start + step)
            chunk = queries[query_indices[here]]
            scores = torch.mm(chunk, candidates.T, out=buffer[: len(chunk)])
            indices = gold_indices[here, None]
            # The gold candidate is counted itself, once: a rank is 1 + the number of its rivals.
            if candidate_means is not None:
                # Half of CSLS, without the query's own mean: it is equal for all candidates and changes no rank.
                local = scores - candidate_means / 2
                ranks[1, here] = _num_reaching(local, local.gather(1, indices) - SCORE_TOLERANCE)
            ranks[0, here] = _num_reaching(scores, scores.gather(1, indices) - SCORE_TOLERANCE)
            work.advance(len(chunk))
    result: IntArray = ranks.cpu().numpy()
    return result


def _unranked_last(ranks: IntArray, is_ranked: npt.NDArray[np.bool_], num_candidates: int) -> IntArray:
    """Put the ranks at the links (k,) that are ranked; the other links are last, and at least 2nd."""
    result = np.full(len(is_ranked), max(num_candidates, 2), dtype=np.int64)
    result[is_ranked] = ranks
    return result
