"""Subgraphs as the trainer needs them, the next one made ready while the present one is trained on.

In: a `SubgraphSet`, mapped from a file or in memory. Out: `ReadySubgraph`s in the order asked for: structure, entities
and seeds as tensors on the device. They are kept between epochs as far as a byte limit allows, so that memory does not
grow with the number of subgraphs: besides those kept, three are alive at most (just used, in use, being made).
The order is another in every epoch, so that no subgraph is worth keeping more than another: first come, first kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from largegnn.artifacts import SubgraphSet
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
        held = [getattr(self.structure, field.name) for field in fields(self.structure)]
        tensors = [*(value for value in held if isinstance(value, Tensor)), self.entities, self.seeds]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


class SubgraphFeed:
    """Makes subgraphs ready one ahead of their use."""

    def __init__(self, subgraphs: SubgraphSet, num_relations: int, device: torch.device, cache_bytes: int) -> None:
        self.subgraphs, self._num_relations, self._device = subgraphs, num_relations, device
        self._cache: dict[int, ReadySubgraph] = {}
        self._room = cache_bytes

    @property
    def cached_bytes(self) -> int:
        """Bytes of the subgraphs that are kept."""
        return sum(ready.num_bytes for ready in self._cache.values())

    def in_order(self, indices: list[int]) -> Iterator[ReadySubgraph]:
        """The subgraphs of these indices, each made ready while the one before is in use."""
        if not indices:
            return
        with ThreadPoolExecutor(1, thread_name_prefix="subgraphs") as pool:
            ahead: Future[ReadySubgraph] = pool.submit(self._ready, indices[0])
            for position in range(len(indices)):
                current = ahead.result()
                if position + 1 < len(indices):
                    ahead = pool.submit(self._ready, indices[position + 1])
                yield current

    def _ready(self, index: int) -> ReadySubgraph:
        if index in self._cache:
            return self._cache[index]
        subgraph = self.subgraphs.subgraph(index)
        structure = build_structure(len(subgraph.entities), subgraph.triples, self._num_relations)
        if self._device.type == "cuda":
            structure = structure.pin()
        ready = ReadySubgraph(
            structure=structure.to(self._device),
            entities=torch.tensor(subgraph.entities, dtype=torch.int64, device=self._device),
            seeds=torch.tensor(subgraph.seeds, dtype=torch.int64, device=self._device),
        )
        if ready.num_bytes <= self._room:
            self._room -= ready.num_bytes
            self._cache[index] = ready
        return ready


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


class PairFeed:
    """Makes subgraphs ready for the fused kernels, on the device itself, and keeps as many as a byte limit allows."""

    def __init__(self, subgraphs: SubgraphSet, num_relations: int, device: torch.device, cache_bytes: int) -> None:
        self.subgraphs, self._num_relations, self._device = subgraphs, num_relations, device
        self._cache: dict[int, ReadyPairs] = {}
        self._room = cache_bytes

    def ready(self, index: int) -> ReadyPairs:
        """A subgraph by its index: sorted by the device, which takes milliseconds on a GPU, or kept from before."""
        if index in self._cache:
            return self._cache[index]
        subgraph = self.subgraphs.subgraph(index)
        triples = torch.tensor(subgraph.triples, device=self._device)
        ready = ReadyPairs(
            graph=build_pair_graph(len(subgraph.entities), triples, self._num_relations),
            entities=torch.tensor(subgraph.entities, dtype=torch.int64, device=self._device),
            seeds=torch.tensor(subgraph.seeds, dtype=torch.int64, device=self._device),
        )
        if ready.num_bytes <= self._room:
            self._room -= ready.num_bytes
            self._cache[index] = ready
        return ready
