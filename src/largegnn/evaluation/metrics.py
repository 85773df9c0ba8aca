"""Rank the true links among all test links (the ideal setting), and measure how good the ranks are.

In: the vectors of the test links' two ends, row i of one side belonging to row i of the other. Out: ranks in both
directions; by `summarise`, their measures (hits, MRR).
The idea: a chunk of queries against all candidates is one matrix product; the score of the true partner is read from
that very product, so that it meets itself exactly, and whatever reaches it is counted. Nothing is sorted.

Ties count against us. Matrix products round equal vectors differently depending on where they stand, by some 1e-7; so
scores closer than 1e-6 are one score: a model that maps everything to one point ranks last, not by luck.
Uncovered entities have no vector. They compete with no one, and a link with an uncovered end is a miss: ranked last,
and never first. A vector of zeros has no direction, hence counts as uncovered. An entity of two links stands in two
rows and ties with itself, so links that are not one to one are ranked too low, never too high.

Cost: O(n k d) for n of k links, one product per direction, and O(k^2 d) where CSLS needs its means; memory O(k d) and
one chunk of scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import FloatArray, IntArray, Mask
from largegnn.artifacts.report import RankFigures
from largegnn.errors import ArtifactError
from largegnn.machine.compiled import compiled
from largegnn.machine.devices import num_processors
from largegnn.machine.pieces import by_all_processors
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
    "have_direction",
    "hits_at_1",
    "hits_at_5",
    "hits_at_10",
    "mrr",
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
_PIECE = 1 << 14  # rows read in one go
_COUNTED_AT_ONCE = 1 << 23  # entries compared in one go
_EDGES_AT_ONCE = 1 << 18  # that one processor counts, at least


@dataclass(frozen=True, eq=False)
class Ranks:
    """Where each link's true partner stands, 1 = best: (k,) int64, from either side."""

    source_to_target: IntArray
    target_to_source: IntArray

    def some(self, links: IntArray) -> Ranks:
        """Those of some links (m,)."""
        return Ranks(self.source_to_target[links], self.target_to_source[links])

    def with_others(self, replaced: Mask, others: Ranks | None) -> Ranks:
        """These, but those of the links in `replaced` (k,) from `others`, which has no more than them."""
        if others is None:
            return self
        both = np.stack([self.source_to_target, self.target_to_source])
        both[:, replaced] = others.source_to_target, others.target_to_source
        return Ranks(*both)

    def both_ways_hits(self) -> float:
        """H@1, mean of both directions."""
        return float(np.mean([(self.source_to_target == 1).mean(), (self.target_to_source == 1).mean()]))


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


Measure = Callable[[IntArray], float]
"""Takes the ranks (k,) of the true partners, 1 = best, and gives one number."""
MEASURES: dict[str, Measure] = {"hits@1": hits_at_1, "hits@5": hits_at_5, "hits@10": hits_at_10, "mrr": mrr}
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

    CSLS(s, t) = 2 cos(s, t) - r(s) - r(t), r the mean cosine to the `csls_k` nearest of the other side (all of them
    where there are fewer). The scores of a chunk take `chunk_bytes`, or one row of k scores where that is more; the
    default suits a processor's caches and 15K links, a GPU with 700K works faster with some gigabytes.
    """
    if scoring not in ("cosine", "csls") or csls_k < 1:
        raise ArtifactError(f"no such scoring: {scoring} with k = {csls_k}")
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
    csls_k: int | None = 10,
    means: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
    ranked: IntArray | None = None,
    source_covered: npt.NDArray[np.bool_] | None = None,
    target_covered: npt.NDArray[np.bool_] | None = None,
    device: torch.device | str = "cpu",
    chunk_bytes: int = 1 << 28,
) -> dict[Scoring, Ranks]:
    """Rank by cosine and by CSLS (None: cosine alone) from the same products; see `rank_links`.

    `ranked` (n,) are the links to rank, None for all; every link's ends are candidates in any case. `means` (k,) of
    either side are r of CSLS where a search knows them already; they cost as much as all ranks.
    """
    if source_vectors.ndim != 2 or source_vectors.shape != target_vectors.shape:
        raise ArtifactError(f"links need two (k, d) arrays, not {source_vectors.shape} and {target_vectors.shape}")
    has_source = _with_direction(source_vectors, source_covered)
    has_target = _with_direction(target_vectors, target_covered)
    with full_precision():
        sources = _directions(source_vectors, has_source, device)
        targets = _directions(target_vectors, has_target, device)
        source_means = target_means = None
        if means is not None:
            source_means, target_means = (
                torch.from_numpy(mean[has].astype(np.float32)).to(device)
                for mean, has in zip(means, (has_source, has_target), strict=True)
            )
        elif csls_k is not None:
            source_means = _mean_nearest(sources, targets, csls_k, chunk_bytes)
            target_means = _mean_nearest(targets, sources, csls_k, chunk_bytes)
        chosen = np.arange(len(has_source)) if ranked is None else ranked
        both = (has_source & has_target)[chosen]
        # Only covered entities were kept; a link's index among them is the number of covered ones before it.
        source_indices = torch.from_numpy((np.cumsum(has_source) - 1)[chosen[both]]).to(device)
        target_indices = torch.from_numpy((np.cumsum(has_target) - 1)[chosen[both]]).to(device)
        forward = _count_as_good(sources, source_indices, targets, target_indices, target_means, chunk_bytes)
        backward = _count_as_good(targets, target_indices, sources, source_indices, source_means, chunk_bytes)
    last = max(len(has_source), 2)  # and not first even when alone
    return {
        scoring: Ranks(_rest_last(there, both, last), _rest_last(back, both, last))
        for scoring, there, back in zip(SCORINGS, forward, backward, strict=False)
    }


def rank_matrix(scores: torch.Tensor, gold_rows: IntArray, gold_columns: IntArray, same: float = SAME_SCORE) -> Ranks:
    """Rank each gold entry (k,) of a score matrix (q, c) in its row and its column; scores within `same` are equal."""
    indices = [torch.from_numpy(np.array(ids, dtype=np.int64)).to(scores.device) for ids in (gold_rows, gold_columns)]
    gold = scores[indices[0], indices[1]]
    ranks = torch.zeros(2, len(gold), dtype=torch.int64, device=scores.device)
    # An entity of several links has several golds: one of each row and column at a time.
    for layer in _layers(gold_rows, gold_columns):
        chosen = torch.from_numpy(layer).to(scores.device)
        row_gold = torch.full((scores.shape[0],), torch.inf, device=scores.device)
        column_gold = torch.full((scores.shape[1],), torch.inf, device=scores.device)
        row_gold[indices[0][chosen]] = gold[chosen] - same
        column_gold[indices[1][chosen]] = gold[chosen] - same
        in_rows = torch.empty(scores.shape[0], dtype=torch.int64, device=scores.device)
        in_columns = torch.zeros(scores.shape[1], dtype=torch.int64, device=scores.device)
        room = _counting_room(scores)
        step = max(len(room), 1)
        for start in range(0, len(scores), step):
            chunk = scores[start : start + step]
            in_rows[start : start + step] = _reaching(chunk, row_gold[start : start + step, None], room).sum(dim=1)
            in_columns += _reaching(chunk, column_gold, room).sum(dim=0).to(torch.int64)
        ranks[0, chosen] = in_rows[indices[0][chosen]]
        ranks[1, chosen] = in_columns[indices[1][chosen]]
    forward, backward = ranks.cpu().numpy()
    return Ranks(forward, backward)


def _layers(rows: IntArray, columns: IntArray) -> Iterator[IntArray]:
    """Indices (k,) in layers, so that no row and no column comes twice in one layer."""
    left = np.arange(len(rows))
    while len(left):
        first_of_row = np.unique(rows[left], return_index=True)[1]
        among = left[np.sort(first_of_row)]
        layer = among[np.sort(np.unique(columns[among], return_index=True)[1])]
        yield layer
        left = np.setdiff1d(left, layer, assume_unique=True)


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
    gold_ptr = np.zeros(num_ends + 1, dtype=np.int64)
    np.cumsum(np.bincount(gold_ends, minlength=num_ends), out=gold_ptr[1:])
    bars = gold_scores[order].astype(np.float64) - same
    ends, scores = np.asarray(ends, dtype=np.int32), np.asarray(scores, dtype=np.float32)

    def count(first: int, last: int) -> npt.NDArray[np.int32]:
        # Edges of one end may lie in several pieces, so each piece counts for itself.
        counted = np.zeros(len(gold_ends), dtype=np.int32)
        _count_rivals(first, last, ends, scores, gold_ptr, bars, counted)
        return counted

    size = max(_EDGES_AT_ONCE, -(-len(ends) // num_processors()))
    as_good = np.zeros(len(gold_ends), dtype=np.int64)
    for counted in by_all_processors(count, len(ends), size):
        as_good += counted
    ranks = np.empty_like(as_good)
    ranks[order] = as_good
    return np.where(np.isnan(gold_scores), max(num_candidates, 2), ranks)


@compiled
def _count_rivals(
    first: int,
    last: int,
    ends: IntArray,
    scores: npt.NDArray[Any],
    gold_ptr: IntArray,
    bars: npt.NDArray[Any],
    as_good: IntArray,
) -> None:
    """Count, for each gold of an end, the edges from `first` to `last` of that end whose score reaches its bar."""
    for edge in range(first, last):
        for gold in range(gold_ptr[ends[edge]], gold_ptr[ends[edge] + 1]):
            if scores[edge] >= bars[gold]:
                as_good[gold] += 1


def have_direction(vectors: FloatArray, ids: IntArray) -> Mask:
    """Which of the vectors (n, d) with these ids (k,) are not zero, (k,); some thousands are read at a time."""
    pieces = by_all_processors(lambda first, last: vectors[ids[first:last]].any(axis=1), len(ids), _PIECE)
    return np.concatenate([*pieces, np.zeros(0, dtype=bool)])


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
                bars = scores.gather(1, indices) - SAME_SCORE
                room = _counting_room(scores)
                for first in range(0, len(scores), max(len(room), 1)):
                    some = slice(first, first + len(room))
                    ranks[0, here][some] = _reaching(scores[some], bars[some], room).sum(dim=1)
                # Half of CSLS, which is exact, less the query's own mean, which is the same for all its candidates.
                scores -= candidate_means / 2
            # Ones and zeros in place of the scores need no room, and add up exactly in float32 below 2^24 candidates.
            ranks[-1, here] = scores.ge_(scores.gather(1, indices) - SAME_SCORE).sum(dim=1).to(torch.int64)
            work.advance(len(chunk))
    result: IntArray = ranks.cpu().numpy()
    return result


def _counting_room(scores: torch.Tensor) -> torch.Tensor:
    """Room for as many rows of a matrix (q, c) as are compared in one go, at least one."""
    return torch.empty_like(scores[: max(1, _COUNTED_AT_ONCE // max(scores.shape[1], 1))])


def _reaching(scores: torch.Tensor, bars: torch.Tensor, room: torch.Tensor) -> torch.Tensor:
    """One where a score (q, c) reaches its bar, else zero, in `room`.

    Ones and zeros of float32 add up exactly below 2^24 of them, and eight times as fast as truth values.
    """
    return torch.ge(scores, bars, out=room[: len(scores)])


def _rest_last(ranks: IntArray, ranked: npt.NDArray[np.bool_], last: int) -> IntArray:
    """Spread ranks over the links (k,) that have one; the others are last."""
    result = np.full(len(ranked), last, dtype=np.int64)
    result[ranked] = ranks
    return result
