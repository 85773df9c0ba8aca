"""A worker of the training: a process somewhere in the cluster that visits subgraphs.

In: a planned visit, the rows each shard handed out, dense weights. Out: what the visit was like, and for each shard the
rows to give back. Nothing is kept between visits but the structures of subgraphs seen before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from largegnn.artifacts import FloatArray, IntArray
from largegnn.cluster.mapped import Sent, opened
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.shards import DenseState, RowState
from largegnn.embedding.visits import PlannedVisit, Visitor
from largegnn.machine.metering import Meter

__all__ = ["VisitFacts", "VisitWorker"]


@dataclass(frozen=True, eq=False)
class VisitFacts:
    """What a visit was like: the dense weights it ends with, sum of losses, seconds, peak memory of its worker."""

    dense: DenseState
    loss_sum: float
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float


class VisitWorker:
    """Makes visits one after another."""

    def __init__(self, options: TrainOptions, num_relations: int, device: str, num_threads: int) -> None:
        import torch

        torch.set_num_threads(num_threads)
        self._visitor = Visitor(options, num_relations, torch.device(device))
        self._meter = Meter()

    def process(self) -> int:
        """The id of this process on its machine; that it answers says that the worker is ready."""
        return os.getpid()

    def visit(
        self,
        number: int,
        subgraphs: Sent,
        planned: PlannedVisit,
        dense: DenseState,
        others: IntArray,
        *taken: tuple[RowState, FloatArray],
    ) -> tuple[Any, ...]:
        """Visit a subgraph of a division with what the shards handed out, in their order; the facts, then their rows.

        `others` (c,) are the entities whose rows come second from each shard.
        """
        joined = RowState(
            *(np.concatenate([getattr(state, name) for state, _ in taken]) for name in ("rows", "squares"))
        )
        drawn = others, np.concatenate([rows for _, rows in taken])
        made = self._visitor.visit(number, opened(subgraphs), planned, joined, dense, drawn)
        ends = np.cumsum([len(state.rows) for state, _ in taken])[:-1]
        parts = zip(np.split(made.rows.rows, ends), np.split(made.rows.squares, ends), strict=True)
        peak = self._meter.read().peak_memory_mb
        facts = VisitFacts(made.dense, made.loss_sum, made.seconds, made.cpu_seconds, peak)
        return facts, *(RowState(np.ascontiguousarray(rows), np.ascontiguousarray(squares)) for rows, squares in parts)
