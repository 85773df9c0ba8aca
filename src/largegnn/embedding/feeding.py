"""Prepare subgraphs for training on the device, and the next subgraph while the present subgraph is trained on.

In: a `SubgraphSet`, mapped from a file or in memory. Out: subgraphs as tensors on the device, for plain steps
(`prepare_subgraph`) or for the fused kernels (`prepare_pairs`).
The idea: prepared subgraphs are cached between epochs up to a byte limit, so memory does not grow with the number of
subgraphs: besides the cached subgraphs, at most three are in memory (just used, in use, being prepared). The order
differs from epoch to epoch, so no subgraph is more worth caching than another, and the first prepared are cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import torch
from torch import Tensor

from largegnn.artifacts import Subgraph, SubgraphSet
from largegnn.embedding.pair_graph import PairGraph, build_pair_graph
from largegnn.embedding.structure import GraphStructure, build_structure

__all__ = ["Feed", "ReadySubgraph", "prepare_pairs", "prepare_subgraph"]

_Graph = TypeVar("_Graph", bound=GraphStructure | PairGraph)


@dataclass(frozen=True)
class ReadySubgraph(Generic[_Graph]):
    """A subgraph on the device: its graph, global ids (k,) of its entities, seeds (s, 2) in local ids."""

    graph: _Graph
    entities: Tensor
    seeds: Tensor

    @property
    def num_bytes(self) -> int:
        """Bytes of its tensors."""
        values = [getattr(self.graph, field.name) for field in fields(self.graph)]
        return sum(value.nbytes for value in (*values, self.entities, self.seeds) if isinstance(value, Tensor))


class Feed(Generic[_Graph]):
    """Prepares subgraphs with a function and caches as many as a byte limit allows."""

    def __init__(
        self,
        subgraphs: SubgraphSet,
        prepare: Callable[[Subgraph, int, torch.device], ReadySubgraph[_Graph]],
        num_relations: int,
        device: torch.device,
        cache_bytes: int,
    ) -> None:
        self.subgraphs = subgraphs
        self._prepare, self._num_relations, self._device = prepare, num_relations, device
        self._cache: dict[int, ReadySubgraph[_Graph]] = {}
        self._free_bytes = cache_bytes

    @property
    def cached_bytes(self) -> int:
        """Bytes of the cached subgraphs."""
        return sum(ready.num_bytes for ready in self._cache.values())

    def ready(self, index: int) -> ReadySubgraph[_Graph]:
        """The subgraph with this index, from the cache or prepared now."""
        if index in self._cache:
            return self._cache[index]
        ready = self._prepare(self.subgraphs.subgraph(index), self._num_relations, self._device)
        if ready.num_bytes <= self._free_bytes:
            self._free_bytes -= ready.num_bytes
            self._cache[index] = ready
        return ready

    def in_order(self, indices: list[int]) -> Iterator[ReadySubgraph[_Graph]]:
        """The subgraphs with these indices; a subgraph is prepared while the caller uses the subgraph before it."""
        if not indices:
            return
        with ThreadPoolExecutor(1, thread_name_prefix="subgraphs") as pool:
            ahead: Future[ReadySubgraph[_Graph]] = pool.submit(self.ready, indices[0])
            for position in range(len(indices)):
                current = ahead.result()
                if position + 1 < len(indices):
                    ahead = pool.submit(self.ready, indices[position + 1])
                yield current


def prepare_subgraph(subgraph: Subgraph, num_relations: int, device: torch.device) -> ReadySubgraph[GraphStructure]:
    """Prepare a subgraph for plain steps: a `GraphStructure`, built on the CPU."""
    structure = build_structure(len(subgraph.entities), subgraph.triples, num_relations)
    if device.type == "cuda":
        structure = structure.pin()
    return ReadySubgraph(structure.to(device), *_ids(subgraph, device))


def prepare_pairs(subgraph: Subgraph, num_relations: int, device: torch.device) -> ReadySubgraph[PairGraph]:
    """Prepare a subgraph for the fused kernels: a `PairGraph`, built on the device, where it takes milliseconds."""
    triples = torch.tensor(subgraph.triples, device=device)
    return ReadySubgraph(build_pair_graph(len(subgraph.entities), triples, num_relations), *_ids(subgraph, device))


def _ids(subgraph: Subgraph, device: torch.device) -> tuple[Tensor, Tensor]:
    """Entities and seeds as tensors on the device."""
    entities = torch.tensor(subgraph.entities, dtype=torch.int64, device=device)
    seeds = torch.tensor(subgraph.seeds, dtype=torch.int64, device=device)
    return entities, seeds
