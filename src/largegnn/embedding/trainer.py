"""Train a model over the subgraphs, epoch by epoch, with checkpoints and validation (section 5 of the paper).

In: the subgraphs, the options, a model. Out: the trained model and a record of every epoch.
The idea: subgraphs are mini-batches over shared tables. An epoch visits them in random order; a step (`stepping`) takes
a batch of the seeds of one subgraph and changes only the rows of its entities. On a GPU all steps of a visit replay one
CUDA graph (`captured_step`), on a cluster several workers visit subgraphs at the same time (`visits`). All random draws
follow from the seed, the epoch and the subgraph, so an interrupted run that resumes from its last checkpoint gives the
same result. The run ends with the parameters of the epoch that was best on the valid links, unless these are seeds.
Cost: an epoch encodes each subgraph once for every batch of its seeds.

# Paper: subgraphs as mini-batches; RMSprop 0.005; batches of 1,024.
# Departs: the learning rate falls along a cosine (`train.schedule`); the graph may be repartitioned every few epochs;
#     the valid links, where they are not seeds, choose the epoch. The authors' code looked at test links every epoch.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import EpochRecord, SubgraphSet
from largegnn.embedding.captured_step import CapturedVisits, Visit, can_be_captured
from largegnn.embedding.checkpoint import Checkpoints
from largegnn.embedding.feeding import Feed, ReadySubgraph, prepare_pairs, prepare_subgraph
from largegnn.embedding.fused import has_kernels
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.pair_graph import PairGraph
from largegnn.embedding.stepping import Stepper, batches_of, split_seeds
from largegnn.embedding.structure import GraphStructure
from largegnn.embedding.visits import ClusterVisits, PlannedVisit
from largegnn.errors import InputError, TrainingError
from largegnn.machine.precision import training_precision
from largegnn.machine.progress import Work, progress

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["Trainer"]

_log = logging.getLogger(__name__)


class Trainer:
    """Trains a model over subgraphs, epoch by epoch."""

    def __init__(
        self,
        model: EmbeddingModel,
        division: Callable[[int], SubgraphSet],
        num_relations: int,
        options: TrainSettings,
        seed: int,
        *,
        folder: Path | None = None,
        validate: Callable[[EmbeddingModel], float] | None = None,
        cluster: ClusterVisits | None = None,
        choose: bool = True,
        keep_last: bool = False,
    ) -> None:
        """Prepare a training; `division(number)` returns the subgraphs of the division with this number.

        Checkpoints are written into `folder`, if given. The training ends with the parameters of the epoch with the
        highest `validate`, the earliest of equals; without `choose`, with the parameters of the last epoch. With
        `keep_last` a checkpoint of the last epoch is written too. With `cluster` its workers make the visits.
        """
        self.model, self.options, self._seed = model, options, seed
        self._division, self._num_relations = division, num_relations
        self._validate, self._keep_last, self._cluster = validate, keep_last, cluster
        self._stepper = Stepper(model, options)
        self._saved = Checkpoints(model, folder, keep_best=choose)
        self._visits = CapturedVisits(model, options) if self._can_capture() else None
        self._feed: Feed[GraphStructure] | None = None
        self._pairs: Feed[PairGraph] | None = None
        self._division_number = -1
        self.history: list[EpochRecord] = []

    def run(self) -> list[EpochRecord]:
        """Train to the last epoch, resuming from the last checkpoint if there is one, and restore the best epoch."""
        self.history = self._saved.resume()
        saved_at = time.monotonic()
        with progress("train", self.options.epochs, "epochs", done=len(self.history)) as work:
            for epoch in range(len(self.history), self.options.epochs):
                self._run_epoch(epoch)
                is_last = epoch + 1 == self.options.epochs
                is_best = self._saved.best(self.history) == epoch
                # The last epoch needs no checkpoint of its own if the caller stores the result.
                is_due = time.monotonic() - saved_at >= self.options.checkpoint_seconds
                if is_due or (is_last and self._keep_last) or (is_best and not is_last):
                    self._saved.save(self.history)
                    saved_at = time.monotonic()
                work.advance()
        self._saved.restore_best(self.history)
        return self.history

    def _run_epoch(self, epoch: int) -> None:
        """Train one epoch, check and validate the result, and add its record to the history."""
        started = time.monotonic()
        with training_precision(self.options.precision):
            loss = self._train_epoch(epoch)
        self._check_finite(epoch, loss)
        hits = self._validate_epoch(epoch)
        self.history.append(EpochRecord(epoch, loss, hits, time.monotonic() - started))
        self._log_epoch()

    def _train_epoch(self, epoch: int) -> float:
        """Visit all subgraphs once; returns the mean loss of the steps."""
        feed = self._feed_of(epoch)
        planned = self._plan_visits(feed.subgraphs, epoch)
        total = sum(len(visit.learning_rates) for visit in planned)
        losses = []
        with progress(f"epoch {epoch + 1}", total, "steps") as work:
            if self._cluster is not None:
                return self._cluster.visit_all(self.model, feed.subgraphs, planned, work)
            if self._visits is not None and self._pairs is not None:
                losses = self._captured_steps(self._visits, self._pairs, planned, work)
            else:
                for visit, ready in zip(planned, feed.in_order([visit.index for visit in planned]), strict=True):
                    losses += self._steps(visit, ready, work)
        return float(torch.stack(losses).double().sum()) / total if losses else 0.0

    def _plan_visits(self, subgraphs: SubgraphSet, epoch: int) -> list[PlannedVisit]:
        """Plan the visits of an epoch, in random order, with the learning rate of every step."""
        order = np.random.default_rng([self._seed, epoch]).permutation(len(subgraphs)).tolist()
        sizes = np.diff(subgraphs.seed_ptr).tolist()
        order = [index for index in order if sizes[index]]
        num_steps = [-(-sizes[index] // self.options.batch_size) for index in order]
        total = sum(num_steps)
        planned = []
        done = 0
        for index, count in zip(order, num_steps, strict=True):
            rates = tuple(self._learning_rate(epoch + (done + step) / total) for step in range(count))
            planned.append(PlannedVisit(index, rates, self._derived_seed(epoch, index)))
            done += count
        return planned

    def _steps(self, visit: PlannedVisit, ready: ReadySubgraph[GraphStructure], work: Work) -> list[Tensor]:
        """Take all steps of one visit; returns their losses."""
        losses = []
        batches = batches_of(ready, self.options.batch_size, visit.seed)
        for batch, rate in zip(batches, visit.learning_rates, strict=True):
            losses.append(self._stepper.step(batch, rate))
            work.advance()
        return losses

    def _captured_steps(
        self, visits: CapturedVisits, pairs: Feed[PairGraph], planned: list[PlannedVisit], work: Work
    ) -> list[Tensor]:
        """Take all steps of an epoch, captured where the subgraph is large enough; returns their losses."""
        num_nodes = np.diff(pairs.subgraphs.entity_ptr)
        losses: list[Tensor] = []
        for planned_visit in planned:
            index, seed, rates = planned_visit.index, planned_visit.seed, planned_visit.learning_rates
            if num_nodes[index] > self.options.negatives:
                ready = pairs.ready(index)
                generator = torch.Generator(self.model.device).manual_seed(seed)
                batches = split_seeds(ready.seeds, self.options.batch_size, generator)
                losses += visits.visit(Visit(ready.graph, ready.entities, batches, rates), seed).unbind()
                work.advance(len(rates))
            elif self._feed is not None:
                # A captured step draws a fixed number of negatives, and this subgraph does not have enough nodes.
                losses += self._steps(planned_visit, self._feed.ready(index), work)
        return losses

    def _feed_of(self, epoch: int) -> Feed[GraphStructure]:
        """The feed of this epoch's division, which changes every `repartition_every` epochs."""
        number = epoch // self.options.repartition_every if self.options.repartition_every else 0
        if self._feed is None or number != self._division_number:
            self._feed = self._pairs = None  # released before the next division is computed
            subgraphs = self._division(number)
            if not len(subgraphs.seeds):
                raise InputError(
                    "no subgraph holds both ends of a seed pair, so there is nothing to train on",
                    expected="seeds, and a division that keeps some of them together",
                    fix="give more seeds or make fewer parts",
                )
            device, cache_bytes = self.model.device, self.options.memory_bytes // 8
            self._feed = Feed(subgraphs, prepare_subgraph, self._num_relations, device, cache_bytes)
            if self._visits is not None:
                self._pairs = Feed(subgraphs, prepare_pairs, self._num_relations, device, 2 * cache_bytes)
            self._division_number = number
        return self._feed

    def _can_capture(self) -> bool:
        """Whether steps are captured: on a local GPU with Triton, if encoder and losses support it."""
        device = self.model.device
        is_wanted = self.options.step == "auto" and device.type == "cuda" and self._cluster is None
        return is_wanted and has_kernels(device) and can_be_captured(self.model.encoder, self.options)

    def _learning_rate(self, epoch: float) -> float:
        if self.options.schedule == "constant":
            return self.options.learning_rate
        return self.options.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / self.options.epochs))

    def _derived_seed(self, epoch: int, index: int) -> int:
        return int(np.random.SeedSequence([self._seed, epoch, index]).generate_state(1, np.uint64)[0] >> 1)

    def _validate_epoch(self, epoch: int) -> float | None:
        """H@1 on the valid links every `validate_every` epochs and after the last; None after other epochs."""
        is_last = epoch + 1 == self.options.epochs
        if self._validate is None or not (is_last or (epoch + 1) % self.options.validate_every == 0):
            return None
        return float(self._validate(self.model))

    def _check_finite(self, epoch: int, loss: float) -> None:
        if math.isfinite(loss) and self.model.is_finite():
            return
        raise TrainingError(
            f"training diverged in epoch {epoch + 1}: its mean loss is {loss:g}, or a parameter is not finite. "
            "Earlier checkpoints are kept; lower train.learning_rate or train.scale, and run again with --resume"
        )

    def _log_epoch(self) -> None:
        record = self.history[-1]
        recent = [epoch.seconds for epoch in self.history[-5:]]
        seconds_left = (self.options.epochs - len(self.history)) * sum(recent) / len(recent)
        hits = "" if record.valid_hits is None else f", valid H@1 {record.valid_hits:.4f}"
        _log.info(
            "train: epoch %d of %d, loss %.4f%s, %.2f s, about %.0f s left",
            record.epoch + 1,
            self.options.epochs,
            record.loss,
            hits,
            record.seconds,
            seconds_left,
        )
