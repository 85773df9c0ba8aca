"""Prepare subgraphs for the trainer, the next one while the present one is trained on.

In: a `SubgraphSet`, mapped from a file or in memory. Out: subgraphs as tensors on the device, for plain steps
(`prepare_subgraph`) or for the fused kernels (`prepare_pairs`).
The idea: they are kept between epochs as far as a byte limit allows, so that memory does not grow with the number of
subgraphs: besides those kept, three are in memory at most (just used, in use, being prepared). The order is another in
every epoch, so that no subgraph is worth keeping more than another: first come, first kept.
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
        """Bytes it occupies."""
        values = [getattr(self.graph, field.name) for field in fields(self.graph)]
        return sum(value.nbytes for value in (*values, self.entities, self.seeds) if isinstance(value, Tensor))


class Feed(Generic[_Graph]):
    """Prepares subgraphs by a function and keeps as many as a byte limit allows."""

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
        self._room = cache_bytes

    @property
    def cached_bytes(self) -> int:
        """Bytes of the subgraphs that are kept."""
        return sum(ready.num_bytes for ready in self._cache.values())

    def ready(self, index: int) -> ReadySubgraph[_Graph]:
        """A subgraph by its index, prepared now or kept from before."""
        if index in self._cache:
            return self._cache[index]
        ready = self._prepare(self.subgraphs.subgraph(index), self._num_relations, self._device)
        if ready.num_bytes <= self._room:
            self._room -= ready.num_bytes
            self._cache[index] = ready
        return ready

    def in_order(self, indices: list[int]) -> Iterator[ReadySubgraph[_Graph]]:
        """The subgraphs of these indices, each prepared while the one before is in use."""
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
    """A subgraph for plain steps."""
    structure = build_structure(len(subgraph.entities), subgraph.triples, num_relations)
    if device.type == "cuda":
        structure = structure.pin()
    return ReadySubgraph(structure.to(device), *_ids(subgraph, device))


def prepare_pairs(subgraph: Subgraph, num_relations: int, device: torch.device) -> ReadySubgraph[PairGraph]:
    """A subgraph for the fused kernels, made on the device itself, where it takes milliseconds."""
    triples = torch.tensor(subgraph.triples, device=device)
    return ReadySubgraph(build_pair_graph(len(subgraph.entities), triples, num_relations), *_ids(subgraph, device))


def _ids(subgraph: Subgraph, device: torch.device) -> tuple[Tensor, Tensor]:
    """Entities and seeds."""
    entities, seeds = (
        torch.tensor(ids, dtype=torch.int64, device=device) for ids in (subgraph.entities, subgraph.seeds)
    )
    return entities, seeds
