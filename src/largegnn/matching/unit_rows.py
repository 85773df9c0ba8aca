"""The rows a search works on, and the one way in which found pairs are scored and ordered.

In: vectors (n, d) of any length, possibly a memory map, and which of them are covered. Out: `UnitRows`, from which
searchers read rows of length 1 in float32, piece by piece; and `Found`, what every searcher gives back.

The idea: a searcher proposes candidates by whatever score is fast; what it returns is scored anew, in float64 rounded
to float32, so that the score of a pair depends neither on the method nor on where its vectors stand: equal vectors
tie exactly. Score and place are packed into one integer whose order is (-score, place); then the best of a row are
its largest keys, ties are settled, and two lists of candidates merge by taking the largest of both.

Cost: checking reads the vectors once, in pieces of some tens of megabytes; scoring is O(d) a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from largegnn.artifacts import IntArray
from largegnn.errors import ArtifactError

__all__ = [
    "NO_KEY",
    "Found",
    "Scores",
    "UnitRows",
    "best_of",
    "check_rows",
    "exact_scores",
    "pack",
    "scores_of",
    "unpack",
]

Scores = npt.NDArray[np.float32]
_PIECE_ROWS = 1 << 15
_PIECE_BYTES = 1 << 28
_LOW = 0xFFFFFFFF  # the places half of a key, counted down, so that the smaller place is the larger key
NO_KEY = -(1 << 63)


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows that have a direction: `vectors` (n, d) as given, `kept` (m,) ascending rows of it, None for all of them.

    A place is a number below m, the how-manieth of the kept rows.
    """

    vectors: npt.NDArray[Any]
    kept: IntArray | None = None

    def __len__(self) -> int:
        return len(self.vectors) if self.kept is None else len(self.kept)

    @property
    def dim(self) -> int:
        """Numbers a row has."""
        return int(self.vectors.shape[1])

    def positions(self, places: IntArray) -> IntArray:
        """Which rows of `vectors` stand at these places; -1 stays -1."""
        if self.kept is None or not len(self.kept):
            return places
        result: IntArray = np.where(places < 0, -1, self.kept[places])
        return result

    def subset(self, places: IntArray) -> UnitRows:
        """The rows at these places, ascending, as rows of their own."""
        return UnitRows(self.vectors, self.positions(places))

    def piece(self, start: int, stop: int, device: torch.device | str = "cpu") -> Tensor:
        """Unit rows of the places from start to stop, (stop - start, d) float32; a copy."""
        return _units(self.vectors[start:stop] if self.kept is None else self.vectors[self.kept[start:stop]], device)

    def take(self, places: IntArray) -> Tensor:
        """Unit rows at any places, (*places.shape, d) float32; a copy."""
        rows = self.vectors[self.positions(places.ravel())]
        return _units(rows, "cpu").view(*places.shape, self.dim)


@dataclass(frozen=True, eq=False)
class Found:
    """What a searcher found: places (q, k) int64 among the kept rows of the corpus, scores (q, k) float32, and facts.

    `recall` is that of a sample of `recall_sample` queries, None for an exact search; `num_float32` and `num_float64`
    say for how many queries a faster pass proved nothing, so that one of that precision followed. `handed_to` names the
    searcher that did the work where it was another than the one asked.
    """

    places: IntArray
    scores: Scores
    recall: float | None = None
    recall_sample: int = 0
    num_float32: int = 0
    num_float64: int = 0
    handed_to: str | None = None


def check_rows(vectors: npt.NDArray[Any], covered: npt.NDArray[np.bool_] | None, name: str) -> UnitRows:
    """Keep the rows of (n, d) that are covered and not zero; refuse one of them that is not finite in float32."""
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise ArtifactError(f"{name} must be numbers (n, d), not {vectors.dtype} {vectors.shape}")
    if covered is not None and (covered.shape != vectors.shape[:1] or covered.dtype != np.bool_):
        raise ArtifactError(f"a mask {covered.dtype} {covered.shape} does not cover {len(vectors)} {name}")
    has_direction = np.ones(len(vectors), dtype=np.bool_) if covered is None else covered.copy()
    for start in range(0, len(vectors) if vectors.shape[1] else 0, _PIECE_ROWS):
        inside = has_direction[start : start + _PIECE_ROWS]
        largest = _tensor(vectors[start : start + _PIECE_ROWS]).abs_().amax(dim=1).numpy()
        if not np.isfinite(largest[inside]).all():
            raise ArtifactError(f"a covered row of the {name} holds NaN or infinity")
        inside &= largest != 0
    if not vectors.shape[1]:
        has_direction[:] = False
    return UnitRows(vectors, None if has_direction.all() else np.flatnonzero(has_direction))


def exact_scores(queries: Tensor, candidates: Tensor) -> Tensor:
    """Cosines of unit rows (q, d) with their own unit candidates (q, m, d): (q, m) float32, summed in float64."""
    return torch.einsum("qmd,qd->qm", candidates.double(), queries.double()).float()


def best_of(queries: UnitRows, corpus: UnitRows, candidates: IntArray, k: int) -> tuple[IntArray, Scores]:
    """Score candidates (q, m), places or -1, exactly: the places (q, k) and scores (q, k) of the best, in order."""
    num_queries, width = candidates.shape
    places = np.full((num_queries, k), -1, dtype=np.int64)
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
        places[here], scores[here] = best
    return places, scores


def pack(scores: Tensor, places: Tensor) -> Tensor:
    """One int64 for each float32 score and place below 2^32; larger for a higher score, then for a smaller place."""
    # Read as integers, floats are in order but for the negative ones, whose order the flip reverses. Adding zero makes
    # -0 into 0, for the two are equal.
    bits = (scores + 0.0).view(torch.int32)
    return (_flip(bits).long() << 32) | (_LOW - places)


def unpack(keys: Tensor) -> tuple[IntArray, Scores]:
    """Places and scores of keys; -1 and -inf for `NO_KEY`."""
    none = keys == NO_KEY
    places = (_LOW - (keys & _LOW)).masked_fill_(none, -1)
    return places.cpu().numpy(), scores_of(keys).masked_fill_(none, -torch.inf).cpu().numpy()


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
    # In float64 no square overflows or vanishes, and a vector comes out the same whatever rows stand around it.
    wide = _tensor(rows).to(device).double()
    wide /= torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    return wide.float()
