"""The exact search in pieces: ranges of queries against ranges of the corpus, on the workers of a cluster.

In: `UnitRows` of queries and corpus, k, a pool of workers. Out: what the search in one piece gives, to the bit.
The idea: the score of a pair depends on nothing but its two rows (`unit_rows`), and the k best of the whole are among
the k best of each range; keys of score and index merge by taking the largest. The corpus goes out range by range, each
to every machine once; the queries of a piece go with it. Memory here: one range of the corpus, some of the queries.
Cost: that of the search, and q d + c d numbers sent to each machine for each range of the corpus.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import Neighbors, SearchRecord
from largegnn.machine.progress import progress
from largegnn.machine.worker_pool import WorkerPool
from largegnn.matching.torch_search import torch_search
from largegnn.matching.unit_rows import NO_KEY, UnitRows, neighbors_of_rows, pack, unpack

if TYPE_CHECKING:
    from largegnn.matching.searchers import SearchOptions

__all__ = ["search_in_pieces", "search_piece"]

_PIECES = 4  # ranges of queries for each worker: enough that nobody waits long for the last one
_FEWEST = 256  # queries of a piece, unless there are fewer
_CORPUS_BYTES = 1 << 30


def search_in_pieces(
    queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions, pool: WorkerPool
) -> Neighbors:
    """The k nearest of the corpus for every query, exactly."""
    here = dataclasses.replace(options, device="cpu")
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64)
    counts = np.zeros(2, dtype=np.int64)
    rows = max(1, _CORPUS_BYTES // (4 * corpus.dim))
    step = max(_FEWEST, -(-len(queries) // (_PIECES * pool.num_workers)))
    starts = range(0, len(queries), step)
    with progress("search", -(-len(corpus) // rows) * len(queries), "rows") as work:
        for first in range(0, len(corpus), rows):
            shared = pool.share(_plain(corpus, first, first + rows))
            pieces = _pieces(queries, starts, step, shared, first, k, here, pool.device)
            for number, (found, passes) in pool.run(search_piece, pieces):
                part = slice(starts[number], starts[number] + len(found))
                keys[part] = torch.cat([keys[part], torch.from_numpy(found.copy())], dim=1).topk(k, dim=1).values
                counts += passes
                work.advance(len(found))
    indices, scores = unpack(keys)
    record = SearchRecord("exact", num_float32=int(counts[0]), num_float64=int(counts[1]))
    return neighbors_of_rows(indices, scores, record)


def search_piece(
    queries: npt.NDArray[Any],
    corpus: npt.NDArray[Any],
    first: int,
    k: int,
    options: SearchOptions,
    device: str,
) -> tuple[npt.NDArray[np.int64], tuple[int, int]]:
    """Keys (q, k) of the nearest rows of a range of the corpus that begins at index `first`, and counts of passes."""
    max_bytes = options.max_bytes
    found = torch_search(UnitRows(queries), UnitRows(corpus), k, device=device, half=options.half, max_bytes=max_bytes)
    indices = torch.from_numpy(found.ids.astype(np.int64))
    keys = pack(torch.from_numpy(found.scores.copy()), indices + first).masked_fill_(indices < 0, NO_KEY)
    return keys.numpy(), (found.record.num_float32, found.record.num_float64)


def _pieces(
    queries: UnitRows, starts: range, step: int, shared: Any, first: int, k: int, options: SearchOptions, device: str
) -> Iterator[tuple[Any, ...]]:
    """The arguments of each piece, made when it is next."""
    for start in starts:
        yield _plain(queries, start, start + step), shared, first, k, options, device


def _plain(rows: UnitRows, start: int, stop: int) -> npt.NDArray[Any]:
    """The rows of the indices from start to stop as they were given, in memory."""
    return np.array(rows.vectors[start:stop] if rows.kept is None else rows.vectors[rows.kept[start:stop]])
