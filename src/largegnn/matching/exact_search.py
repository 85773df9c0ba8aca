"""Find the exact nearest neighbours by matrix products in chunks, on a processor or a GPU (searcher `torch`).

In: `UnitRows` of queries and corpus, k. Out: the k nearest of each query by cosine, ties by index, proven.
The idea: float32 products score all pairs, fast and with small errors. The best k + spare candidates are scored again
exactly. A query is done if its k-th exact score is above the fast score of every other candidate plus a bound on its
error. The few other queries are searched again more precisely: a GPU begins with reduced precision (TF32), then uses
float32; the last pass scores every pair in float64, which also handles rows that tie. So the result depends neither on
the precision, nor on blocks, nor on the pieces of queries that `map_pieces` computes.
Cost: O(q c d) products and 4 c bytes of scores per query, in chunks. The corpus is read once, in tiles (a million rows
of 384 are one tile within 4 GB), the queries once per tile. Memory stays below the maximum of the options.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import Neighbors, SearchRecord
from largegnn.machine.pieces import map_pieces, num_workers, piece_device, pieces
from largegnn.machine.precision import Precision as Product
from largegnn.machine.precision import full_precision, training_precision
from largegnn.machine.progress import progress
from largegnn.matching.search import SearchOptions
from largegnn.matching.unit_rows import NO_KEY, UnitRows, exact_scores, neighbors_of_rows, pack, scores_of, unpack

__all__ = ["FLOAT32", "TF32", "Precision", "exact_search", "search_piece"]

_BLOCK = 64
_TILE_ALIGNMENT = 8 * _BLOCK  # eight blocks, which keeps rows of maxima aligned for wide reads
_LOAD_ROWS = 1 << 15
_TILE_SHARE, _CHUNK_SHARE = 0.62, 0.25  # of the maximum memory; the rest is for intermediate results
_CHUNK_ROWS = {"cpu": 256, "cuda": _LOAD_ROWS}  # at most; the scores of more rows exceed a processor's cache
_BYTES_IN_FLOAT64 = 20, 48  # per number of a tile and per score, with all intermediate results
_WORTH_SENDING = 1e11  # multiply-adds from which work is sent to other machines: one core needs some seconds
_MIN_QUERIES, _PIECES_PER_WORKER = 256, 4  # of a piece; pieces for each of several workers


@dataclass(frozen=True)
class Precision:
    """The precision of products: the relative error of a factor, and how many candidates beyond k are scored again.

    A spare candidate is cheaper than a second search; reduced precision changes ranks far more than float32.
    """

    product: Product
    factor_error: float
    spare: int

    def error(self, dim: int) -> float:
        """Bound how much the exact score of two rows may exceed their fast score.

        Factors with a relative error of f change a product of unit rows by at most 2 f + f^2. Summing d products with
        unit roundoff u in any order is off by at most about d u; u = 2^-23 here, twice what rounding to nearest needs,
        since tensor cores truncate. The exact score itself is rounded to float32, 2^-24. The 1.01 covers the
        lengths, which are 1 only up to rounding, and the rounding of this bound itself.
        """
        return 1.01 * (self.factor_error * (2 + self.factor_error) + (dim + 1) * 2.0**-23)


TF32 = Precision("tf32", 2.0**-10, spare=54)  # 10 bits of a factor's fraction are kept, the others truncated
FLOAT32 = Precision("float32", 0.0, spare=6)
_PASSES = {"cpu": (FLOAT32,), "cuda": (TF32, FLOAT32)}


def exact_search(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """Find the k nearest of the corpus for every query, on the device, or in pieces on the workers of a cluster."""
    send = float(len(queries)) * len(corpus) * corpus.dim >= _WORTH_SENDING
    options = replace(options, device=piece_device(options.device, send))
    workers = num_workers(send, gpus=True, own_threads=True)
    size = -(-len(queries) // (_PIECES_PER_WORKER * workers)) if workers > 1 else len(queries)
    ranges = list(pieces(len(queries), max(size, _MIN_QUERIES))) or [(0, 0)]
    found = list(map_pieces(search_piece, ranges, queries, corpus, k, options, send=send, gpus=True, own_threads=True))
    counts = {name: sum(getattr(part.record, name) for part in found) for name in ("num_float32", "num_float64")}
    ids, scores = (np.concatenate([getattr(part, name) for part in found]) for name in ("ids", "scores"))
    return neighbors_of_rows(ids, scores, SearchRecord("torch", **counts))


def search_piece(
    first: int, last: int, queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions
) -> Neighbors:
    """Find the k nearest for the queries from `first` to `last`; unproven queries go to the next pass."""
    queries = queries.part(slice(first, last))
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64)
    unproven = np.arange(len(queries) if len(corpus) else 0)
    counts = {"num_float32": 0}
    with full_precision():
        for precision in _PASSES[torch.device(options.device).type]:
            if precision is not TF32 and len(unproven) < len(queries):
                counts["num_float32"] = len(unproven)
            if len(unproven):
                rest = queries if len(unproven) == len(queries) else queries.part(unproven)
                with training_precision(precision.product):
                    keys[unproven], is_proven = _search_fast(rest, corpus, k, precision, options)
                unproven = unproven[~is_proven.numpy()]
        if len(unproven):
            keys[unproven] = _search_in_float64(queries.part(unproven), corpus, k, options)
    return neighbors_of_rows(*unpack(keys), SearchRecord("torch", **counts, num_float64=len(unproven)))


def _search_fast(
    queries: UnitRows, corpus: UnitRows, k: int, precision: Precision, options: SearchOptions
) -> tuple[Tensor, Tensor]:
    """Find the keys (q, k) of the nearest, and whether those of each query (q,) are proven."""
    device = options.device
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64, device=device)
    ceiling = torch.full((len(queries),), -torch.inf, device=device)  # bound on the scores of rejected candidates
    tile_rows = int(options.max_bytes * _TILE_SHARE) // (4 * corpus.dim)
    tile_rows = max(tile_rows // _TILE_ALIGNMENT, 1) * _TILE_ALIGNMENT
    error = precision.error(corpus.dim)
    with progress("search", -(-len(corpus) // tile_rows) * len(queries), "rows") as work:
        for first in range(0, len(corpus), tile_rows):
            size = min(tile_rows, len(corpus) - first)
            tile, m = _load_tile(corpus, first, size, device), min(k + precision.spare, size)
            step = _chunk_rows(options, max(4 * len(tile), 16 * m * corpus.dim), len(queries))
            # Allocated once: fresh memory for every chunk costs a processor a quarter of the time.
            buffer = tile.new_empty(step, len(tile))
            # Queries are read in larger pieces than they are searched in: a GPU that waits for each chunk idles.
            for start in range(0, len(queries), _LOAD_ROWS):
                here = slice(start, start + _LOAD_ROWS)
                parts = (torch.split(part, step) for part in (queries.read(here, device), keys[here], ceiling[here]))
                for rows, best, highest in zip(*parts, strict=True):
                    scores = torch.mm(rows, tile.T, out=buffer[: len(rows)])
                    scores[:, size:] = -torch.inf
                    fast, indices = _best_of_rows(scores, m)
                    found = pack(exact_scores(rows, tile[indices]), indices + first)
                    best[:] = torch.cat([best, found], dim=1).topk(k, dim=1).values
                    if m < size:
                        highest[:] = torch.maximum(highest, fast[:, -1] + error)
                    work.advance(len(rows))
            del tile, buffer
    # Above, not equal: a rejected candidate could have an equal score and a smaller index.
    return keys.cpu(), (scores_of(keys[:, min(k, len(corpus)) - 1]) > ceiling).cpu()


def _load_tile(corpus: UnitRows, first: int, size: int, device: str) -> Tensor:
    """Read `size` unit rows of the corpus from index `first` on, and add rows of zeros up to whole blocks."""
    tile = torch.zeros(-(-size // _TILE_ALIGNMENT) * _TILE_ALIGNMENT, corpus.dim, device=device)
    for start, stop in pieces(size, _LOAD_ROWS):
        tile[start:stop] = corpus.read(slice(first + start, first + stop), device)
    return tile


def _chunk_rows(options: SearchOptions, row_bytes: int, num_rows: int) -> int:
    """Compute how many queries are searched at a time."""
    fitting = max(1, int(options.max_bytes * _CHUNK_SHARE) // row_bytes)
    return min(fitting, _CHUNK_ROWS[torch.device(options.device).type], num_rows)


def _best_of_rows(scores: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Find the m highest of each row (q, c), best first, and their indices; c is a multiple of the block.

    The row is read once, for the maxima of blocks of 64 candidates; only the blocks with the highest maxima are read
    again. A block is every b-th candidate, so that neighbouring threads of a GPU read neighbouring scores.
    """
    num_queries, num_blocks = len(scores), scores.shape[1] // _BLOCK
    if num_blocks <= m:
        values, indices = scores.topk(m, dim=1)
        return values, indices
    grid = scores.view(num_queries, _BLOCK, num_blocks)
    # The m best lie in the m blocks of the highest maxima: any other block has m candidates above all of its own.
    blocks = grid.amax(dim=1).topk(m, dim=1, sorted=False).indices
    inside = grid.gather(2, blocks[:, None, :].expand(-1, _BLOCK, -1)).reshape(num_queries, _BLOCK * m)
    values, indices = inside.topk(m, dim=1)
    return values, (indices // m) * num_blocks + blocks.gather(1, indices % m)


def _search_in_float64(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Tensor:
    """Find the keys (q, k) of the nearest by all scores, summed in float64 and rounded to float32: no proof needed."""
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64)
    number_bytes, score_bytes = _BYTES_IN_FLOAT64
    tile_rows = max(1, int(options.max_bytes * _TILE_SHARE) // (number_bytes * corpus.dim))
    for first, last in pieces(len(corpus), min(tile_rows, _LOAD_ROWS)):
        tile = corpus.read(slice(first, last), options.device).double()
        indices = torch.arange(first, last, device=tile.device)
        step = _chunk_rows(options, score_bytes * len(tile), len(queries))
        for start, stop in pieces(len(queries), step):
            scores = (queries.read(slice(start, stop), options.device).double() @ tile.T).float()
            found = pack(scores, indices).topk(min(k, len(tile)), dim=1).values.cpu()
            keys[start:stop] = torch.cat([keys[start:stop], found], dim=1).topk(k, dim=1).values
    return keys
