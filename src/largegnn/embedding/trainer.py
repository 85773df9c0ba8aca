"""Training part by part: subgraphs are mini-batches in random order over shared tables (section 5 of the paper).

In: the subgraphs, the options, a model. Out: the trained model and what every epoch was like.
The idea: a step takes the rows of one subgraph's entities, encodes them, and pulls a batch of its seeds together
against sampled nodes of the subgraph (alignment), against entities outside it (cross-subgraph negatives), and rows
towards the mean of their neighbours (reconstruction). Only those rows are changed. All that is drawn at random follows
from the seed, the epoch and the subgraph, so a killed run goes on from its last checkpoint to the same result.
Several workers (`exchange`) share out the subgraphs of an epoch and make one step together out of one step of each, so
an epoch of w workers has a w-th of the updates: give them about w times the epochs, or a higher learning rate.
Cost: an epoch passes each subgraph once for every batch of its seeds.

# Paper: subgraphs as mini-batches; RMSprop 0.005; batches of 1,024.
# Departs: the learning rate falls along a cosine; subgraphs may be made anew every few epochs; the valid links, where
#     they are not seeds, choose the epoch. The authors' code looked at test links every epoch.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from largegnn.artifacts import SubgraphSet
from largegnn.embedding.checkpoint import CheckpointFolder
from largegnn.embedding.exchange import Exchange
from largegnn.embedding.feeding import ReadySubgraph, SubgraphFeed
from largegnn.embedding.losses import alignment_loss, cross_negative_loss, reconstruction_loss
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.sampling import batch_nodes, dropout, sample_nodes
from largegnn.errors import InputError, TrainingError

__all__ = ["EpochRecord", "Trainer"]

_log = logging.getLogger(__name__)
# A subgraph, some of its seeds (b, 2), and the generator that all its draws of this epoch come from.
_Batch = tuple[ReadySubgraph, Tensor, torch.Generator]


@dataclass(frozen=True)
class EpochRecord:
    """One epoch: mean loss of its steps, H@1 on the valid links if it was looked at, seconds."""

    epoch: int
    loss: float
    valid_hits: float | None
    seconds: float


class Trainer:
    """Trains a model over subgraphs, epoch by epoch."""

    def __init__(
        self,
        model: EmbeddingModel,
        subgraphs_of_round: Callable[[int], SubgraphSet],
        num_relations: int,
        options: TrainOptions,
        seed: int,
        *,
        checkpoints: CheckpointFolder | None = None,
        best: CheckpointFolder | None = None,
        validate: Callable[[EmbeddingModel], float] | None = None,
    ) -> None:
        """`subgraphs_of_round(k)` gives the k-th division, the same on every worker.

        `validate` is called on the first worker alone; `best` keeps the epoch it likes most, the earliest of equals.
        """
        self.model, self.options, self._seed = model, options, seed
        self._subgraphs_of_round, self._num_relations = subgraphs_of_round, num_relations
        self._checkpoints, self._best, self._validate = checkpoints, best, validate
        self._exchange = Exchange()
        self._feed: SubgraphFeed | None = None
        self._round = -1
        self.history: list[EpochRecord] = []

    def run(self) -> list[EpochRecord]:
        """Train to the last epoch, from the last checkpoint if there is one; ends with the best epoch's parameters."""
        self._resume()
        saved = time.monotonic()
        for epoch in range(len(self.history), self.options.epochs):
            started = time.monotonic()
            with _products(self.options.precision):
                loss = self._epoch(epoch)
            self._refuse_divergence(epoch, loss)
            hits = self._look(epoch)
            self.history.append(EpochRecord(epoch, loss, hits, time.monotonic() - started))
            self._say()
            last, is_best = epoch + 1 == self.options.epochs, self._best_epoch() == epoch
            if last or is_best or time.monotonic() - saved >= self.options.checkpoint_seconds:
                self._save()
                saved = time.monotonic()
            if is_best:
                self._save_best()
        self._take_best()
        return self.history

    def _epoch(self, epoch: int) -> float:
        feed = self._feed_of(epoch)
        order = np.random.default_rng([self._seed, epoch]).permutation(len(feed.subgraphs)).tolist()
        sizes = np.diff(feed.subgraphs.seed_ptr)
        order = [index for index in order if sizes[index]]
        num_steps = [-(-int(sizes[index]) // self.options.batch_size) for index in order]
        # Every worker makes as many steps as the busiest one, so that they meet at each exchange.
        steps_of_worker = [sum(num_steps[rank :: self._exchange.size]) for rank in range(self._exchange.size)]
        total = max(steps_of_worker)
        work = self._batches(feed, self._exchange.deal(order), epoch)
        nothing = itertools.repeat(None, total - steps_of_worker[self._exchange.rank])
        losses = []
        for done, batch in enumerate(itertools.chain(work, nothing)):
            rate = self._rate(epoch + done / total)
            if batch is None:
                self._idle(rate)
            else:
                losses.append(self._step(*batch, rate))
        loss_sum = float(torch.stack(losses).double().sum()) if losses else 0.0
        return self._exchange.mean(loss_sum, len(losses), self.model.device)

    def _batches(self, feed: SubgraphFeed, indices: list[int], epoch: int) -> Iterator[_Batch]:
        """The seeds of these subgraphs, shuffled and cut into batches."""
        for index, ready in zip(indices, feed.in_order(indices), strict=True):
            generator = torch.Generator(self.model.device)
            generator.manual_seed(self._derived(epoch, index))
            shuffled = ready.seeds[torch.randperm(len(ready.seeds), generator=generator, device=self.model.device)]
            # Equal batches: a small last one would cost as much as a full one.
            for batch in shuffled.tensor_split(-(-len(shuffled) // self.options.batch_size)):
                yield ready, batch, generator

    def _step(self, ready: ReadySubgraph, seeds: Tensor, generator: torch.Generator, rate: float) -> Tensor:
        rows = self.model.entities.gather(ready.entities)
        loss = self._loss(ready, rows, seeds, generator)
        loss.backward()  # type: ignore[no-untyped-call]
        self.model.step(ready.entities, rows, rate, self._exchange)
        return loss.detach()

    def _idle(self, rate: float) -> None:
        """Take part in an exchange with nothing to say."""
        nothing = torch.empty(0, dtype=torch.int64, device=self.model.device)
        self.model.step(nothing, self.model.entities.gather(nothing), rate, self._exchange)

    def _loss(self, ready: ReadySubgraph, rows: Tensor, seeds: Tensor, generator: torch.Generator) -> Tensor:
        options, encoder, relations = self.options, self.model.encoder, self.model.relations
        shape = {"gamma": options.gamma, "scale": options.scale, "shift": options.shift}
        num_nodes = len(ready.entities)
        if 0 < options.negatives < num_nodes:
            chosen = batch_nodes(seeds, sample_nodes(num_nodes, options.negatives, generator))
            outputs = encoder(rows, relations, ready.structure, chosen.nodes)
            places, negatives = chosen.seeds, chosen.negatives
        else:
            outputs, places, negatives = encoder(rows, relations, ready.structure), seeds, None
        outputs = dropout(outputs, options.dropout, generator)
        loss = alignment_loss(outputs, places, negatives, **shape, chunk_bytes=options.loss_chunk_bytes)
        if options.reconstruction_weight:
            rebuilt = reconstruction_loss(rows, ready.structure, options.reconstruction_dropout, generator)
            loss = loss + options.reconstruction_weight * rebuilt
        if options.cross_weight:
            outside = self._outside(ready.entities, generator)
            if len(outside):
                seed_rows = rows.index_select(0, seeds.flatten()).view(len(seeds), 2, -1)
                shape["gamma"] = options.cross_gamma
                away = cross_negative_loss(seed_rows, outside, **shape, chunk_bytes=options.loss_chunk_bytes)
                loss = loss + options.cross_weight * away
        return loss

    def _outside(self, entities: Tensor, generator: torch.Generator) -> Tensor:
        """Input rows of entities outside a subgraph, drawn at random; `entities` are ascending."""
        table = self.model.entities.values
        drawn = torch.randint(
            len(table), (self.options.cross_negatives,), generator=generator, device=self.model.device
        )
        place = torch.searchsorted(entities, drawn).clamp_(max=len(entities) - 1)
        return table.index_select(0, drawn[entities[place] != drawn])

    def _feed_of(self, epoch: int) -> SubgraphFeed:
        """The feed of the division this epoch uses; another one every `refresh_every` epochs."""
        number = epoch // self.options.refresh_every if self.options.refresh_every else 0
        if self._feed is None or number != self._round:
            self._feed = None  # what it keeps makes room before the next division is made
            subgraphs = self._subgraphs_of_round(number)
            if not len(subgraphs.seeds):
                raise InputError(
                    "no subgraph holds both ends of a seed pair, so there is nothing to train on",
                    expected="seeds, and a division that keeps some of them together",
                    fix="give more seeds or make fewer parts",
                )
            self._feed = SubgraphFeed(subgraphs, self._num_relations, self.model.device, self.options.cache_bytes)
            self._round = number
        return self._feed

    def _rate(self, epoch: float) -> float:
        return self.options.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / self.options.epochs))

    def _derived(self, epoch: int, index: int) -> int:
        return int(np.random.SeedSequence([self._seed, epoch, index]).generate_state(1, np.uint64)[0] >> 1)

    def _look(self, epoch: int) -> float | None:
        """H@1 on the valid links, every few epochs and at the end; None in between."""
        last = epoch + 1 == self.options.epochs
        if self._validate is None or not (last or (epoch + 1) % self.options.validate_every == 0):
            return None
        hits = self._validate(self.model) if self._exchange.is_first else None
        return float(self._exchange.agree(hits, self.model.device))

    def _refuse_divergence(self, epoch: int, loss: float) -> None:
        if math.isfinite(loss) and self.model.is_finite():
            return
        raise TrainingError(
            f"training diverged in epoch {epoch + 1}: its mean loss is {loss:g}, or a parameter is no number. "
            "The checkpoints before it are kept; lower train.learning_rate or train.scale, and run again with --resume"
        )

    def _best_epoch(self) -> int | None:
        """The epoch with most hits on the valid links so far, the earliest of equals."""
        looked = [record for record in self.history if record.valid_hits is not None]
        return max(looked, key=lambda record: record.valid_hits or 0.0).epoch if looked else None

    def _save(self) -> None:
        if self._checkpoints is not None and self._exchange.is_first:
            self._checkpoints.save(len(self.history), self.model.tensors(), {"history": self._plain_history()})

    def _save_best(self) -> None:
        """Keep the present epoch as the best; a checkpoint that says so must be on disk already."""
        if self._best is not None and self._exchange.is_first:
            self._best.save(len(self.history), self.model.tensors(), {"valid_hits": self.history[-1].valid_hits})

    def _resume(self) -> None:
        """Start all workers from the last checkpoint, or where the first one stands."""
        found = self._checkpoints.load_latest() if self._checkpoints is not None and self._exchange.is_first else None
        if found is not None:
            self.model.load_tensors(found[1])
            self.history = [EpochRecord(**record) for record in found[2]["history"]]
            _log.info("train: going on after epoch %d of %d", found[0], self.options.epochs)
        self._spread()
        if self.history and self._best_epoch() == self.history[-1].epoch:
            # The run may have ended between the checkpoint and the best epoch's own.
            self._save_best()

    def _spread(self) -> None:
        """Give every worker the first one's parameters and history."""
        if self._exchange.size > 1:
            tensors = self.model.tensors()
            self._exchange.broadcast(tensors.values())
            self.model.load_tensors(tensors)
            history: list[dict[str, Any]] = self._exchange.agree(self._plain_history(), self.model.device)
            self.history = [EpochRecord(**record) for record in history]

    def _take_best(self) -> None:
        best = self._best_epoch()
        if self._best is None or best is None or best == self.history[-1].epoch:
            return
        found = self._best.load_latest() if self._exchange.is_first else None
        if found is not None and found[0] == best + 1:
            self.model.load_tensors(found[1])
            _log.info("train: epoch %d was best on the valid links and is kept", found[0])
        elif self._exchange.is_first:
            _log.warning(
                "train: epoch %d was best on the valid links but is not to be found; the last is kept", best + 1
            )
        self._spread()

    def _plain_history(self) -> list[dict[str, Any]]:
        return [asdict(record) for record in self.history]

    def _say(self) -> None:
        if not self._exchange.is_first:
            return
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


@contextlib.contextmanager
def _products(precision: str) -> Iterator[None]:
    """Let a GPU shorten the factors of float32 products, or not, and restore what was there."""
    before = torch.backends.cuda.matmul.fp32_precision
    try:
        torch.backends.cuda.matmul.fp32_precision = "tf32" if precision == "tf32" else "ieee"
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
