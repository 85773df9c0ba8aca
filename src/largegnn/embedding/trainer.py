"""Train part by part: subgraphs are mini-batches in random order over shared tables (section 5 of the paper).

In: the subgraphs, the options, a model. Out: the trained model and a record of every epoch.
The idea: an epoch passes the subgraphs in random order, and a step (`stepping`) takes a batch of the seeds of one and
changes the rows of its entities alone; on a GPU all steps of a subgraph are one visit (`captured_step`), and on a
cluster several workers visit subgraphs at the same time (`visits`). All that is drawn at random follows from the seed,
the epoch and the subgraph, so that an interrupted run resumes from its last checkpoint to the same result. The valid
links, where they are not seeds, choose the epoch whose parameters the run ends with.
Cost: an epoch passes each subgraph once for every batch of its seeds.

# Paper: subgraphs as mini-batches; RMSprop 0.005; batches of 1,024.
# Departs: the learning rate falls along a cosine (`train.schedule`); the graph may be repartitioned every few epochs;
#     the valid links, where they are not seeds, choose the epoch. The authors' code looked at test links every epoch.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import EpochRecord, SubgraphSet
from largegnn.embedding.captured_step import CapturedVisits, Visit, can_be_captured
from largegnn.embedding.checkpoint import CheckpointInMemory, Checkpoints, SavedEpochs, best_epoch
from largegnn.embedding.feeding import PairFeed, ReadyPairs, SubgraphFeed
from largegnn.embedding.fused import has_kernels
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.stepping import Batch, Stepper, batches_of, split_seeds
from largegnn.embedding.visits import PlannedVisit, VisitWorkers
from largegnn.errors import InputError, TrainingError
from largegnn.machine.precision import training_precision
from largegnn.machine.progress import Work, progress

__all__ = ["Trainer"]

_log = logging.getLogger(__name__)


class Trainer:
    """Trains a model over subgraphs, epoch by epoch."""

    def __init__(
        self,
        model: EmbeddingModel,
        division: Callable[[int], SubgraphSet],
        num_relations: int,
        options: TrainOptions,
        seed: int,
        *,
        checkpoints: Checkpoints | None = None,
        best: Checkpoints | None = None,
        validate: Callable[[EmbeddingModel], float] | None = None,
        workers: VisitWorkers | None = None,
        choose: bool = True,
        keep_last: bool = False,
    ) -> None:
        """`division(number)` gives the subgraphs of a division by its number.

        `best` keeps the epoch that `validate` prefers, the earliest of equals; where none is given that epoch is kept
        in memory. `workers` make the visits of an epoch on a cluster. Without `choose` the last epoch is taken whatever
        `validate` says. With `keep_last` the last epoch has a checkpoint too.
        """
        self.model, self.options, self._seed = model, options, seed
        self._division, self._num_relations = division, num_relations
        self._validate, self._choose, self._keep_last = validate, choose, keep_last
        self._workers = workers
        self._stepper = Stepper(model, options)
        if not choose:
            best = None
        elif best is None and validate is not None:
            best = CheckpointInMemory()
        self._saved = SavedEpochs(model, checkpoints, best)
        self._visits = CapturedVisits(model, options) if self._can_capture() else None
        self._feed: SubgraphFeed | None = None
        self._pairs: PairFeed | None = None
        self._division_number = -1
        self.history: list[EpochRecord] = []

    def run(self) -> list[EpochRecord]:
        """Train to the last epoch, from the last checkpoint if there is one; ends with the best epoch's parameters."""
        self.history = self._saved.resume()
        saved_at = time.monotonic()
        with progress("train", self.options.epochs, "epochs", done=len(self.history)) as work:
            for epoch in range(len(self.history), self.options.epochs):
                self._run_epoch(epoch)
                is_last = epoch + 1 == self.options.epochs
                is_best = self._choose and best_epoch(self.history) == epoch
                # The last epoch needs no checkpoint of its own if the caller stores the result.
                is_due = time.monotonic() - saved_at >= self.options.checkpoint_seconds
                if is_due or (is_last and self._keep_last) or (is_best and not is_last):
                    self._saved.save(self.history)
                    saved_at = time.monotonic()
                    if is_best:
                        self._saved.save_best(self.history)
                work.advance()
        if self._choose:
            self._saved.restore_best(self.history)
        return self.history

    def _run_epoch(self, epoch: int) -> None:
        """Train one epoch, check and validate the result, and add its record."""
        started = time.monotonic()
        with training_precision(self.options.precision):
            loss = self._train_epoch(epoch)
        self._refuse_divergence(epoch, loss)
        hits = self._validate_epoch(epoch)
        self.history.append(EpochRecord(epoch, loss, hits, time.monotonic() - started))
        self._log_epoch()

    def _train_epoch(self, epoch: int) -> float:
        """Pass all subgraphs once; the mean loss of the steps."""
        feed = self._feed_of(epoch)
        order = np.random.default_rng([self._seed, epoch]).permutation(len(feed.subgraphs)).tolist()
        sizes = np.diff(feed.subgraphs.seed_ptr)
        order = [index for index in order if sizes[index]]
        num_steps = [-(-int(sizes[index]) // self.options.batch_size) for index in order]
        total = sum(num_steps)
        losses = []
        with progress(f"epoch {epoch + 1}", total, "steps") as work:
            if self._workers is not None:
                planned = self._planned(order, num_steps, epoch)
                return self._workers.visit_all(self.model, self._division_number, feed.subgraphs, planned, work)
            if self._visits is not None and self._pairs is not None:
                return self._visit_all(self._visits, self._pairs, self._planned(order, num_steps, epoch), epoch, work)
            for done, batch in enumerate(self._batches(feed, order, epoch)):
                losses.append(self._stepper.step(batch, self._learning_rate(epoch + done / total)))
                work.advance()
        return float(torch.stack(losses).double().sum()) / total if losses else 0.0

    def _planned(self, order: list[int], num_steps: list[int], epoch: int) -> list[PlannedVisit]:
        """The visits of an epoch with the learning rate of each of their steps."""
        total, firsts = sum(num_steps), np.cumsum([0, *num_steps[:-1]]).tolist()
        rates = [
            tuple(self._learning_rate(epoch + (done + step) / total) for step in range(count))
            for done, count in zip(firsts, num_steps, strict=True)
        ]
        return [
            PlannedVisit(index, each, self._derived_seed(epoch, index))
            for index, each in zip(order, rates, strict=True)
        ]

    def _visit_all(
        self, visits: CapturedVisits, pairs: PairFeed, planned: list[PlannedVisit], epoch: int, work: Work
    ) -> float:
        """Pass all subgraphs once, each in one visit; the mean loss of the steps."""
        num_nodes, losses = np.diff(pairs.subgraphs.entity_ptr), list[Tensor]()
        for one in planned:
            if num_nodes[one.index] > self.options.negatives:
                losses.append(self._visit(visits, pairs.ready(one.index), list(one.learning_rates), one.seed))
            else:
                # A captured step draws a fixed number of negatives: more than the subgraph has nodes.
                batches = self._batches(self._feed_of(epoch), [one.index], epoch)
                steps = zip(batches, one.learning_rates, strict=True)
                losses += [self._stepper.step(*each).reshape(1) for each in steps]
            work.advance(len(one.learning_rates))
        return float(torch.cat(losses).double().sum()) / sum(len(one.learning_rates) for one in planned)

    def _visit(self, visits: CapturedVisits, ready: ReadyPairs, rates: list[float], seed: int) -> Tensor:
        """All steps of one subgraph; the loss of each."""
        generator = torch.Generator(self.model.device).manual_seed(seed)
        batches = split_seeds(ready.seeds, self.options.batch_size, generator)
        return visits.visit(Visit(ready.graph, ready.entities, batches, rates), seed)

    def _batches(self, feed: SubgraphFeed, indices: list[int], epoch: int) -> Iterator[Batch]:
        """The seeds of these subgraphs, shuffled and cut into batches."""
        for index, ready in zip(indices, feed.in_order(indices), strict=True):
            yield from batches_of(ready, self.options.batch_size, self._derived_seed(epoch, index))

    def _feed_of(self, epoch: int) -> SubgraphFeed:
        """The feed of the division of this epoch; another one every `repartition_every` epochs."""
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
            feed_args = (subgraphs, self._num_relations, self.model.device)
            self._feed = SubgraphFeed(*feed_args, self.options.cache_bytes)
            if self._visits is not None:
                self._pairs = PairFeed(*feed_args, 2 * self.options.cache_bytes)
            self._division_number = number
        return self._feed

    def _can_capture(self) -> bool:
        """Whether steps are captured: on a GPU here with Triton, with the encoder and losses written for it."""
        device = self.model.device
        is_wanted = self.options.step == "auto" and device.type == "cuda" and self._workers is None
        return is_wanted and has_kernels(device) and can_be_captured(self.model.encoder, self.options)

    def _learning_rate(self, epoch: float) -> float:
        if self.options.schedule == "constant":
            return self.options.learning_rate
        return self.options.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / self.options.epochs))

    def _derived_seed(self, epoch: int, index: int) -> int:
        return int(np.random.SeedSequence([self._seed, epoch, index]).generate_state(1, np.uint64)[0] >> 1)

    def _validate_epoch(self, epoch: int) -> float | None:
        """H@1 on the valid links, every few epochs and at the end; None in between."""
        is_last = epoch + 1 == self.options.epochs
        if self._validate is None or not (is_last or (epoch + 1) % self.options.validate_every == 0):
            return None
        return float(self._validate(self.model))

    def _refuse_divergence(self, epoch: int, loss: float) -> None:
        if math.isfinite(loss) and self.model.is_finite():
            return
        raise TrainingError(
            f"training diverged in epoch {epoch + 1}: its mean loss is {loss:g}, or a parameter is not finite. "
            "The checkpoints before it are kept; lower train.learning_rate or train.scale, and run again with --resume"
        )

    def _log_epoch(self) -> None:
        record = self.history[-1]
        recent = [epoch.seconds for epoch in self.history[-5:]]
        left = (self.options.epochs - len(self.history)) * sum(recent) / len(recent)
        hits = "" if record.valid_hits is None else f", valid H@1 {record.valid_hits:.4f}"
        _log.info(
            "train: epoch %d of %d, loss %.4f%s, %.2f s, about %.0f s left",
            record.epoch + 1,
            self.options.epochs,
            record.loss,
            hits,
            record.seconds,
            left,
        )
