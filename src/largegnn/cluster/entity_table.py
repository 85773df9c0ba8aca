"""Divide the entity table among the machines of a cluster: one shard on each, which owns a range of entities.

In: a model with the table as it was at the end of an epoch. Out: rows for visits, and the table after the next epoch.
The idea: this process passes references to rows, and the rows themselves travel from machine to machine. Its model has
a copy from the end of each epoch, for checkpoints, validation, and to fill the shards again where one is lost. The copy
does not depend on the number of shards, so a training resumes on any number of machines, or on one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from largegnn.artifacts import IntArray
from largegnn.cluster.workers import RayWorkers
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.shards import RowState, TableShard, shard_bounds

__all__ = ["ShardLostError", "ShardedTable"]

_CHUNK_BYTES = 1 << 26
_SECONDS = 60.0  # for a shard to answer


class ShardLostError(Exception):
    """A shard does not answer any more, or rows sent to it are lost."""


class ShardedTable:
    """The shards of a table of the shape of the model's."""

    def __init__(self, workers: RayWorkers, model: EmbeddingModel) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._ray = workers.ray
        num_entities, dim = model.entities.values.shape
        nodes = [entry["NodeID"] for entry in self._ray.nodes() if entry["Alive"]]
        self._bounds = shard_bounds(num_entities, len(nodes))
        self._step = max(1, _CHUNK_BYTES // (8 * dim))
        remote = self._ray.remote(TableShard)
        self._shards = [
            remote.options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True)).remote(
                int(first), int(last - first), dim
            )
            for node, first, last in zip(nodes, self._bounds[:-1], self._bounds[1:], strict=True)
        ]
        self._given: list[Any] = []
        self._num_shared = 0

    def fill_from(self, model: EmbeddingModel) -> None:
        """Copy the rows of the model into the shards, a chunk at a time."""
        for shard, start, stop in self._chunks():
            rows, squares = model.entities.take(torch.arange(start, stop))
            self._get(shard.fill.remote(start, RowState(rows.cpu().numpy(), squares.cpu().numpy())))

    def close(self) -> None:
        """End the shards."""
        for shard in self._shards:
            self._ray.kill(shard)

    def take(self, visit: int, entities: IntArray, others: IntArray) -> list[Any]:
        """References to the rows of each shard for a visit; entities (k,) and others (c,) ascending."""
        cuts = [np.searchsorted(ids, self._bounds) for ids in (entities, others)]
        return [
            shard.take.remote(
                visit, *(ids[cut[at] : cut[at + 1]] for ids, cut in zip((entities, others), cuts, strict=True))
            )
            for at, shard in enumerate(self._shards)
        ]

    def give(self, visit: int, parts: Sequence[Any]) -> None:
        """Send each shard a reference to its rows after the visit."""
        self._given += [shard.give.remote(visit, part) for shard, part in zip(self._shards, parts, strict=True)]
        done, self._given = self._ray.wait(self._given, num_returns=len(self._given), timeout=0)
        self._num_shared += sum(self._get(each) for each in done)

    def drop(self, visit: int) -> None:
        """Make the shards forget a visit that was lost."""
        for shard in self._shards:
            shard.drop.remote(visit)

    def settle(self) -> int:
        """Wait until all rows given back are in the table; how many of them other visits had changed meanwhile."""
        for each in self._given:
            self._num_shared += self._get(each)
        self._given.clear()
        found, self._num_shared = self._num_shared, 0
        return found

    def read_into(self, model: EmbeddingModel) -> None:
        """Copy the table into the model: all of it, or nothing if a shard is lost meanwhile."""
        num_entities, dim = model.entities.values.shape
        with tempfile.TemporaryFile() as scratch:
            # In a file without a name: the copy of the epoch before must stay whole until this one is complete.
            both = np.memmap(scratch, dtype=np.float32, mode="w+", shape=(2, max(1, num_entities), dim))
            for shard, start, stop in self._chunks():
                state: RowState = self._get(shard.read.remote(start, stop))
                both[0, start:stop], both[1, start:stop] = state.rows, state.squares
            for start in range(0, num_entities, self._step):
                stop = min(start + self._step, num_entities)
                rows, squares = (torch.tensor(both[at, start:stop], device=model.device) for at in (0, 1))
                model.entities.put(torch.arange(start, stop), rows, squares)

    def check_shards(self) -> None:
        """Raise `ShardLostError` if a shard does not answer."""
        for shard in self._shards:
            self._get(shard.process.remote(), _SECONDS)

    def _chunks(self) -> Iterator[tuple[Any, int, int]]:
        """Each shard with ranges of its entities, of some tens of megabytes."""
        for shard, first, last in zip(self._shards, self._bounds[:-1].tolist(), self._bounds[1:].tolist(), strict=True):
            for start in range(first, last, self._step):
                yield shard, start, min(start + self._step, last)

    def _get(self, reference: Any, seconds: float | None = None) -> Any:
        errors = self._ray.exceptions
        try:
            return self._ray.get(reference, timeout=seconds)
        except errors.RayTaskError as error:
            if isinstance(error.cause, errors.RayError):  # an argument was lost with its machine
                raise ShardLostError(f"a shard of the table was lost ({type(error.cause).__name__})") from error
            raise error.cause from None
        except errors.RayError as error:
            raise ShardLostError(f"a shard of the table was lost ({type(error).__name__})") from error
