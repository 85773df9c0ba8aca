"""Find nearest neighbours approximately on the processor, by the inverted lists (IVF) of Faiss (searcher `ivf`).

In: `UnitRows` of queries and corpus, k, the required recall. Out: the nearest neighbours found, with exact cosines, and
the measured recall. This is the only file that imports Faiss.
The idea: IVF groups the corpus around centroids and reads the groups nearest to a query. The number of groups is
measured: a sample of the queries is searched exactly, too, and the number is raised until the recall of the sample is
two fifths of the way from the required recall to 1 (.97 for .95), then lowered while it stays there. Faiss holds
float16 rows and proposes a few more than k candidates, which are scored exactly. If a fiftieth of the lists does not
reach the recall, `exact_search` replaces IVF, or, if that would take hours, the search warns and keeps its recall.
Cost for n rows: O(n^1.5 d) to build, 2 n d bytes; O(probes sqrt(n) d) per query. Seeded.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from largegnn.artifacts import FloatArray, IntArray, Neighbors, SearchRecord
from largegnn.machine.progress import progress
from largegnn.matching.exact_search import exact_search
from largegnn.matching.search import SearchOptions
from largegnn.matching.unit_rows import UnitRows, best_of, neighbors_of_rows

__all__ = ["MAX_EXACT_MULTIPLICATIONS", "ivf_search"]

_log = logging.getLogger(__name__)

_SPARE = 6  # candidates beyond k, since rounding may exchange candidates near the k-th
_PIECE_ROWS = 1 << 14
_MIN_TRAINING_ROWS, _MAX_TRAINING_ROWS = 39, 64  # rows for each centroid; more change little
_KMEANS_ITERATIONS = 10
_SAMPLE = 1000  # queries on which the recall is measured
_MAX_LISTS_READ = 0.02  # of the lists: reading rows for single queries is 12 times slower per row than a matrix product
# Maximum multiply-adds of an exact search that replaces IVF: about twenty minutes on two cores.
MAX_EXACT_MULTIPLICATIONS = 1e14


def ivf_search(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """Find the k nearest by as many inverted lists as the recall needs; exactly if that is too many lists."""
    if not len(queries) or not len(corpus):
        return exact_search(queries, corpus, k, options)
    chosen = np.random.default_rng([options.seed, 1]).permutation(len(queries))[:_SAMPLE]
    sample = queries.part(np.sort(chosen))
    truth = exact_search(sample, corpus, min(k, len(corpus)), options)
    index = _build(corpus, options)

    def recall_of(probes: int) -> float:
        # Scores as high as the k-th exact score count: which of several equal candidates is found is chance.
        scores = _search(index, probes, sample, corpus, k)[1]
        return float(np.mean(scores[:, : truth.k] >= truth.scores[:, -1:]))

    max_probes = math.ceil(_MAX_LISTS_READ * index.nlist)
    probes, reached = _find_probes(recall_of, options.recall + 0.4 * (1 - options.recall), max_probes)
    args = (probes, max_probes, reached, len(sample), options.recall)
    _log.info("IVF lists read: %d of at max_probes %d, recall %.4f on %d queries; asked for %.4f", *args)
    if reached < options.recall:
        if float(len(queries)) * len(corpus) * corpus.dim <= MAX_EXACT_MULTIPLICATIONS:
            _log.info("too many lists to read: searching exactly, which takes little longer")
            return exact_search(queries, corpus, k, options)
        _log.warning("the recall is %.4f at best, less than the %.4f asked for", reached, options.recall)
    record = SearchRecord("ivf", recall=reached, recall_sample=len(sample))
    return neighbors_of_rows(*_search(index, probes, queries, corpus, k), record)


def _build(corpus: UnitRows, options: SearchOptions) -> Any:
    """Build an index of Faiss over the corpus, with lists by k-means on a sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the generated wrapper warns about itself on import
        import faiss
    num_lists = max(1, min(round(4 * math.sqrt(len(corpus))), len(corpus) // _MIN_TRAINING_ROWS))
    index: Any = faiss.index_factory(corpus.dim, f"IVF{num_lists},SQfp16", faiss.METRIC_INNER_PRODUCT)
    index.by_residual = False
    index.cp.seed, index.cp.niter, index.cp.min_points_per_centroid = options.seed, _KMEANS_ITERATIONS, 1
    num_training = min(_MAX_TRAINING_ROWS * num_lists, options.max_bytes // (16 * corpus.dim))
    chosen = np.random.default_rng(options.seed).permutation(len(corpus))[: max(num_training, num_lists)]
    index.train(np.concatenate(list(_pieces(corpus.part(np.sort(chosen))))))
    with progress("index", len(corpus), "rows") as work:
        for piece in _pieces(corpus):
            index.add(piece)
            work.advance(len(piece))
    return index


def _search(index: Any, probes: int, queries: UnitRows, corpus: UnitRows, k: int) -> tuple[IntArray, FloatArray]:
    """Find indices and scores (q, k) of the nearest in the lists that are read, scored exactly."""
    index.nprobe = probes
    proposed = []
    with progress("search", len(queries), "rows") as work:
        for piece in _pieces(queries):
            proposed.append(index.search(piece, min(k + _SPARE, len(corpus)))[1])
            work.advance(len(piece))
    return best_of(queries, corpus, np.concatenate(proposed), k)


def _find_probes(recall_of: Callable[[int], float], goal: float, max_probes: int) -> tuple[int, float]:
    """Find the number of lists for a recall, within about an eighth, and their recall; at most `max_probes`."""
    failed, probes = 0, 1
    reached = recall_of(probes)
    while reached < goal and probes < max_probes:
        failed, probes = probes, min(2 * probes, max_probes)
        reached = recall_of(probes)
    while reached >= goal and probes - failed > max(1, probes // 8):
        middle = (failed + probes) // 2
        tried = recall_of(middle)
        if tried >= goal:
            probes, reached = middle, tried
        else:
            failed = middle
    return probes, reached


def _pieces(rows: UnitRows) -> Iterator[FloatArray]:
    """Read unit rows, some thousands at a time."""
    for start in range(0, len(rows), _PIECE_ROWS):
        yield rows.read(slice(start, start + _PIECE_ROWS)).numpy()
