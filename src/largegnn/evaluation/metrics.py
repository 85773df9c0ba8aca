"""Rank the true links among all test links (the ideal setting), and measure how good the ranks are.

In: the vectors of both sides, and which row of one belongs to which of the other; or all scores as a matrix, or those
of candidate edges. Out: ranks in both directions; by `summarise`, their measures (hits, MRR).
The idea: a chunk of queries against all candidates is one matrix product; the score of the true partner is read from
that very product, so that it meets itself exactly, and whatever reaches it is counted. Nothing is sorted.

Ties count against us. Matrix products round equal vectors differently depending on where they stand, by some 1e-7; so
scores closer than 1e-6 are one score: a model that maps everything to one point ranks last, not by luck.
Uncovered entities have no vector. They compete with no one, and a link with an uncovered end is a miss: ranked last,
and never first. A vector of zeros has no direction, hence counts as uncovered.

Cost: O(n k d) for n of k links, one product per direction, and O(k^2 d) where CSLS needs its means; memory O(k d) and
two chunks of scores.
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
    "MEASURES",
    "MOST_PRODUCTS",
    "SAME_SCORE",
    "SCORINGS",
    "Measure",
    "Ranks",
    "Scoring",
    "rank_edges",
    "rank_links",
    "rank_links_by",
    "rank_matrix",
    "summarise",
]

Scoring = Literal["cosine", "csls"]
SCORINGS: tuple[Scoring, ...] = ("cosine", "csls")
SAME_SCORE = 1e-6
# Multiplications for the ranks by cosine and CSLS: some ten minutes on two cores, on a GPU one or two.
MOST_PRODUCTS = {"cpu": 1e13, "cuda": 2e15}
_COUNTED_AT_ONCE = 1 << 23  # entries of a matrix compared in one go


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where each link's true partner stands, 1 = best: (k,) int64, from either side."""

    source_to_target: IntArray
    target_to_source: IntArray

    def both_ways_hits(self) -> float:
        """H@1, mean of both directions."""
        return float(np.mean([(self.source_to_target == 1).mean(), (self.target_to_source == 1).mean()]))


Measure = Callable[[IntArray], float]
"""Takes the ranks (k,) of the true partners, 1 = best, and gives one number."""
MEASURES: dict[str, Measure] = {
    "hits@1": lambda ranks: float(np.mean(ranks <= 1)),
    "hits@5": lambda ranks: float(np.mean(ranks <= 5)),
    "hits@10": lambda ranks: float(np.mean(ranks <= 10)),
    "mrr": lambda ranks: float(np.mean(1.0 / ranks)),
}
DEFAULT_MEASURES = tuple(MEASURES)


def summarise(ranks: Ranks, measures: Sequence[str] = DEFAULT_MEASURES) -> RankFigures:
    """The measures of either direction and of both; None where there is no link to rank."""
    # Both directions rank the same number of links, so the mean of the two is the measure of all ranks together.
    both = np.concatenate([ranks.source_to_target, ranks.target_to_source])
    return RankFigures(*(_all(found, measures) for found in (ranks.source_to_target, ranks.target_to_source, both)))


def _all(ranks: IntArray, measures: Sequence[str]) -> dict[str, float | None]:
    return {name: MEASURES[name](ranks) if len(ranks) else None for name in measures}


def rank_links(
    source_vectors: npt.NDArray[Any],
    target_vectors: npt.NDArray[Any],
    scoring: Scoring = "csls",
    csls_k: int = 10,
    *,
    source_covered: npt.NDArray[np.bool_] | None = None,
    target_covered: npt.NDArray[np.bool_] | None = None,
    device: torch.device | str = "cpu",
    chunk_bytes: int = 1 << 28,
) -> Ranks:
    """Rank each link's target among all targets and its source among all sources, from vectors (k, d) and masks (k,).

    Row i of one side belongs to row i of the other. CSLS(s, t) = 2 cos(s, t) - r(s) - r(t), r the mean cosine to the
    `csls_k` nearest of the other side (all of them where there are fewer). The scores of a chunk take `chunk_bytes`, or
    one row where that is more; the default suits a processor's caches and 15K links, a GPU with 700K works faster with
    some gigabytes.
    """
    if scoring not in ("cosine", "csls") or csls_k < 1:
        raise ArtifactError(f"no such scoring: {scoring} with k = {csls_k}")
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
) -> dict[Scoring, Ranks]:
    """Rank by cosine and by CSLS (None: cosine alone) from the same products; see `rank_links`.

    `links` are the rows of both sides to rank, (n,) each; all rows are candidates in any case. `means` of either side
    are r of CSLS where a search knows them already; they cost as much as all ranks.
    """
    sides = [(source_vectors, source_covered), (target_vectors, target_covered)]
    has = [_with_direction(vectors, covered) for vectors, covered in sides]
    rows = links or (np.arange(len(source_vectors)), np.arange(len(source_vectors)))
    with full_precision():
        sources, targets = (_directions(side[0], kept, device) for side, kept in zip(sides, has, strict=True))
        nearest: list[torch.Tensor | None] = [None, None]
        if means is not None:
            nearest = [
                torch.from_numpy(r[kept].astype(np.float32)).to(device) for r, kept in zip(means, has, strict=True)
            ]
        elif csls_k is not None:
            nearest = [
                _mean_nearest(sources, targets, csls_k, chunk_bytes),
                _mean_nearest(targets, sources, csls_k, chunk_bytes),
            ]
        is_ranked = has[0][rows[0]] & has[1][rows[1]]
        # Only covered entities were kept; an index among them is the number of covered ones before it.
        ends = [
            torch.from_numpy((np.cumsum(kept) - 1)[own[is_ranked]]).to(device)
            for kept, own in zip(has, rows, strict=True)
        ]
        forward = _count_as_good(sources, ends[0], targets, ends[1], nearest[1], chunk_bytes)
        backward = _count_as_good(targets, ends[1], sources, ends[0], nearest[0], chunk_bytes)
    return {
        scoring: Ranks(_rest_last(there, is_ranked, len(has[1])), _rest_last(back, is_ranked, len(has[0])))
        for scoring, there, back in zip(SCORINGS, forward, backward, strict=False)
    }


def rank_matrix(scores: torch.Tensor, gold_rows: IntArray, gold_columns: IntArray, same: float = SAME_SCORE) -> Ranks:
    """Rank each gold entry (k,) of a score matrix (q, c) in its row and its column; scores within `same` are equal."""
    rows, columns = (
        torch.from_numpy(np.array(ids, dtype=np.int64)).to(scores.device) for ids in (gold_rows, gold_columns)
    )
    bars = scores[rows, columns] - same
    return Ranks(_rank_rows(scores, rows, bars), _rank_rows(scores.T, columns, bars))


def _rank_rows(scores: torch.Tensor, rows: torch.Tensor, bars: torch.Tensor) -> IntArray:
    """How many scores of each of these rows (k,) reach its bar (k,), some rows at a time."""
    step = max(1, _COUNTED_AT_ONCE // max(scores.shape[1], 1))
    counted = [
        _num_reaching(scores.index_select(0, some), bar[:, None])
        for some, bar in zip(torch.split(rows, step), torch.split(bars, step), strict=True)
    ]
    ranks: IntArray = torch.cat(counted).cpu().numpy()
    return ranks


def _num_reaching(scores: torch.Tensor, bars: torch.Tensor) -> torch.Tensor:
    """How many scores of each row (k, c) reach the row's bar (k, 1); the scores are lost.

    Ones and zeros in their place need no room, add up exactly in float32 below 2^24 of them, and eight times as fast
    as truth values.
    """
    return scores.ge_(bars).sum(dim=1).to(torch.int64)


def rank_edges(
    ends: IntArray,
    scores: npt.NDArray[Any],
    gold_ends: IntArray,
    gold_scores: npt.NDArray[Any],
    num_candidates: int,
    same: float = SAME_SCORE,
) -> IntArray:
    """Rank gold edges (k,) among the edges (e,) that share their end; one that is no edge (NaN) is last of all."""
    # Golds are few and edges many: golds are sorted by end, and each edge is compared with those of its end.
    order = np.argsort(gold_ends, kind="stable")
    num_ends = 1 + max(int(ends.max(initial=-1)), int(gold_ends.max(initial=-1)))
    gold_ptr = np.concatenate([[0], np.cumsum(np.bincount(gold_ends, minlength=num_ends))])
    as_good = np.zeros(len(gold_ends), dtype=np.int64)
    _count_rivals(ends, scores, gold_ptr, gold_scores[order].astype(np.float64) - same, as_good)
    ranks = np.empty_like(as_good)
    ranks[order] = as_good
    return np.where(np.isnan(gold_scores), max(num_candidates, 2), ranks)


@compiled
def _count_rivals(
    ends: IntArray, scores: npt.NDArray[Any], gold_ptr: IntArray, bars: npt.NDArray[Any], as_good: IntArray
) -> None:
    """Count, for each gold of an end, the edges of that end whose score reaches its bar."""
    for edge in range(len(ends)):
        for gold in range(gold_ptr[ends[edge]], gold_ptr[ends[edge] + 1]):
            if scores[edge] >= bars[gold]:
                as_good[gold] += 1


def _with_direction(vectors: npt.NDArray[Any], covered: npt.NDArray[np.bool_] | None) -> npt.NDArray[np.bool_]:
    """Which rows of (k, d) have a vector that points somewhere, (k,)."""
    nonzero: npt.NDArray[np.bool_] = np.logical_or.reduce(vectors, axis=1)
    if covered is None:
        return nonzero
    if covered.shape != nonzero.shape:
        raise ArtifactError(f"a mask {covered.shape} does not cover {nonzero.shape} links")
    return nonzero & covered


def _directions(vectors: npt.NDArray[Any], kept: npt.NDArray[np.bool_], device: torch.device | str) -> torch.Tensor:
    """The kept rows of (k, d) on the device, of length 1; a copy, so that the caller's array stays as it is."""
    rows = torch.from_numpy(vectors[kept]).to(device, torch.float32)
    if not bool(torch.isfinite(rows).all()):
        raise ArtifactError("a covered vector holds NaN or infinity")
    # Dividing by the largest entry first keeps the squares of very long and very short vectors within float32.
    rows /= torch.linalg.vector_norm(rows, ord=torch.inf, dim=1, keepdim=True)
    rows /= torch.linalg.vector_norm(rows, dim=1, keepdim=True)
    return rows


def _score_buffer(num_queries: int, candidates: torch.Tensor, chunk_bytes: int) -> torch.Tensor:
    """Room for the scores of a chunk, (rows, c): made once, since two chunks alive would be twice the memory."""
    rows = max(1, min(num_queries, chunk_bytes // (4 * max(len(candidates), 1))))
    return candidates.new_empty(rows, len(candidates))


def _mean_nearest(queries: torch.Tensor, candidates: torch.Tensor, k: int, chunk_bytes: int) -> torch.Tensor:
    """For each query (q, d) the mean cosine to its k nearest candidates (c, d), (q,)."""
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


def _count_as_good(
    queries: torch.Tensor,
    query_indices: torch.Tensor,
    candidates: torch.Tensor,
    gold_indices: torch.Tensor,
    candidate_means: torch.Tensor | None,
    chunk_bytes: int,
) -> IntArray:
    """How many candidates (c, d) each query at an index (q,) scores as high as its gold (q,): its rank, (1 or 2, q).

    By cosine, and by CSLS where means are given.
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
            # The gold is among those counted, once: that is the 1 in "1 + number of others".
            if candidate_means is not None:
                # Half of CSLS, which is exact, less the query's own mean, which is the same for all its candidates.
                local = scores - candidate_means / 2
                ranks[1, here] = _num_reaching(local, local.gather(1, indices) - SAME_SCORE)
            ranks[0, here] = _num_reaching(scores, scores.gather(1, indices) - SAME_SCORE)
            work.advance(len(chunk))
    result: IntArray = ranks.cpu().numpy()
    return result


def _rest_last(ranks: IntArray, ranked: npt.NDArray[np.bool_], num_candidates: int) -> IntArray:
    """Spread ranks over the links (k,) that have one; the others are last, and not first even when alone."""
    result = np.full(len(ranked), max(num_candidates, 2), dtype=np.int64)
    result[ranked] = ranks
    return result
