"""The real setting of models of single blocks (LargeEA, LIME): pairs within blocks, all blocks together.

In: for each block its entities and their vectors, which are comparable within the block only; which entities may be
matched. Out: pairs by selection, the same selections as of a space that all entities share.
The idea: each block is searched and selected by itself, as an alignment of its own; the result is the union. An entity
of several blocks may get a pair in each of them, and a link whose ends share no block is never found.
Cost: for each block its free sources times its free targets, times d.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from largegnn.artifacts import IntArray, Mask
from largegnn.matching.candidates import csls
from largegnn.matching.search import SearchOptions, search_both
from largegnn.matching.selection import mutual_knn, mutual_top1
from largegnn.matching.union import build_candidates
from largegnn.paper.blocks import BlockEmbeddings

__all__ = ["BlockPairs"]

_K, _CSLS_K = 5, 10


class BlockPairs:
    """Collects the pairs of blocks as they pass; `free` (n,) may be matched, the first `num_sources` are sources."""

    def __init__(self, free: Mask, num_sources: int, device: str = "cpu") -> None:
        self._free, self._num_sources = free, num_sources
        self._options = SearchOptions(device=device)
        self._found: dict[str, list[IntArray]] = {"mutual_5nn": [], "mutual_top1": [], "csls_mutual_top1": []}

    def watch(self, blocks: Iterable[BlockEmbeddings]) -> Iterator[BlockEmbeddings]:
        """The same blocks; the pairs of each are kept before it is passed on."""
        for block in blocks:
            self._add(block)
            yield block

    def pairs(self) -> dict[str, IntArray]:
        """The pairs (p, 2) of each selection, each pair once."""
        none = np.empty((0, 2), dtype=np.int64)
        return {name: np.unique(np.concatenate([none, *found]), axis=0) for name, found in self._found.items()}

    def _add(self, block: BlockEmbeddings) -> None:
        is_free, is_source = self._free[block.entities], block.entities < self._num_sources
        sides = [np.flatnonzero(is_free & side) for side in (is_source, ~is_source)]
        if not all(len(side) for side in sides):
            return
        near_targets, near_sources = search_both(
            block.vectors[sides[0]],
            block.vectors[sides[1]],
            max(_K, _CSLS_K),
            "torch",
            source_ids=block.entities[sides[0]],
            target_ids=block.entities[sides[1]],
            options=self._options,
        )
        graph = build_candidates(near_targets, near_sources)
        cosines = graph.column("cosine")
        for name, edges in (
            ("mutual_5nn", mutual_knn(graph, cosines, _K)),
            ("mutual_top1", mutual_top1(graph, cosines)),
            ("csls_mutual_top1", mutual_top1(graph, csls(graph, near_targets, near_sources, _CSLS_K))),
        ):
            self._found[name].append(graph.pairs(edges))
