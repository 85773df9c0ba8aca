"""Prepare the rows of a search, and score and order the pairs that a searcher finds.

In: vectors (n, d) of any length, possibly a memory map, and a mask of covered rows. Out: `UnitRows`, from which
searchers read rows of length 1 in float32, piece by piece; and `neighbors_of_rows`, the result of every searcher.
The idea: a searcher proposes candidates by any fast score; the result is scored again in float64 and rounded to
float32, so that the score of a pair depends neither on the method nor on the position of its vectors, and equal vectors
tie exactly. Score and index are packed into one integer key, ordered by (-score, index): the best of a row are its
largest keys, and two lists of candidates merge by taking the largest keys of both.
Cost: checking reads the vectors once, in pieces of some tens of megabytes; scoring is O(d) per candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import FloatArray, IntArray, Mask, Neighbors, SearchRecord
from largegnn.errors import ArtifactError
from largegnn.machine.pieces import by_all_processors

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

_ROWS_PER_CHECK = 1 << 13  # that one processor checks at a time
_PIECE_BYTES = 1 << 28
_LOW_HALF = 0xFFFFFFFF  # lower half of a key; indices are subtracted from it, so that smaller ones have larger keys
NO_KEY = -(1 << 63)


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows with a direction: the `kept` rows (m,) of `vectors` (n, d), ascending; None for all rows.

    An index is a number below m, the position among the kept rows.
    """

    vectors: npt.NDArray[Any]
    kept: IntArray | None = None

    def __len__(self) -> int:
        return len(self.vectors) if self.kept is None else len(self.kept)

    @property
    def dim(self) -> int:
        """The dimension of a row."""
        return int(self.vectors.shape[1])

    def part(self, indices: slice | IntArray) -> UnitRows:
        """Select the rows of a range of indices, or at ascending indices, as new `UnitRows`."""
        if self.kept is not None:
            return UnitRows(self.vectors, self.kept[indices])
        return UnitRows(self.vectors[indices]) if isinstance(indices, slice) else UnitRows(self.vectors, indices)

    def read(self, indices: slice | IntArray, device: torch.device | str = "cpu") -> Tensor:
        """Read unit rows of a range of indices, or at indices of any shape, (*shape, d) float32 on the device."""
        rows = _tensor(self.vectors[indices if self.kept is None else self.kept[indices]]).to(device)
        # In float64 no square overflows or vanishes, and the result of a row does not depend on other rows.
        wide = rows.view(-1, self.dim).double()
        wide /= torch.linalg.vector_norm(wide, dim=1, keepdim=True)
        return wide.float().view(rows.shape)


def check_rows(vectors: npt.NDArray[Any], covered: Mask | None, name: str) -> UnitRows:
    """Keep the rows of (n, d) that are covered and not zero; refuse covered rows that are not finite in float32."""
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise ArtifactError(f"{name} must be numbers (n, d), not {vectors.dtype} {vectors.shape}")
    if covered is not None and (covered.shape != vectors.shape[:1] or covered.dtype != np.bool_):
        raise ArtifactError(f"a mask {covered.dtype} {covered.shape} does not cover {len(vectors)} {name}")
    has_direction = np.ones(len(vectors), dtype=np.bool_) if covered is None else covered.copy()

    def check(start: int, stop: int) -> None:
        inside = has_direction[start:stop]
        rows = _tensor(vectors[start:stop]).numpy()
        largest = np.maximum(rows.max(axis=1, initial=0), -rows.min(axis=1, initial=0))
        if not np.isfinite(largest[inside]).all():
            raise ArtifactError(f"a covered row of the {name} holds NaN or infinity")
        inside &= largest != 0

    by_all_processors(check, len(vectors), _ROWS_PER_CHECK)
    return UnitRows(vectors, None if has_direction.all() else np.flatnonzero(has_direction))


def neighbors_of_rows(indices: IntArray, scores: FloatArray, record: SearchRecord) -> Neighbors:
    """Make the result of a searcher: indices (q, k) of kept rows of the corpus, for every kept row of the queries."""
    return Neighbors(np.arange(len(indices), dtype=np.int32), indices, scores, record)


def exact_scores(queries: Tensor, candidates: Tensor) -> Tensor:
    """Compute cosines (q, m) of unit rows (q, d) with the candidates (q, m, d) of each, summed in float64."""
    return torch.einsum("qmd,qd->qm", candidates.double(), queries.double()).float()


def best_of(queries: UnitRows, corpus: UnitRows, candidates: IntArray, k: int) -> tuple[IntArray, FloatArray]:
    """Score candidates (q, m), indices or -1, exactly: the indices (q, k) and scores (q, k) of the best, in order."""
    num_queries, width = candidates.shape
    indices = np.full((num_queries, k), -1, dtype=np.int64)
    scores = np.full((num_queries, k), -np.inf, dtype=np.float32)
    step = max(1, _PIECE_BYTES // (16 * max(width * corpus.dim, 1)))
    for start in range(0, num_queries, step):
        chunk = slice(start, start + step)
        proposed = candidates[chunk]
        # A missing candidate, -1, is read as the first row, and gets no key.
        exact = exact_scores(queries.read(chunk), corpus.read(np.maximum(proposed, 0)))
        keys = pack(exact, torch.from_numpy(proposed)).masked_fill_(torch.from_numpy(proposed < 0), NO_KEY)
        filled = chunk, slice(min(k, width))
        indices[filled], scores[filled] = unpack(keys.topk(min(k, width), dim=1).values)
    return indices, scores


def pack(scores: Tensor, indices: Tensor) -> Tensor:
    """Pack float32 scores and indices below 2^32 into int64 keys; larger for a higher score, then a smaller index."""
    # The bits of floats, read as integers, are in order except for negative floats, whose order the flip reverses.
    # Adding zero turns -0 into 0, since both are equal.
    bits = (scores + 0.0).view(torch.int32)
    return (_flip(bits).long() << 32) | (_LOW_HALF - indices)


def unpack(keys: Tensor) -> tuple[IntArray, FloatArray]:
    """Unpack the indices and scores of keys; -1 and -inf for `NO_KEY`."""
    none = keys == NO_KEY
    indices = (_LOW_HALF - (keys & _LOW_HALF)).masked_fill_(none, -1)
    return indices.cpu().numpy(), scores_of(keys).masked_fill_(none, -torch.inf).cpu().numpy()


def scores_of(keys: Tensor) -> Tensor:
    """Unpack the float32 scores of keys that are not `NO_KEY`."""
    return _flip((keys >> 32).to(torch.int32)).view(torch.float32)


def _flip(bits: Tensor) -> Tensor:
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


def _tensor(rows: npt.NDArray[Any]) -> Tensor:
    """Copy rows, which may be read-only, to float32; numbers too large for float32 become infinite."""
    with np.errstate(over="ignore"):
        return torch.from_numpy(np.array(rows, dtype=np.float32, order="C"))
