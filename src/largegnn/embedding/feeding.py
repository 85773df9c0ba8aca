"""Prepare subgraphs for the trainer, the next one while the present one is trained on.

In: a `SubgraphSet`, mapped from a file or in memory. Out: subgraphs as tensors on the device, for plain steps or for
the fused kernels.
The idea: they are kept between epochs as far as a byte limit allows, so that memory does not grow with the number of
subgraphs: besides those kept, three are in memory at most (just used, in use, being prepared). The order is another in
every epoch, so that no subgraph is worth keeping more than another: first come, first kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import torch
from torch import Tensor

from largegnn.artifacts import IntArray, SubgraphSet
from largegnn.embedding.pair_graph import PairGraph, build_pair_graph
from largegnn.embedding.structure import GraphStructure, build_structure

__all__ = ["PairFeed", "ReadyPairs", "ReadySubgraph", "SubgraphFeed"]


@dataclass(frozen=True)
class ReadySubgraph:
    """A subgraph on the device: its structure, global ids (k,) of its entities, seeds (s, 2) in local ids."""

    structure: GraphStructure
    entities: Tensor
    seeds: Tensor

    @property
    def num_bytes(self) -> int:
        """Bytes it occupies."""
        values = [getattr(self.structure, field.name) for field in fields(self.structure)]
        tensors = [*(value for value in values if isinstance(value, Tensor)), self.entities, self.seeds]
        return sum(tensor.nbytes for tensor in tensors)


@dataclass(frozen=True)
class ReadyPairs:
    """A subgraph for the fused kernels: its graph, global ids (k,) of its entities, seeds (s, 2) in local ids."""

    graph: PairGraph
    entities: Tensor
    seeds: Tensor

    @property
    def num_bytes(self) -> int:
        """Bytes it occupies."""
        return self.graph.num_bytes + self.entities.nbytes + self.seeds.nbytes


_Ready = TypeVar("_Ready", ReadySubgraph, ReadyPairs)


class _Feed(ABC, Generic[_Ready]):
    """Prepares subgraphs and keeps as many as a byte limit allows."""

    def __init__(self, subgraphs: SubgraphSet, num_relations: int, device: torch.device, cache_bytes: int) -> None:
        self.subgraphs, self._num_relations, self._device = subgraphs, num_relations, device
        self._cache: dict[int, _Ready] = {}
        self._room = cache_bytes

    @property
    def cached_bytes(self) -> int:
        """Bytes of the subgraphs that are kept."""
        return sum(ready.num_bytes for ready in self._cache.values())

    def ready(self, index: int) -> _Ready:
        """A subgraph by its index, prepared now or kept from before."""
        if index in self._cache:
            return self._cache[index]
        ready = self._prepare(index)
        if ready.num_bytes <= self._room:
            self._room -= ready.num_bytes
            self._cache[index] = ready
        return ready

    @abstractmethod
    def _prepare(self, index: int) -> _Ready: ...

    def _ids(self, ids: IntArray) -> Tensor:
        return torch.tensor(ids, dtype=torch.int64, device=self._device)


class SubgraphFeed(_Feed[ReadySubgraph]):
    """Prepares subgraphs for plain steps, one ahead of their use."""

    def in_order(self, indices: list[int]) -> Iterator[ReadySubgraph]:
        """The subgraphs of these indices, each prepared while the one before is in use."""
        if not indices:
            return
        with ThreadPoolExecutor(1, thread_name_prefix="subgraphs") as pool:
            ahead: Future[ReadySubgraph] = pool.submit(self.ready, indices[0])
            for position in range(len(indices)):
                current = ahead.result()
                if position + 1 < len(indices):
                    ahead = pool.submit(self.ready, indices[position + 1])
                yield current

    def _prepare(self, index: int) -> ReadySubgraph:
        subgraph = self.subgraphs.subgraph(index)
        structure = build_structure(len(subgraph.entities), subgraph.triples, self._num_relations)
        if self._device.type == "cuda":
            structure = structure.pin()
        return ReadySubgraph(structure.to(self._device), self._ids(subgraph.entities), self._ids(subgraph.seeds))


class PairFeed(_Feed[ReadyPairs]):
    """Prepares subgraphs for the fused kernels, on the device itself, where it takes milliseconds."""

    def _prepare(self, index: int) -> ReadyPairs:
        subgraph = self.subgraphs.subgraph(index)
        triples = torch.tensor(subgraph.triples, device=self._device)
        graph = build_pair_graph(len(subgraph.entities), triples, self._num_relations)
        return ReadyPairs(graph, self._ids(subgraph.entities), self._ids(subgraph.seeds))
