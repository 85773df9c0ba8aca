"""Find the nearest of a corpus exactly, by matrix products in chunks, on a processor or a GPU (searcher `torch`).

In: `UnitRows` of queries and corpus, k. Out: the k nearest of each query by cosine, ties by index, proven.
The idea: products of float32 rank all pairs fast and a little wrong; the k + spare best by these are scored again
exactly; and a query is done when its k-th exact score lies above anything the other candidates could have, which is
their fast score and a bound on its error. The few queries that are not done are searched again, more precisely: a GPU
begins with shortened factors (TF32) and goes on to float32; at last every pair is scored in float64, which ends also
where whole rows tie. So the result depends on neither the precision, nor blocks, nor the pieces of queries that
`map_pieces` computes.
Cost: O(q c d) products and 4 c bytes of scores a query, in chunks. The corpus passes through the device in tiles, each
read once (a million rows of 384 are one tile within 4 GB); the queries are read once a tile. Memory stays below that
of the options.
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
_TILE_ALIGNMENT = 8 * _BLOCK  # blocks come in eights, which keeps rows of maxima aligned for wide reads
_LOAD_ROWS = 1 << 15
_TILE_SHARE, _CHUNK_SHARE = 0.62, 0.25  # of the memory allowed; the rest is for what is made along the way
_CHUNK_ROWS = {"cpu": 256, "cuda": _LOAD_ROWS}  # at most; what is made of more does not stay in a processor's cache
_BYTES_IN_FLOAT64 = 20, 48  # of a number of a tile, and of a score, with all that is made of it
_WORTH_SENDING = 1e11  # multiply-adds: they take one core some seconds
_FEWEST_QUERIES, _PIECES_EACH = 256, 4  # of a piece; pieces for each of several workers


@dataclass(frozen=True)
class Precision:
    """How products are made: the relative error of a factor, and how many candidates beyond k are scored again.

    A spare candidate is cheap, a second search is not; shortened factors blur ranks far more than float32 does.
    """

    product: Product
    factor_error: float
    spare: int

    def error(self, dim: int) -> float:
        """By how much the exact score of two rows may exceed their fast score.

        Factors with a relative error of f change a product of unit rows by at most 2 f + f^2. Summing d products with
        unit roundoff u in any order is off by at most about d u; u = 2^-23 here, twice what rounding to nearest needs,
        since tensor cores cut bits off. The exact score itself is rounded to float32, 2^-24. The 1.01 covers the
        lengths, which are 1 only within rounding, and the arithmetic of this very bound.
        """
        return 1.01 * (self.factor_error * (2 + self.factor_error) + (dim + 1) * 2.0**-23)


TF32 = Precision("tf32", 2.0**-10, spare=54)  # 10 bits of a factor's fraction are left, the others cut off
FLOAT32 = Precision("float32", 0.0, spare=6)
_PASSES = {"cpu": (FLOAT32,), "cuda": (TF32, FLOAT32)}


def exact_search(queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions) -> Neighbors:
    """The k nearest of the corpus for every query, on the device, or in pieces on the workers of a cluster."""
    send = float(len(queries)) * len(corpus) * corpus.dim >= _WORTH_SENDING
    options = replace(options, device=piece_device(options.device, send))
    workers = num_workers(send, gpus=True, own_threads=True)
    size = -(-len(queries) // (_PIECES_EACH * workers)) if workers > 1 else len(queries)
    cuts = list(pieces(len(queries), max(size, _FEWEST_QUERIES))) or [(0, 0)]
    found = list(map_pieces(search_piece, cuts, queries, corpus, k, options, send=send, gpus=True, own_threads=True))
    counts = {name: sum(getattr(part.record, name) for part in found) for name in ("num_float32", "num_float64")}
    ids, scores = (np.concatenate([getattr(part, name) for part in found]) for name in ("ids", "scores"))
    return neighbors_of_rows(ids, scores, SearchRecord("torch", **counts))


def search_piece(
    first: int, last: int, queries: UnitRows, corpus: UnitRows, k: int, options: SearchOptions
) -> Neighbors:
    """The k nearest of the corpus for the queries from `first` to `last`: what a pass cannot prove goes to the next."""
    queries = queries.part(slice(first, last))
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64)
    left = np.arange(len(queries) if len(corpus) else 0)
    counts = {"num_float32": 0}
    with full_precision():
        for precision in _PASSES[torch.device(options.device).type]:
            if precision is not TF32 and len(left) < len(queries):
                counts["num_float32"] = len(left)
            if len(left):
                rest = queries if len(left) == len(queries) else queries.part(left)
                with training_precision(precision.product):
                    keys[left], is_proven = _search_fast(rest, corpus, k, precision, options)
                left = left[~is_proven.numpy()]
        if len(left):
            keys[left] = _search_in_float64(queries.part(left), corpus, k, options)
    return neighbors_of_rows(*unpack(keys), SearchRecord("torch", **counts, num_float64=len(left)))


def _search_fast(
    queries: UnitRows, corpus: UnitRows, k: int, precision: Precision, options: SearchOptions
) -> tuple[Tensor, Tensor]:
    """Keys (q, k) of the nearest, and for which queries (q,) they are proven."""
    device = options.device
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64, device=device)
    ceiling = torch.full((len(queries),), -torch.inf, device=device)  # above which no candidate left out can be
    tile_rows = int(options.max_bytes * _TILE_SHARE) // (4 * corpus.dim)
    tile_rows = max(tile_rows // _TILE_ALIGNMENT, 1) * _TILE_ALIGNMENT
    error = precision.error(corpus.dim)
    with progress("search", -(-len(corpus) // tile_rows) * len(queries), "rows") as work:
        for first in range(0, len(corpus), tile_rows):
            size = min(tile_rows, len(corpus) - first)
            tile, m = _load_tile(corpus, first, size, device), min(k + precision.spare, size)
            step = _chunk_rows(options, max(4 * len(tile), 16 * m * corpus.dim), len(queries))
            # Allocated once: fresh memory for every chunk costs a processor a quarter of the time.
            room = tile.new_empty(step, len(tile))
            # Queries are read in larger pieces than they are searched in: a GPU that waits for each chunk idles.
            for start in range(0, len(queries), _LOAD_ROWS):
                here = slice(start, start + _LOAD_ROWS)
                parts = (torch.split(part, step) for part in (queries.read(here, device), keys[here], ceiling[here]))
                for rows, best, highest in zip(*parts, strict=True):
                    scores = torch.mm(rows, tile.T, out=room[: len(rows)])
                    scores[:, size:] = -torch.inf
                    fast, indices = _best_of_rows(scores, m)
                    found = pack(exact_scores(rows, tile[indices]), indices + first)
                    best[:] = torch.cat([best, found], dim=1).topk(k, dim=1).values
                    if m < size:
                        highest[:] = torch.maximum(highest, fast[:, -1] + error)
                    work.advance(len(rows))
            del tile, room
    # Above, not equal: a candidate left out could have the same score and the smaller index.
    return keys.cpu(), (scores_of(keys[:, min(k, len(corpus)) - 1]) > ceiling).cpu()


def _load_tile(corpus: UnitRows, first: int, size: int, device: str) -> Tensor:
    """The unit rows of the corpus from index `first` on, `size` of them and rows of zeros up to whole blocks."""
    tile = torch.zeros(-(-size // _TILE_ALIGNMENT) * _TILE_ALIGNMENT, corpus.dim, device=device)
    for start, stop in pieces(size, _LOAD_ROWS):
        tile[start:stop] = corpus.read(slice(first + start, first + stop), device)
    return tile


def _chunk_rows(options: SearchOptions, row_bytes: int, num_rows: int) -> int:
    """How many queries are searched at a time."""
    fitting = max(1, int(options.max_bytes * _CHUNK_SHARE) // row_bytes)
    return min(fitting, _CHUNK_ROWS[torch.device(options.device).type], num_rows)


def _best_of_rows(scores: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """The m highest of each row (q, c), best first, and where they are; c a multiple of the block.

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
    """Keys (q, k) of the nearest by all scores, summed in float64 and rounded to float32: right without proof."""
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
