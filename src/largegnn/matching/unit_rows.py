"""Prepare the rows of a search, and score and order the found pairs in one way.

In: vectors (n, d) of any length, possibly a memory map, and which of them are covered. Out: `UnitRows`, from which
searchers read rows of length 1 in float32, piece by piece; and `neighbors_of_rows`, the result of every searcher.

The idea: a searcher proposes candidates by whatever score is fast; what it returns is scored anew, in float64 rounded
to float32, so that the score of a pair depends neither on the method nor on where its vectors stand: equal vectors
tie exactly. Score and index are packed into one integer whose order is (-score, index); then the best of a row are
its largest keys, ties are settled, and two lists of candidates merge by taking the largest of both.

Cost: checking reads the vectors once, in pieces of some tens of megabytes; scoring is O(d) a candidate.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import FloatArray, IntArray, Neighbors, SearchRecord
from largegnn.errors import ArtifactError
from largegnn.machine.pieces import by_all_processors
from largegnn.machine.read_only import read_only_tensor

__all__ = [
    "NO_KEY",
    "UnitRows",
    "best_of",
    "check_rows",
    "exact_scores",
    "neighbors_of_rows",
    "pack",
    "scores_of",
    "unpack",
]

_CHECKED_ROWS = 1 << 13  # by one processor at a time
_PIECE_BYTES = 1 << 28
_LOW = 0xFFFFFFFF  # the indices half of a key, counted down, so that the smaller index is the larger key
NO_KEY = -(1 << 63)


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows that have a direction: `vectors` (n, d) as given, `kept` (m,) ascending rows of it, None for all of them.

    An index is a number below m, the place among the kept rows.
    """

    vectors: npt.NDArray[Any]
    kept: IntArray | None = None

    def __len__(self) -> int:
        return len(self.vectors) if self.kept is None else len(self.kept)

    @property
    def dim(self) -> int:
        """Numbers a row has."""
        return int(self.vectors.shape[1])

    def positions(self, indices: IntArray) -> IntArray:
        """Which rows of `vectors` stand at these indices; -1 stays -1."""
        if self.kept is None or not len(self.kept):
            return indices
        result: IntArray = np.where(indices < 0, -1, self.kept[indices])
        return result

    def subset(self, indices: IntArray) -> UnitRows:
        """The rows at these indices, ascending, as rows of their own."""
        return UnitRows(self.vectors, self.positions(indices))

    def between(self, start: int, stop: int) -> UnitRows:
        """The rows of the indices from start to stop, as rows of their own."""
        if self.kept is None:
            return UnitRows(self.vectors[start:stop])
        return UnitRows(self.vectors, self.kept[start:stop])

    def piece(self, start: int, stop: int, device: torch.device | str = "cpu") -> Tensor:
        """Unit rows of the indices from start to stop, (stop - start, d) float32; a copy."""
        return _units(self.vectors[start:stop] if self.kept is None else self.vectors[self.kept[start:stop]], device)

    def pieces(self, size: int, device: torch.device | str = "cpu") -> Iterator[tuple[int, Tensor]]:
        """Where each piece of `size` indices begins, and its unit rows (size, d) on the device; a copy.

        For a GPU the next piece is fetched from the file while this one is worked on.
        """
        starts = range(0, len(self), size)
        if torch.device(device).type == "cpu":
            yield from ((start, self.piece(start, start + size)) for start in starts)
            return
        is_plain = self.vectors.dtype == np.float32 and self.vectors.flags.c_contiguous
        vectors = read_only_tensor(self.vectors) if is_plain else None
        staged = [torch.empty(min(size, len(self)), self.dim, pin_memory=True) for _ in range(2)]
        with ThreadPoolExecutor(1) as thread:
            fetched = thread.submit(self._fetch, vectors, 0, size, staged[0])
            for number, start in enumerate(starts):
                rows = fetched.result().to(device, non_blocking=True)
                copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
                copied.record()
                if start + size < len(self):
                    room = staged[(number + 1) % 2]
                    fetched = thread.submit(self._fetch, vectors, start + size, start + 2 * size, room)
                yield start, _of_length_one(rows)
                copied.synchronize()  # its room is written next

    def _fetch(self, vectors: Tensor | None, start: int, stop: int, room: Tensor) -> Tensor:
        """Copy the rows of the indices from start to stop, as they were given, into `room`, by all threads.

        `vectors` are all of them as a tensor, None for arrays that need a conversion first.
        """
        stop = min(stop, len(self))
        rows = room[: stop - start]
        if vectors is None:
            part = self.between(start, stop)
            return rows.copy_(_tensor(part.vectors if part.kept is None else part.vectors[part.kept]))
        if self.kept is None:
            return rows.copy_(vectors[start:stop])
        return torch.index_select(vectors, 0, torch.from_numpy(self.kept[start:stop].copy()), out=rows)

    def take(self, indices: IntArray) -> Tensor:
        """Unit rows at any indices, (*indices.shape, d) float32; a copy."""
        rows = self.vectors[self.positions(indices.ravel())]
        return _units(rows, "cpu").view(*indices.shape, self.dim)


def check_rows(vectors: npt.NDArray[Any], covered: npt.NDArray[np.bool_] | None, name: str) -> UnitRows:
    """Keep the rows of (n, d) that are covered and not zero; refuse one of them that is not finite in float32."""
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise ArtifactError(f"{name} must be numbers (n, d), not {vectors.dtype} {vectors.shape}")
    if covered is not None and (covered.shape != vectors.shape[:1] or covered.dtype != np.bool_):
        raise ArtifactError(f"a mask {covered.dtype} {covered.shape} does not cover {len(vectors)} {name}")
    has_direction = np.ones(len(vectors), dtype=np.bool_) if covered is None else covered.copy()

    def check(start: int, stop: int) -> None:
        inside = has_direction[start:stop]
        rows = _tensor(vectors[start:stop]).numpy()
        largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        if not np.isfinite(largest[inside]).all():
            raise ArtifactError(f"a covered row of the {name} holds NaN or infinity")
        inside &= largest != 0

    by_all_processors(check, len(vectors) if vectors.shape[1] else 0, _CHECKED_ROWS)
    if not vectors.shape[1]:
        has_direction[:] = False
    return UnitRows(vectors, None if has_direction.all() else np.flatnonzero(has_direction))


def neighbors_of_rows(indices: IntArray, scores: FloatArray, record: SearchRecord) -> Neighbors:
    """What a searcher found: indices (q, k) among the kept rows of the corpus, for every kept row of the queries."""
    return Neighbors(np.arange(len(indices), dtype=np.int32), indices, scores, record)


def exact_scores(queries: Tensor, candidates: Tensor) -> Tensor:
    """Cosines of unit rows (q, d) with their own unit candidates (q, m, d): (q, m) float32, summed in float64."""
    return torch.einsum("qmd,qd->qm", candidates.double(), queries.double()).float()


def best_of(queries: UnitRows, corpus: UnitRows, candidates: IntArray, k: int) -> tuple[IntArray, FloatArray]:
    """Score candidates (q, m), indices or -1, exactly: the indices (q, k) and scores (q, k) of the best, in order."""
    num_queries, width = candidates.shape
    indices = np.full((num_queries, k), -1, dtype=np.int64)
    scores = np.full((num_queries, k), -np.inf, dtype=np.float32)
    step = max(1, _PIECE_BYTES // (16 * max(width * corpus.dim, 1)))
    for start in range(0, num_queries, step):
        proposed = candidates[start : start + step]
        rows = queries.piece(start, start + len(proposed))
        # A candidate that is none is read as the first row and struck out after.
        found = exact_scores(rows, corpus.take(np.maximum(proposed, 0)))
        keys = pack(found, torch.from_numpy(proposed)).masked_fill_(torch.from_numpy(proposed < 0), NO_KEY)
        best = unpack(keys.topk(min(k, width), dim=1).values)
        here = slice(start, start + step), slice(min(k, width))
        indices[here], scores[here] = best
    return indices, scores


def pack(scores: Tensor, indices: Tensor) -> Tensor:
    """One int64 for each float32 score and index below 2^32; larger for a higher score, then for a smaller index."""
    # Read as integers, floats are in order but for the negative ones, whose order the flip reverses. Adding zero makes
    # -0 into 0, for the two are equal.
    bits = (scores + 0.0).view(torch.int32)
    return (_flip(bits).long() << 32) | (_LOW - indices)


def unpack(keys: Tensor) -> tuple[IntArray, FloatArray]:
    """Places and scores of keys; -1 and -inf for `NO_KEY`."""
    none = keys == NO_KEY
    indices = (_LOW - (keys & _LOW)).masked_fill_(none, -1)
    return indices.cpu().numpy(), scores_of(keys).masked_fill_(none, -torch.inf).cpu().numpy()


def scores_of(keys: Tensor) -> Tensor:
    """The float32 scores of keys that are not `NO_KEY`."""
    return _flip((keys >> 32).to(torch.int32)).view(torch.float32)


def _flip(bits: Tensor) -> Tensor:
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def _tensor(rows: npt.NDArray[Any]) -> Tensor:
    """A float32 copy of rows that may be read-only; what is too large for float32 becomes infinite."""
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.array(rows, dtype=np.float32, order="C"))


def _units(rows: npt.NDArray[Any], device: torch.device | str) -> Tensor:
    """Rows (n, d) with length 1, float32 on the device."""
    return _of_length_one(_tensor(rows).to(device))


def _of_length_one(rows: Tensor) -> Tensor:
    # In float64 no square overflows or vanishes, and a vector comes out the same whatever rows stand around it.
    wide = rows.double()
    wide /= torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    return wide.float()
