"""How good an alignment is that was searched within blocks (LargeEA, LIME): ranks of all test links, split ones missed.

In: for each block its entities and their vectors, which are comparable within the block only; the test links. Out:
ranks in both directions, for `metrics.summarise`.
The idea: the candidates of a source are all test targets that share a block with it, scored by cosine; of several
blocks in common the best score counts. Sources with the same set of blocks have the same candidates, so they are scored
together: one product for each block, the maximum where blocks overlap, and the true partner's score read from the same
numbers. A link whose ends share no block is a miss: its rank is infinite, it counts nothing in Hits and MRR, but counts
among the links. Nothing else is left out: a candidate is every test target in the block, whether its source is or not.

Ties count against us, and scores closer than 1e-6 are one score, as in `metrics`. An entity without a direction (zeros)
is in no block.
Cost: the sum over blocks of test sources times test targets in it, times d; memory is the test entities' vectors in all
blocks, and a chunk of scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import IntArray
from largegnn.errors import ArtifactError
from largegnn.evaluation.metrics import SAME_SCORE, Ranks
from largegnn.machine.precision import full_precision

__all__ = ["BlockVectors", "rank_within_blocks"]


class BlockVectors(Protocol):
    """A block: distinct entities (k,) and their vectors (k, d)."""

    @property
    def entities(self) -> IntArray:
        """Global ids."""
        ...

    @property
    def vectors(self) -> npt.NDArray[Any]:
        """One row for each entity."""
        ...


@dataclass(frozen=True, eq=False)
class _Members:
    """Test entities of one side in one block: `indices` (k,), ascending, among all of that side, and unit `vectors`."""

    indices: IntArray
    vectors: torch.Tensor

    def rows(self, indices: IntArray) -> torch.Tensor:
        """The vectors of entities that are in the block."""
        found = torch.from_numpy(np.searchsorted(self.indices, indices))
        return self.vectors.index_select(0, found.to(self.vectors.device))


def rank_within_blocks(
    blocks: Iterable[BlockVectors],
    test_links: IntArray,
    *,
    device: torch.device | str = "cpu",
    chunk_bytes: int = 1 << 28,
) -> Ranks:
    """Rank both ends of all `test_links` (k, 2) within their blocks: (k,) float64 each, infinite for a split link.

    Blocks are read one at a time; of each only the vectors of test entities are kept.
    """
    sources, source_indices = np.unique(test_links[:, 0], return_inverse=True)
    targets, target_indices = np.unique(test_links[:, 1], return_inverse=True)
    source_members, target_members = [], []
    with full_precision():
        for block in blocks:
            source_members.append(_members(block, sources, device))
            target_members.append(_members(block, targets, device))
        forward = _rank(source_members, source_indices, target_members, target_indices, chunk_bytes)
        backward = _rank(target_members, target_indices, source_members, source_indices, chunk_bytes)
    return Ranks(forward, backward)


def _members(block: BlockVectors, entities: IntArray, device: torch.device | str) -> _Members:
    """Those of the `entities` (m,), ascending, that have a vector in the block."""
    _, in_block, indices = np.intersect1d(block.entities, entities, assume_unique=True, return_indices=True)
    vectors = torch.from_numpy(np.asarray(block.vectors[in_block])).to(device, torch.float32)
    if not bool(torch.isfinite(vectors).all()):
        raise ArtifactError("a vector of a block holds NaN or infinity")
    lengths = torch.linalg.vector_norm(vectors, dim=1)
    has_direction = lengths > 0
    return _Members(indices[has_direction.cpu().numpy()], (vectors / lengths[:, None])[has_direction])


def _rank(
    queries: list[_Members],
    query_indices: IntArray,
    candidates: list[_Members],
    gold_indices: IntArray,
    chunk_bytes: int,
) -> npt.NDArray[np.float64]:
    """The rank of each link's gold (k,) among the candidates of its query (k,)."""
    ranks = np.full(len(query_indices), np.inf)
    if not len(ranks):
        return ranks
    is_in = np.zeros((int(query_indices.max()) + 1, len(queries)), dtype=bool)
    for index, members in enumerate(queries):
        is_in[members.indices, index] = True
    # Queries with the same blocks make a group.
    group_of_query = np.unique(np.packbits(is_in, axis=1), axis=0, return_inverse=True)[1].ravel()
    group_of_link = group_of_query[query_indices]
    by_group = np.argsort(group_of_link, kind="stable")
    starts = np.flatnonzero(np.diff(group_of_link[by_group], prepend=-1))
    for links in np.split(by_group, starts[1:]):
        shared = np.flatnonzero(is_in[query_indices[links[0]]])
        columns = np.unique(np.concatenate([np.empty(0, np.int64), *(candidates[index].indices for index in shared)]))
        links = links[np.isin(gold_indices[links], columns)]
        golds = np.searchsorted(columns, gold_indices[links])
        step = max(1, chunk_bytes // (8 * max(1, len(columns))))
        for start in range(0, len(links), step):
            chunk = slice(start, start + step)
            scores = _best_scores(queries, query_indices[links[chunk]], candidates, shared, columns)
            gold = scores.gather(1, torch.from_numpy(golds[chunk, None]).to(scores.device))
            # The gold is among those counted, once.
            ranks[links[chunk]] = (scores >= gold - SAME_SCORE).sum(dim=1).cpu().numpy()
    return ranks


def _best_scores(
    queries: list[_Members],
    indices: IntArray,
    candidates: list[_Members],
    shared: IntArray,
    columns: IntArray,
) -> torch.Tensor:
    """Cosine of queries (q,), all of them in the `shared` blocks, with candidates (c,): the best of those blocks."""
    if len(shared) == 1:
        return torch.mm(queries[shared[0]].rows(indices), candidates[shared[0]].vectors.t())
    best: torch.Tensor = candidates[shared[0]].vectors.new_full((len(indices), len(columns)), -torch.inf)
    for index in shared:
        scores = queries[index].rows(indices) @ candidates[index].vectors.t()
        at = torch.from_numpy(np.searchsorted(columns, candidates[index].indices)).to(best.device)
        best[:, at] = torch.maximum(best[:, at], scores)
    return best
