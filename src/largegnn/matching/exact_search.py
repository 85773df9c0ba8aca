"""Find the nearest of a corpus exactly, by matrix products in chunks, on a processor or a GPU; one way or both ways.

In: `UnitRows` of queries and corpus, k. Out: the k nearest of each query by cosine, ties by index, proven.
The idea: scores are computed fast and a little wrong; the k + spare best by these are scored again exactly; and a
query is done when its k-th exact score lies above anything the other candidates could have, which is their fast score
and a bound on its error. The few queries that are not done are searched again, more precisely: in half precision
first (GPU), then in float32, at last in float64, which ends also where whole rows tie. So the result does not depend
on the precision one starts with, nor on the pieces of queries that `map_pieces` computes.
Both ways on a processor (`exact_search_both`): products are most of the work, and those of the way back are the same
numbers. So each target keeps the k + spare best of the scores computed for the sources. For 15,000 x 15,000 rows of
256 that takes 2.6 s on one core, two searches 4.1 s; a GPU has products to spare.
Cost: O(q c d) products, 2 c bytes of scores a query in half precision, written and read once. The corpus passes
through the device in tiles, each moved once (a million rows of 384 are one tile within 4 GB); the queries are moved
once a tile. Memory stays below `max_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import IntArray, Neighbors, SearchRecord
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import by_all_processors, map_pieces, num_workers, piece_device, piece_size, pieces
from largegnn.machine.precision import full_precision
from largegnn.machine.progress import progress
from largegnn.matching.unit_rows import NO_KEY, UnitRows, exact_scores, neighbors_of_rows, pack, scores_of, unpack

__all__ = ["FLOAT32", "FLOAT64", "HALF", "Precision", "exact_search", "exact_search_both", "run_passes"]

_BLOCK = 64
_TILE_ALIGNMENT = 8 * _BLOCK  # blocks come in eights, which keeps rows of maxima aligned for wide reads
_LOAD_ROWS = 1 << 15
_TILE_SHARE, _CHUNK_SHARE = 0.62, 0.25  # of the memory allowed; the rest is for what is made along the way
_CHUNK_BYTES = {"cpu": 1 << 28, "cuda": 1 << 31}  # larger chunks gain nothing more
_WORTH_SENDING = 1e11  # multiply-adds: they take one core some seconds
_FEWEST_QUERIES, _PIECES_EACH = 256, 4  # of a piece; pieces for each of several workers
_RESCORED_BYTES = 1 << 28  # of rows that are copied to be scored again, at most
_BYTES_RESCORED = 24  # for a number of such a row: as it is, and in float64
_SOURCES_TOGETHER = 32  # whose scores are compared with the best of a target in one go

# Gets the scores (q, c) of some queries with some of the corpus, padded columns at the end of it included, and the
# index of the first query and of the first row.
OnScores = Callable[[Tensor, int, int], None]


@dataclass(frozen=True)
class Precision:
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


def exact_search(
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    *,
    device: torch.device | str = "cpu",
    half: bool | None = None,
    max_bytes: int = 4_000_000_000,
) -> Neighbors:
    """The k nearest of the corpus for every query; `half` starts in half precision (None: where that is a GPU)."""
    send = float(len(queries)) * len(corpus) * corpus.dim >= _WORTH_SENDING
    device, workers = piece_device(str(device), send), num_workers(send, gpus=True, own_threads=True)
    size = -(-len(queries) // (_PIECES_EACH * workers)) if workers > 1 else len(queries)
    cuts = list(pieces(len(queries), max(size, _FEWEST_QUERIES))) or [(0, 0)]
    known = (queries, corpus, k, device, half, max_bytes)
    found = list(map_pieces(search_piece, cuts, *known, send=send, gpus=True, own_threads=True))
    record = SearchRecord(
        "exact",
        num_float32=sum(part.record.num_float32 for part in found),
        num_float64=sum(part.record.num_float64 for part in found),
    )
    ids, scores = (np.concatenate([getattr(part, name) for part in found]) for name in ("ids", "scores"))
    return neighbors_of_rows(ids, scores, record)


def search_piece(
    first: int,
    last: int,
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    device: str,
    half: bool | None,
    max_bytes: int,
) -> Neighbors:
    """The k nearest of the corpus for the queries from `first` to `last`."""
    if half is None:
        half = torch.device(device).type == "cuda"
    passes = (HALF, FLOAT32, FLOAT64) if half else (FLOAT32, FLOAT64)
    return run_passes(queries.between(first, last), corpus, k, passes, device=device, max_bytes=max_bytes)


def exact_search_both(
    sources: UnitRows, targets: UnitRows, k: int, *, max_bytes: int = 4_000_000_000
) -> tuple[Neighbors, Neighbors]:
    """The k nearest targets of every source, and the k nearest sources of every target, on a processor."""
    best = _BestOfTargets(len(targets), min(k + FLOAT32.spare, len(sources)))
    passes = (FLOAT32, FLOAT64)
    near_targets = run_passes(sources, targets, k, passes, max_bytes=max_bytes, on_scores=best.update)
    if not len(sources) or not len(targets):
        return near_targets, run_passes(targets, sources, k, (FLOAT64,))
    with full_precision():
        keys, is_proven = best.rescored(sources, targets, k, max_bytes)
    indices, scores = unpack(keys)
    left = np.flatnonzero(~is_proven)
    if len(left):
        found = run_passes(targets.subset(left), sources, k, (FLOAT64,), max_bytes=max_bytes)
        indices[left], scores[left] = found.ids, found.scores
    return near_targets, neighbors_of_rows(indices, scores, SearchRecord("exact", num_float64=len(left)))


def run_passes(
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    passes: Sequence[Precision],
    *,
    device: torch.device | str = "cpu",
    max_bytes: int = 4_000_000_000,
    on_scores: OnScores | None = None,
) -> Neighbors:
    """Search by the first precision, then what it could not prove by the next, and so on; the last proves everything.

    `on_scores` gets all scores of the first.
    """
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64)
    counts = dict.fromkeys((FLOAT32, FLOAT64), 0)
    left = torch.arange(len(queries) if len(corpus) else 0)
    with full_precision():
        for precision in passes:
            if not len(left):
                break
            if precision is not passes[0]:
                counts[precision] = len(left)
            subset = queries if len(left) == len(queries) else queries.subset(left.numpy())
            observer = on_scores if precision is passes[0] else None
            found, proven = _search_pass(subset, corpus, k, precision, device, max_bytes, observer)
            keys[left] = found.cpu()
            left = left[~proven.cpu()]
    indices, scores = unpack(keys)
    record = SearchRecord("exact", num_float32=counts[FLOAT32], num_float64=counts[FLOAT64])
    return neighbors_of_rows(indices, scores, record)


def _search_pass(
    queries: UnitRows,
    corpus: UnitRows,
    k: int,
    precision: Precision,
    device: torch.device | str,
    max_bytes: int,
    on_scores: OnScores | None,
) -> tuple[Tensor, Tensor]:
    """Keys (q, k) of the nearest, and for which queries (q,) they are proven; both on the device."""
    keys = torch.full((len(queries), k), NO_KEY, dtype=torch.int64, device=device)
    ceiling = torch.full((len(queries),), -torch.inf, device=device)
    tile_rows = int(max_bytes * _TILE_SHARE) // (precision.tile_bytes * corpus.dim)
    tile_rows = max(tile_rows // _TILE_ALIGNMENT, 1) * _TILE_ALIGNMENT
    chunk_bytes = min(int(max_bytes * _CHUNK_SHARE), _CHUNK_BYTES.get(torch.device(device).type, 1 << 28))
    num_tiles = -(-len(corpus) // tile_rows)
    with progress("search", num_tiles * len(queries), "rows") as work:
        for first in range(0, len(corpus), tile_rows):
            tile = _load_tile(corpus, first, min(tile_rows, len(corpus) - first), precision, device)
            m = min(k + precision.spare, tile.size)
            step = max(1, chunk_bytes // max(precision.score_bytes * len(tile.exact), 16 * m * corpus.dim))
            step = min(step, len(queries), _LOAD_ROWS)
            # Allocated once: fresh memory for every chunk costs a processor a quarter of the time.
            room = (
                tile.exact.new_empty(step, len(tile.exact), dtype=precision.score_type)
                if precision.score_type
                else None
            )
            # Queries come in larger pieces than they are searched in: a GPU that waits for each chunk idles in between.
            for piece_start, piece in queries.pieces(_LOAD_ROWS, device):
                for start in range(0, len(piece), step):
                    rows = piece[start : start + step]
                    here = slice(piece_start + start, piece_start + start + len(rows))
                    found, highest = _search_tile(rows, tile, m, precision, room)
                    keys[here] = torch.cat([keys[here], found], dim=1).topk(k, dim=1).values
                    ceiling[here] = torch.maximum(ceiling[here], highest)
                    if on_scores is not None and room is not None:
                        on_scores(room[: len(rows)], here.start, first)
                    work.advance(len(rows))
            del tile, room
    # Above, not equal: a candidate left out could have the same score and the smaller index.
    return keys, scores_of(keys[:, min(k, len(corpus)) - 1]) > ceiling


def _search_tile(rows: Tensor, tile: _Tile, m: int, precision: Precision, room: Tensor | None) -> tuple[Tensor, Tensor]:
    """Keys (q, m) of the best of a tile for unit rows (q, d), and what no other can exceed, (q,)."""
    short_rows = rows if precision.shorten is None else precision.shorten(rows)
    fast, indices = precision.best(short_rows, tile.short, tile.size, m, room)
    if precision.proves:
        return pack(fast, indices + tile.first), fast.new_full((len(rows),), -torch.inf)
    found = pack(exact_scores(rows, tile.exact[indices]), indices + tile.first)
    last = fast[:, -1].float()
    if m == tile.size:
        return found, torch.full_like(last, -torch.inf)
    return found, last + precision.error(_slips(rows, short_rows), tile.slip, last, rows.shape[1])


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


def _load_tile(corpus: UnitRows, first: int, size: int, precision: Precision, device: torch.device | str) -> _Tile:
    """Read, normalise and shorten the rows of a tile."""
    num_rows = -(-size // _TILE_ALIGNMENT) * _TILE_ALIGNMENT
    exact = torch.zeros(num_rows, corpus.dim, device=device)
    for start, rows in corpus.between(first, first + size).pieces(_LOAD_ROWS, device):
        exact[start : start + len(rows)] = rows
    slip = torch.zeros((), device=device)
    if precision.shorten is None:
        return _Tile(first, size, exact, exact, slip)
    short = torch.empty_like(exact, dtype=precision.shorten(exact[:1]).dtype)
    for start in range(0, num_rows, _LOAD_ROWS):
        piece = exact[start : start + _LOAD_ROWS]
        short[start : start + _LOAD_ROWS] = precision.shorten(piece)
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


def _to_half(rows: Tensor) -> Tensor:
    """Rounded to float16; kept as float32 where there is no fast float16 product."""
    return rows.half() if rows.is_cuda else rows.half().float()


# A spare candidate is cheap, a second search is not; half precision blurs ranks far more than float32 does.
_TRUNCATED = 2.0**-23
HALF = Precision(_best_by_product, _to_half, 54, 6, 2, _TRUNCATED, output_unit=2.0**-11, score_type=torch.float16)
FLOAT32 = Precision(_best_by_product, None, 6, 4, 4, _TRUNCATED, output_unit=0.0, score_type=torch.float32)
FLOAT64 = Precision(_best_in_float64, torch.Tensor.double, 0, 12, 40, sum_unit=0.0, output_unit=0.0, proves=True)


class _BestOfTargets:
    """The m best scores of each target so far, best first, and the sources they belong to."""

    def __init__(self, num_targets: int, m: int) -> None:
        self._scores = np.full((num_targets, m), -np.inf, dtype=np.float32)
        self._sources = np.zeros((num_targets, m), dtype=np.int32)

    def update(self, scores: Tensor, first_source: int, first_target: int) -> None:
        """Compare with the scores (s, t) of the sources and the targets from these on."""
        shown = scores.numpy()  # whole, with the padding: a part of it would have gaps, which are read more slowly
        here = slice(first_target, first_target + shown.shape[1])
        kept, sources = self._scores[here], self._sources[here]
        by_all_processors(
            lambda first, last: _keep_best(first, last, shown, first_source, kept, sources),
            len(kept),
            piece_size(len(kept)),
        )

    def rescored(
        self, sources: UnitRows, targets: UnitRows, k: int, max_bytes: int
    ) -> tuple[Tensor, npt.NDArray[np.bool_]]:
        """Keys (t, k) of the nearest of each target, and for which of them (t,) they are proven.

        A source is a candidate of many targets: each is made a unit row once, where half of the memory holds them all.
        """
        fits = 12 * len(sources) * sources.dim <= max_bytes // 2  # 4 for a number, 8 while its row is divided
        units = sources.piece(0, len(sources)) if fits else None
        num_targets, m = self._scores.shape
        keys = torch.full((num_targets, k), NO_KEY, dtype=torch.int64)
        is_proven = np.empty(num_targets, dtype=bool)
        step = max(1, min(_RESCORED_BYTES, max_bytes // 4) // (_BYTES_RESCORED * m * targets.dim))
        none = torch.zeros(())
        for start in range(0, num_targets, step):
            here = slice(start, min(start + step, num_targets))
            indices = self._sources[here]
            numbers = torch.from_numpy(indices.astype(np.int64))
            candidates = sources.take(indices) if units is None else units[numbers]
            found = pack(exact_scores(targets.piece(here.start, here.stop), candidates), numbers)
            keys[here, : min(k, m)] = found.topk(min(k, m), dim=1).values
            last = torch.from_numpy(self._scores[here, -1].copy())
            ceiling = last + FLOAT32.error(torch.zeros_like(last), none, last, targets.dim)
            if m == len(sources):
                ceiling.fill_(-torch.inf)
            is_proven[here] = (scores_of(keys[here, min(k, m) - 1]) > ceiling).numpy()
        return keys, is_proven


@compiled
def _keep_best(
    first: int,
    last: int,
    shown: npt.NDArray[np.float32],
    first_source: int,
    kept: npt.NDArray[np.float32],
    sources: IntArray,
) -> None:
    """Keep the best of the scores `shown` (s, t) for the targets from `first` to `last`."""
    end = kept.shape[1] - 1
    lowest, highest = kept[first:last, end].copy(), np.empty(last - first, dtype=np.float32)
    for start in range(0, len(shown), _SOURCES_TOGETHER):
        stop = min(start + _SOURCES_TOGETHER, len(shown))
        # The highest score of a few sources is found for many targets at a time; few of these are compared one by one.
        highest[:] = shown[start, first:last]
        for source in range(start + 1, stop):
            for index in range(last - first):
                score = shown[source, first + index]
                highest[index] = score if score > highest[index] else highest[index]
        for index in range(last - first):
            if highest[index] > lowest[index]:
                target = first + index
                for source in range(start, stop):
                    if shown[source, target] > kept[target, end]:
                        _insert(shown[source, target], first_source + source, kept[target], sources[target])
                lowest[index] = kept[target, end]


@compiled
def _insert(score: float, source: int, kept: npt.NDArray[np.float32], sources: IntArray) -> None:
    place = len(kept) - 1
    while place > 0 and kept[place - 1] < score:
        kept[place], sources[place] = kept[place - 1], sources[place - 1]
        place -= 1
    kept[place], sources[place] = score, source
