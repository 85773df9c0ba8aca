"""Exact search for the nearest of a corpus, as matrix products in chunks, on a processor or a GPU.

In: `UnitRows` of queries and corpus, k. Out: the k nearest of each query by cosine, ties by index, proven.

The idea: scores are computed fast and a little wrong; the k + spare best by these are scored again exactly; and a
query is done when its k-th exact score lies above anything the other candidates could have, which is their fast score
and a bound on its error. The few queries that are not done are searched again, more precisely: in half precision
first (GPU), then in float32, at last in float64, which ends also where whole rows tie. So the result does not depend
on the precision one starts with.

The best of a row are found without looking at the row twice: the scores of a chunk are written once, read once for
the maxima of blocks of 64 candidates, and only the blocks with the highest maxima, which hold the best candidates for
certain, are looked into. A block is every b-th candidate, not neighbouring ones, so that neighbouring threads of a
GPU read neighbouring scores.

Cost: O(q c d) products, 2 c bytes of scores a query in half precision, written and read once. The corpus passes
through the device in tiles, each moved once (a million rows of 384 are one tile within 4 GB); the queries are moved
once a tile. Memory stays below `max_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from largegnn.artifacts import Neighbors, SearchRecord
from largegnn.machine.precision import full_precision
from largegnn.machine.progress import progress
from largegnn.matching.unit_rows import NO_KEY, UnitRows, exact_scores, neighbors_of_rows, pack, scores_of, unpack

__all__ = ["FLOAT32", "FLOAT64", "HALF", "Scoring", "See", "run_passes", "torch_search"]

_BLOCK = 64
_TILE_ALIGNMENT = 8 * _BLOCK  # blocks come in eights, which keeps rows of maxima aligned for wide reads
_LOAD_ROWS = 1 << 15
_TILE_SHARE, _CHUNK_SHARE = 0.62, 0.25  # of the memory allowed; the rest is for what is made along the way
_CHUNK_BYTES = {"cpu": 1 << 28, "cuda": 1 << 31}  # larger chunks gain nothing more


# Shown the scores (q, c) of some queries with some of the corpus, padded columns at the end of it included, and the
# index of the first query and of the first row.
See = Callable[[Tensor, int, int], None]


@dataclass(frozen=True)
class Scoring:
    """One way to score a chunk of queries against a tile: what it costs and how wrong it may be.

    `best(queries, tile, size, m, room)` gives fast scores (q, m), best first, and indices (q, m) of the best among the
    first `size` rows of a tile (c, d); rows beyond are padding, `room` (q or more, c) is for scores of `score_type`.
    `shorten` turns unit rows into what `best` reads (None: as they are). `tile_bytes` and `score_bytes` are for one
    number of a tile and one score with all that is made of it. `sum_unit` and `output_unit` are the relative errors of
    an addition and of storing a score; `proves` says that the scores are exact.
    """

    best: Callable[[Tensor, Tensor, int, int, Tensor | None], tuple[Tensor, Tensor]]
    shorten: Callable[[Tensor], Tensor] | None
    spare: int
    tile_bytes: int
    score_bytes: int
    sum_unit: float
    output_unit: float
    score_type: torch.dtype | None = None
    proves: bool = False

    def error(self, query_slips: Tensor, tile_slip: Tensor, last: Tensor, dim: int) -> Tensor:
        """By how much a true score (q,) may exceed a fast one that is at most `last` (q,).

        Let q, c be unit rows, q', c' as shortened, at distances a = |q - q'| and b = |c - c'|, both measured, not
        estimated. Then q.c - q'.c' = (q - q').c + q'.(c - c') <= a + (1 + a) b. Summing d products with unit roundoff
        u in any order is off by at most about d u |q'| |c'|; u = 2^-23 here, twice what rounding to nearest needs,
        since tensor cores cut bits off. Rounding the sum to 11 bits keeps order, so a sum whose rounded value is at
        most x is at most x + 2^-11 |x| (2^-25 near zero). The exact score itself is rounded to float32, 2^-24. The
        factor covers the lengths, which are 1 only within rounding, and the arithmetic of this very bound.
        """
        shortened = query_slips + (1 + query_slips) * tile_slip
        rounded = self.output_unit * last.abs().clamp_min(2.0**-14) + 2.0**-23
        return 1.01 * (shortened + dim * self.sum_unit + rounded)


def torch_search(
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    *,
    device: torch.device | str = "cpu",
    half: bool | None = None,
    max_bytes: int = 4_000_000_000,
) -> Neighbors:
    """The k nearest of the corpus for every query; `half` starts in half precision (None: where that is a GPU)."""
    if half is None:
        half = torch.device(device).type == "cuda"
    passes = (HALF, FLOAT32, FLOAT64) if half else (FLOAT32, FLOAT64)
    return run_passes(queries, corpus, k, passes, device=device, max_bytes=max_bytes)


def run_passes(
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    passes: Sequence[Scoring],
    *,
    device: torch.device | str = "cpu",
    max_bytes: int = 4_000_000_000,
    see: See | None = None,
) -> Neighbors:
    """Search by the first scoring, then what it could not prove by the next, and so on; the last proves everything.

    `see` is shown all scores of the first.
    """
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64)
    counts = dict.fromkeys((FLOAT32, FLOAT64), 0)
    left = torch.arange(len(queries) if len(corpus) else 0)
    with full_precision():
        for scoring in passes:
            if not len(left):
                break
            if scoring is not passes[0]:
                counts[scoring] = len(left)
            subset = queries if len(left) == len(queries) else queries.subset(left.numpy())
            shown = see if scoring is passes[0] else None
            found, proven = _search_pass(subset, corpus, k, scoring, device, max_bytes, shown)
            keys[left] = found.cpu()
            left = left[~proven.cpu()]
    indices, scores = unpack(keys)
    record = SearchRecord("exact", num_float32=counts[FLOAT32], num_float64=counts[FLOAT64])
    return neighbors_of_rows(indices, scores, record)


def _search_pass(
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    scoring: Scoring,
    device: torch.device | str,
    max_bytes: int,
    see: See | None,
) -> tuple[Tensor, Tensor]:
    """Keys (q, k) of the nearest, and for which queries (q,) they are proven; both on the device."""
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64, device=device)
    ceiling = torch.full((len(queries),), -torch.inf, device=device)
    tile_rows = int(max_bytes * _TILE_SHARE) // (scoring.tile_bytes * corpus.dim)
    tile_rows = max(tile_rows // _TILE_ALIGNMENT, 1) * _TILE_ALIGNMENT
    chunk_bytes = min(int(max_bytes * _CHUNK_SHARE), _CHUNK_BYTES.get(torch.device(device).type, 1 << 28))
    num_tiles = -(-len(corpus) // tile_rows)
    with progress("search", num_tiles * len(queries), "rows") as work:
        for first in range(0, len(corpus), tile_rows):
            tile = _load_tile(corpus, first, min(tile_rows, len(corpus) - first), scoring, device)
            m = min(k + scoring.spare, tile.size)
            step = max(1, chunk_bytes // max(scoring.score_bytes * len(tile.exact), 16 * m * corpus.dim))
            step = min(step, len(queries), _LOAD_ROWS)
            # Made once: fresh memory for every chunk costs a processor a quarter of the time.
            room = tile.exact.new_empty(step, len(tile.exact), dtype=scoring.score_type) if scoring.score_type else None
            # Queries come in larger pieces than they are searched in: a GPU that waits for each chunk idles in between.
            for piece_start, piece in queries.pieces(_LOAD_ROWS, device):
                for start in range(0, len(piece), step):
                    rows = piece[start : start + step]
                    here = slice(piece_start + start, piece_start + start + len(rows))
                    found, highest = _search_tile(rows, tile, m, scoring, room)
                    keys[here] = torch.cat([keys[here], found], dim=1).topk(k, dim=1).values
                    ceiling[here] = torch.maximum(ceiling[here], highest)
                    if see is not None and room is not None:
                        see(room[: len(rows)], here.start, first)
                    work.advance(len(rows))
            del tile, room
    # Above, not equal: a candidate left out could have the same score and the smaller index.
    return keys, scores_of(keys[:, min(k, len(corpus)) - 1]) > ceiling


def _search_tile(rows: Tensor, tile: _Tile, m: int, scoring: Scoring, room: Tensor | None) -> tuple[Tensor, Tensor]:
    """Keys (q, m) of the best of a tile for unit rows (q, d), and what no other can exceed, (q,)."""
    short_rows = rows if scoring.shorten is None else scoring.shorten(rows)
    fast, indices = scoring.best(short_rows, tile.short, tile.size, m, room)
    if scoring.proves:
        return pack(fast, indices + tile.first), fast.new_full((len(rows),), -torch.inf)
    found = pack(exact_scores(rows, tile.exact[indices]), indices + tile.first)
    last = fast[:, -1].float()
    if m == tile.size:
        return found, torch.full_like(last, -torch.inf)
    return found, last + scoring.error(_slips(rows, short_rows), tile.slip, last, rows.shape[1])


@dataclass(frozen=True, eq=False)
class _Tile:
    """Rows of the corpus from index `first` on, on the device: `size` of them and padding.

    `exact` (c, d) are the unit rows, `short` (c, d) the same as scored, `slip` the largest distance between the two.
    """

    first: int
    size: int
    exact: Tensor
    short: Tensor
    slip: Tensor


def _load_tile(corpus: UnitRows, first: int, size: int, scoring: Scoring, device: torch.device | str) -> _Tile:
    """Read, normalise and shorten the rows of a tile."""
    num_rows = -(-size // _TILE_ALIGNMENT) * _TILE_ALIGNMENT
    exact = torch.zeros(num_rows, corpus.dim, device=device)
    for start, rows in corpus.between(first, first + size).pieces(_LOAD_ROWS, device):
        exact[start : start + len(rows)] = rows
    slip = torch.zeros((), device=device)
    if scoring.shorten is None:
        return _Tile(first, size, exact, exact, slip)
    short = torch.empty_like(exact, dtype=scoring.shorten(exact[:1]).dtype)
    for start in range(0, num_rows, _LOAD_ROWS):
        piece = exact[start : start + _LOAD_ROWS]
        short[start : start + _LOAD_ROWS] = scoring.shorten(piece)
        slip = torch.maximum(slip, _slips(piece, short[start : start + _LOAD_ROWS]).max())
    return _Tile(first, size, exact, short, slip)


def _slips(rows: Tensor, shortened: Tensor) -> Tensor:
    """How far rows (n, d) are from their shortened form, (n,)."""
    if shortened is rows:
        return rows.new_zeros(len(rows))
    distances: Tensor = torch.linalg.vector_norm(rows - shortened.float(), dim=1)
    return distances


def _best_by_product(queries: Tensor, tile: Tensor, size: int, m: int, room: Tensor | None) -> tuple[Tensor, Tensor]:
    """The m highest scores, written into the room there is for them in its precision."""
    assert room is not None
    scores = room[: len(queries)]
    if queries.dtype == room.dtype:
        torch.mm(queries, tile.T, out=scores)
    else:
        scores.copy_(queries @ tile.T)  # rows that were rounded but are kept as float32: away from a GPU
    scores[:, size:] = -torch.inf
    return _best_of_rows(scores, m)


def _best_in_float64(queries: Tensor, tile: Tensor, size: int, m: int, room: Tensor | None) -> tuple[Tensor, Tensor]:
    """The m highest scores, summed in float64 and rounded to float32, equal ones by index: right without proof."""
    scores = (queries @ tile[:size].T).float()
    keys = pack(scores, torch.arange(size, device=tile.device)).topk(m, dim=1).values
    return scores_of(keys), 0xFFFFFFFF - (keys & 0xFFFFFFFF)


def _best_of_rows(scores: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """The m highest of each row (q, c), best first, and where they are; c a multiple of the block."""
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


def _to_half(rows: Tensor) -> Tensor:
    """Rounded to float16; kept as float32 where there is no fast float16 product."""
    return rows.half() if rows.is_cuda else rows.half().float()


# A spare candidate is cheap, a second search is not; half precision blurs ranks far more than float32 does.
_TRUNCATED = 2.0**-23
HALF = Scoring(_best_by_product, _to_half, 54, 6, 2, _TRUNCATED, output_unit=2.0**-11, score_type=torch.float16)
FLOAT32 = Scoring(_best_by_product, None, 6, 4, 4, _TRUNCATED, output_unit=0.0, score_type=torch.float32)
FLOAT64 = Scoring(_best_in_float64, torch.Tensor.double, 0, 12, 40, sum_unit=0.0, output_unit=0.0, proves=True)
