"""Search with Faiss on the processor: exhaustive, by inverted lists (IVF), or over a graph of neighbours (HNSW).

In: `UnitRows` of queries and corpus, k, the recall wanted. Out: the k nearest as far as they were found, with exact
cosines, and the recall reached. This is the only file that imports Faiss.

The idea: IVF groups the corpus around centroids and reads the groups nearest to a query; HNSW goes from neighbour to
neighbour. Both have one number that trades time for recall (groups read; candidates kept on the way). It is not
guessed: a sample of the queries is searched exactly as well, and the number raised until the recall of the sample lies
two fifths of the way from the wanted recall to 1 (wanted .95, aimed at .97), then lowered while that holds. What is
reported is the recall of the sample at the number used. Faiss only proposes candidates, a few more than k; they are
scored anew from the original vectors, so IVF can hold its copy in half the memory, as float16.
Where neighbours lie scattered, IVF has to read many of its lists, the large ones first; and reading rows for one query
at a time was 12 times slower a row than a matrix product (150,000 rows of 384, two cores), so that a twentieth of the
lists took as long as everything. Where a fiftieth does not reach the recall, `exact_search` takes over and is exact;
but not where that would take hours: then the recall of a fiftieth has to do, with a warning.

Cost for n rows: IVF builds in O(n^1.5 d), n d 2 bytes; a query takes O(probes sqrt(n) d). HNSW builds in about
O(n log(n) d) with a large factor, n (4 d + 270) bytes. Seeded, and the same for any number of threads but for HNSW,
whose building would depend on which thread comes first; so it is built by one, and only the search uses all.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import FloatArray, IntArray, Neighbors, SearchRecord
from largegnn.machine.progress import progress
from largegnn.matching.exact_search import FLOAT64, Precision, exact_search, run_passes
from largegnn.matching.unit_rows import UnitRows, best_of, neighbors_of_rows

__all__ = ["MOST_EXACT", "RecallAim", "flat_search", "hnsw_search", "ivf_search"]

_log = logging.getLogger(__name__)

_SPARE = 6  # candidates beyond k, for what rounding swaps around the k-th
_PIECE_ROWS = 1 << 14
_LEAST_TRAINING, _TRAINING = 39, 64  # rows a centroid, at least and at most: more change little
_ROUNDS = 10
# Multiply-adds of an exact search that may take over: some twenty minutes on two cores.
MOST_EXACT = 1e14
_HNSW_LINKS, _HNSW_EFFORT, _HNSW_MOST = 32, 200, 4096


def flat_search(queries: UnitRows, corpus: UnitRows, k: int, *, max_bytes: int = 4_000_000_000) -> Neighbors:
    """The exact k nearest by exhaustive search, proven as in `exact_search`."""
    faiss = _faiss()

    def best(chunk: Tensor, tile: Tensor, size: int, m: int, _: Tensor | None) -> tuple[Tensor, Tensor]:
        scores, indices = faiss.knn(chunk.numpy(), tile[:size].numpy(), m, metric=faiss.METRIC_INNER_PRODUCT)
        return torch.from_numpy(scores), torch.from_numpy(indices)

    flat = Precision(best, None, _SPARE, tile_bytes=4, score_bytes=1, sum_unit=2.0**-23, output_unit=0.0)
    return run_passes(queries, corpus, k, (flat, FLOAT64), max_bytes=max_bytes)


@dataclass(frozen=True)
class RecallAim:
    """The recall to reach, on how many sampled queries, and the memory that their exact search may take.

    `most_read` is the share of its lists that IVF may read to get there.
    """

    recall: float = 0.95
    sample: int = 1000
    most_read: float = 0.02
    max_bytes: int = 4_000_000_000


def ivf_search(queries: UnitRows, corpus: UnitRows, k: int, aim: RecallAim, *, seed: int = 0) -> Neighbors:
    """The k nearest by inverted lists, as many of them read as the recall needs; exact where that is too many."""
    if not len(queries) or not len(corpus):
        return _nothing(len(queries), k)
    truth = _sample_truth(queries, corpus, k, aim, seed)
    faiss = _faiss()
    centroids = _centroids(corpus, seed)
    coarse = faiss.IndexFlatIP(corpus.dim)
    coarse.add(centroids.numpy())
    index = faiss.IndexIVFScalarQuantizer(
        coarse, corpus.dim, len(centroids), faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT, False
    )
    index.train(centroids.numpy())  # Faiss requires the call, though the centroids are final
    with progress("index", len(corpus), "rows") as work:
        for piece in _pieces(corpus):
            lists = (torch.from_numpy(piece) @ centroids.T).argmax(dim=1).numpy()
            index.add_core(len(piece), faiss.swig_ptr(piece), None, faiss.swig_ptr(lists))
            work.advance(len(piece))

    def search(rows: UnitRows, probes: int) -> tuple[IntArray, FloatArray]:
        def propose(piece: FloatArray, width: int) -> IntArray:
            scores, lists = (torch.from_numpy(piece) @ centroids.T).topk(probes, dim=1)
            index.nprobe = probes
            ids: IntArray = index.search_preassigned(piece, width, lists.numpy(), scores.numpy())[1]
            return ids

        return _search(propose, rows, corpus, k)

    probes, reached = _tune(truth, search, 1, math.ceil(aim.most_read * len(centroids)), "IVF lists read")
    is_affordable = float(len(queries)) * len(corpus) * corpus.dim <= MOST_EXACT
    if reached < aim.recall and aim.most_read < 1 and is_affordable:
        _log.info("too many lists to read: searching exactly, which takes little longer")
        found = exact_search(queries, corpus, k, max_bytes=aim.max_bytes)
        return replace(found, record=replace(found.record, method="torch"))
    return _found(*search(queries, probes), truth, reached)


def hnsw_search(queries: UnitRows, corpus: UnitRows, k: int, aim: RecallAim, *, seed: int = 0) -> Neighbors:
    """The k nearest over a graph of neighbours, searched as widely as the recall needs."""
    if not len(queries) or not len(corpus):
        return _nothing(len(queries), k)
    truth = _sample_truth(queries, corpus, k, aim, seed)
    faiss = _faiss()
    index = faiss.IndexHNSWFlat(corpus.dim, _HNSW_LINKS, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = _HNSW_EFFORT
    index.hnsw.rng = faiss.RandomGenerator(seed + 1)
    num_threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        with progress("index", len(corpus), "rows") as work:
            for piece in _pieces(corpus):
                index.add(piece)
                work.advance(len(piece))
    finally:
        faiss.omp_set_num_threads(num_threads)

    def search(rows: UnitRows, width: int) -> tuple[IntArray, FloatArray]:
        index.hnsw.efSearch = width
        return _search(lambda piece, num_wanted: index.search(piece, num_wanted)[1], rows, corpus, k)

    least = k + _SPARE
    width, reached = _tune(truth, search, least, max(min(len(corpus), _HNSW_MOST), least), "HNSW width")
    return _found(*search(queries, width), truth, reached)


@dataclass(frozen=True, eq=False)
class _Truth:
    """Sampled queries, and the exact score (s, 1) of the last neighbour each of them should find."""

    sample: UnitRows
    last_scores: FloatArray
    num_wanted: int
    wanted_recall: float

    def recall(self, scores: FloatArray) -> float:
        """The share of the neighbours that were found, by the scores (s, k) of what was found."""
        # A score as good as the last one counts: which of equals is found is chance.
        return float(np.mean(scores[:, : self.num_wanted] >= self.last_scores))


def _sample_truth(queries: UnitRows, corpus: UnitRows, k: int, aim: RecallAim, seed: int) -> _Truth:
    """Search a sample of the queries exactly."""
    chosen = np.random.default_rng([seed, 1]).permutation(len(queries))[: aim.sample]
    sample, num_wanted = queries.subset(np.sort(chosen)), min(k, len(corpus))
    found = exact_search(sample, corpus, num_wanted, max_bytes=aim.max_bytes)
    return _Truth(sample, found.scores[:, -1:], num_wanted, aim.recall)


def _tune(
    truth: _Truth,
    search: Callable[[UnitRows, int], tuple[IntArray, FloatArray]],
    least: int,
    most: int,
    effort_name: str,
) -> tuple[int, float]:
    """The effort from `least` to `most` that reaches the recall on the sample, and the recall it reaches."""

    def recall_of(effort: int) -> float:
        return truth.recall(search(truth.sample, effort)[1])

    goal = truth.wanted_recall + 0.4 * (1 - truth.wanted_recall)
    effort, reached = _least_effort(recall_of, goal, min(least, most), most)
    args = (effort_name, effort, most, reached, len(truth.sample), truth.wanted_recall)
    _log.info("%s: %d of at most %d, recall %.4f on %d queries; asked for %.4f", *args)
    return effort, reached


def _found(indices: IntArray, scores: FloatArray, truth: _Truth, reached: float) -> Neighbors:
    """What was found, and a warning where it is less than wanted."""
    if reached < truth.wanted_recall:
        _log.warning("the recall is %.4f at best, less than the %.4f asked for", reached, truth.wanted_recall)
    record = SearchRecord("approximate", recall=reached, recall_sample=len(truth.sample))
    return neighbors_of_rows(indices, scores, record)


def _least_effort(recall_of: Callable[[int], float], aim: float, least: int, most: int) -> tuple[int, float]:
    """The effort that reaches a recall, to about an eighth, and the recall it has; `most` where none does."""
    failed, effort = least - 1, least
    reached = recall_of(effort)
    while reached < aim and effort < most:
        failed, effort = effort, min(2 * effort, most)
        reached = recall_of(effort)
    while reached >= aim and effort - failed > max(1, effort // 8):
        middle = (failed + effort) // 2
        tried = recall_of(middle)
        if tried >= aim:
            effort, reached = middle, tried
        else:
            failed = middle
    return effort, reached


def _centroids(corpus: UnitRows, seed: int) -> Tensor:
    """Directions (c, d) of length 1 about which the corpus groups: k-means on a sample, by cosine."""
    # Faiss has the same, but took six times as long for its products when measured.
    num_lists = max(1, min(round(4 * math.sqrt(len(corpus))), len(corpus) // _LEAST_TRAINING))
    rng = np.random.default_rng(seed)
    sample = corpus.subset(np.sort(rng.permutation(len(corpus))[: _TRAINING * num_lists]))
    centroids = sample.take(np.sort(rng.permutation(len(sample))[:num_lists]))
    with progress("k-means", _ROUNDS * len(sample), "rows") as work:
        for _ in range(_ROUNDS):
            sums, counts = torch.zeros_like(centroids), torch.zeros(num_lists, dtype=torch.int64)
            for piece in map(torch.from_numpy, _pieces(sample)):
                nearest = (piece @ centroids.T).argmax(dim=1)
                sums.index_add_(0, nearest, piece)
                counts += torch.bincount(nearest, minlength=num_lists)
                work.advance(len(piece))
            empty = np.flatnonzero(counts.numpy() == 0)
            sums[torch.from_numpy(empty)] = sample.take(rng.integers(0, len(sample), len(empty)))
            centroids = torch.nn.functional.normalize(sums, dim=1)
    return centroids


def _pieces(rows: UnitRows) -> Iterator[FloatArray]:
    """Unit rows, some thousands at a time."""
    for start in range(0, len(rows), _PIECE_ROWS):
        yield rows.piece(start, start + _PIECE_ROWS).numpy()


def _search(
    propose: Callable[[FloatArray, int], IntArray], queries: UnitRows, corpus: UnitRows, k: int
) -> tuple[IntArray, FloatArray]:
    """Propose a few more than k indices for every query, and keep the k best by exact score."""
    width = min(k + _SPARE, len(corpus))
    proposed = []
    with progress("search", len(queries), "rows") as work:
        for piece in _pieces(queries):
            proposed.append(propose(piece, width))
            work.advance(len(piece))
    return best_of(queries, corpus, np.concatenate(proposed), k)


def _nothing(num_queries: int, k: int) -> Neighbors:
    """What is found where there is nothing to search."""
    scores = np.full((num_queries, k), -np.inf, dtype=np.float32)
    return neighbors_of_rows(np.full((num_queries, k), -1), scores, SearchRecord("approximate", recall=1.0))


def _faiss() -> Any:
    """The library; its generated wrapper warns about itself on import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import faiss
    return faiss
