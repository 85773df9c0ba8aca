"""Find neighbours approximately on the processor, by the inverted lists of Faiss (searcher `ivf`).

In: `UnitRows` of queries and corpus, k, the recall wanted. Out: the k nearest as far as they were found, with exact
cosines, and the recall reached. This is the only file that imports Faiss.

The idea: IVF groups the corpus around centroids and reads the groups nearest to a query. How many are read is not
guessed: a sample of the queries is searched exactly as well, and the number raised until the recall of the sample lies
two fifths of the way from the wanted recall to 1 (wanted .95, aimed at .97), then lowered while that holds. What is
reported is the recall of the sample at the number used. Faiss only proposes candidates, a few more than k; they are
scored anew from the original vectors, so its copy is held in half the memory, as float16.
Where neighbours lie scattered, IVF has to read many of its lists, the large ones first; and reading rows for one query
at a time was 12 times slower a row than a matrix product (150,000 rows of 384, two cores), so that a twentieth of the
lists took as long as everything. Where a fiftieth does not reach the recall, `exact_search` takes over and is exact;
but not where that would take hours: then the recall of a fiftieth has to do, with a warning.

Cost for n rows: O(n^1.5 d) to build, n d 2 bytes; a query takes O(probes sqrt(n) d). Seeded.
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

__all__ = ["MOST_EXACT", "ivf_search"]

_log = logging.getLogger(__name__)

_SPARE = 6  # candidates beyond k, for what rounding swaps around the k-th
_PIECE_ROWS = 1 << 14
_LEAST_TRAINING, _TRAINING = 39, 64  # rows a centroid, at least and at most: more change little
_ROUNDS = 10
_SAMPLE = 1000  # queries on which the recall is measured
_MOST_READ = 0.02  # of the lists
# Multiply-adds of an exact search that may take over: some twenty minutes on two cores.
MOST_EXACT = 1e14


def ivf_search(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """The k nearest by inverted lists, as many of them read as the recall needs; exact where that is too many."""
    if not len(queries) or not len(corpus):
        return exact_search(queries, corpus, k, options)
    chosen = np.random.default_rng([options.seed, 1]).permutation(len(queries))[:_SAMPLE]
    sample = queries.part(np.sort(chosen))
    truth = exact_search(sample, corpus, min(k, len(corpus)), options)
    index = _build(corpus, options)

    def recall_of(probes: int) -> float:
        # A score as good as the last one counts: which of equals is found is chance.
        scores = _search(index, probes, sample, corpus, k)[1]
        return float(np.mean(scores[:, : truth.k] >= truth.scores[:, -1:]))

    most = math.ceil(_MOST_READ * index.nlist)
    probes, reached = _fewest_probes(recall_of, options.recall + 0.4 * (1 - options.recall), most)
    args = (probes, most, reached, len(sample), options.recall)
    _log.info("IVF lists read: %d of at most %d, recall %.4f on %d queries; asked for %.4f", *args)
    if reached < options.recall:
        if float(len(queries)) * len(corpus) * corpus.dim <= MOST_EXACT:
            _log.info("too many lists to read: searching exactly, which takes little longer")
            return exact_search(queries, corpus, k, options)
        _log.warning("the recall is %.4f at best, less than the %.4f asked for", reached, options.recall)
    record = SearchRecord("ivf", recall=reached, recall_sample=len(sample))
    return neighbors_of_rows(*_search(index, probes, queries, corpus, k), record)


def _build(corpus: UnitRows, options: SearchOptions) -> Any:
    """An index of Faiss over the corpus, its lists by k-means on a sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the generated wrapper warns about itself on import
        import faiss
    num_lists = max(1, min(round(4 * math.sqrt(len(corpus))), len(corpus) // _LEAST_TRAINING))
    index: Any = faiss.index_factory(corpus.dim, f"IVF{num_lists},SQfp16", faiss.METRIC_INNER_PRODUCT)
    index.by_residual = False
    index.cp.seed, index.cp.niter, index.cp.min_points_per_centroid = options.seed, _ROUNDS, 1
    num_training = min(_TRAINING * num_lists, options.max_bytes // (16 * corpus.dim))
    chosen = np.random.default_rng(options.seed).permutation(len(corpus))[: max(num_training, num_lists)]
    index.train(np.concatenate(list(_pieces(corpus.part(np.sort(chosen))))))
    with progress("index", len(corpus), "rows") as work:
        for piece in _pieces(corpus):
            index.add(piece)
            work.advance(len(piece))
    return index


def _search(index: Any, probes: int, queries: UnitRows, corpus: UnitRows, k: int) -> tuple[IntArray, FloatArray]:
    """Indices and scores (q, k) of the nearest in the lists read; a few more are proposed, and scored exactly."""
    index.nprobe = probes
    proposed = []
    with progress("search", len(queries), "rows") as work:
        for piece in _pieces(queries):
            proposed.append(index.search(piece, min(k + _SPARE, len(corpus)))[1])
            work.advance(len(piece))
    return best_of(queries, corpus, np.concatenate(proposed), k)


def _fewest_probes(recall_of: Callable[[int], float], goal: float, most: int) -> tuple[int, float]:
    """The lists to read for a recall, to about an eighth, and the recall that gives; `most` where none does."""
    failed, probes = 0, 1
    reached = recall_of(probes)
    while reached < goal and probes < most:
        failed, probes = probes, min(2 * probes, most)
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
    """Unit rows, some thousands at a time."""
    for start in range(0, len(rows), _PIECE_ROWS):
        yield rows.read(slice(start, start + _PIECE_ROWS)).numpy()
