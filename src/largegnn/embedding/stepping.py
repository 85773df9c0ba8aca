"""One step of training: encode a subgraph, add up the losses, change the parameters (section 5 of the paper).

In: some seeds of a subgraph, the learning rate. Out: the loss of the step; the model is changed.
The idea: outputs are computed for the seeds and the sampled negatives only, once, and every loss works on the same.
With several workers each brings the gradients of a step of its own, and all take one step together.
Cost: one pass of the encoder forward and backward over the subgraph, and the losses.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from largegnn.embedding.exchange import Exchange
from largegnn.embedding.feeding import ReadySubgraph
from largegnn.embedding.loss_terms import StepContext, terms_in_order
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.sampling import batch_nodes, dropout, sample_nodes
from largegnn.errors import InputError

__all__ = ["Batch", "Stepper"]


@dataclass(frozen=True, eq=False)
class Batch:
    """A subgraph, some of its seeds (b, 2) in local ids, and the generator of all its draws of this epoch."""

    subgraph: ReadySubgraph
    seeds: Tensor
    generator: torch.Generator


class Stepper:
    """Takes steps on a model, together with the other workers."""

    def __init__(self, model: EmbeddingModel, options: TrainOptions, exchange: Exchange) -> None:
        self._model, self._options, self._exchange = model, options, exchange
        self._terms = terms_in_order(options.losses)

    def step(self, batch: Batch, learning_rate: float) -> Tensor:
        """Take one step; the loss before it, a scalar on the device."""
        entities = batch.subgraph.entities
        rows = self._model.entities.gather(entities)
        loss = self._loss(self._context(batch, rows))
        if loss is None:
            self.idle(learning_rate)
            return rows.new_zeros(())
        loss.backward()  # type: ignore[no-untyped-call]
        self._model.step(entities, rows, learning_rate, self._exchange)
        return loss.detach()

    def idle(self, learning_rate: float) -> None:
        """Take part in the others' step with no gradients of one's own."""
        none = torch.empty(0, dtype=torch.int64, device=self._model.device)
        self._model.step(none, self._model.entities.gather(none), learning_rate, self._exchange)

    def _context(self, batch: Batch, rows: Tensor) -> StepContext:
        """Draw the negatives, encode what is needed, and hide a share of it."""
        model, options, generator = self._model, self._options, batch.generator
        structure, seeds, num_nodes = batch.subgraph.structure, batch.seeds, len(batch.subgraph.entities)
        if 0 < options.negatives < num_nodes:
            chosen = batch_nodes(seeds, sample_nodes(num_nodes, options.negatives, generator))
            outputs = model.encoder(rows, model.relations, structure, chosen.nodes)
            indices, negatives = chosen.seeds, chosen.negatives
        else:
            outputs, indices, negatives = model.encoder(rows, model.relations, structure), seeds, None
        return StepContext(
            subgraph=batch.subgraph,
            rows=rows,
            relation_rows=model.relations,
            seeds=seeds,
            outputs=dropout(outputs, options.dropout, generator),
            seeds_in_outputs=indices,
            negatives_in_outputs=negatives,
            entity_table=model.entities.values,
            options=options,
            generator=generator,
        )

    def _loss(self, context: StepContext) -> Tensor | None:
        """The weighted sum of the losses; None if none of them has anything to add."""
        total: Tensor | None = None
        for name, weight, term in self._terms:
            value = term(context)
            if value is None:
                continue
            if value.ndim:
                raise InputError(
                    f"the loss {name} gave a tensor of shape {tuple(value.shape)}",
                    expected="one number, a tensor without dimensions",
                    fix="return its mean or sum",
                )
            total = weight * value if total is None else total + weight * value
        return total
