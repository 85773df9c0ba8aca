"""Take one training step: encode a subgraph, add up the losses, update the parameters (section 5 of the paper).

In: a batch of seeds of a subgraph, the learning rate. Out: the loss of the step; the model is changed.
The idea: the encoder's outputs are computed once, for the seeds and the sampled negatives only, and all losses use
them.
Cost: one forward and one backward pass of the encoder over the subgraph, and the losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from largegnn.embedding.feeding import ReadySubgraph
from largegnn.embedding.losses import SampledRows, StepContext, losses_in_order
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.sampling import batch_nodes, dropout, sample_nodes
from largegnn.embedding.structure import GraphStructure
from largegnn.errors import InputError

if TYPE_CHECKING:
    from largegnn.settings import TrainSettings

__all__ = ["Batch", "Stepper", "batches_of", "split_seeds"]


@dataclass(frozen=True, eq=False)
class Batch:
    """A subgraph, a batch of its seeds (b, 2) in local ids, and the generator of all random draws.

    `sampled_rows`: input rows of sampled entities; needed if the model has only the rows of the subgraph.
    """

    subgraph: ReadySubgraph[GraphStructure]
    seeds: Tensor
    generator: torch.Generator
    sampled_rows: SampledRows | None = None


def batches_of(
    subgraph: ReadySubgraph[GraphStructure], batch_size: int, seed: int, sampled_rows: SampledRows | None = None
) -> Iterator[Batch]:
    """Shuffle the seeds of a subgraph and split them into batches; all random draws follow from the seed."""
    generator = torch.Generator(subgraph.seeds.device).manual_seed(seed)
    for seeds in split_seeds(subgraph.seeds, batch_size, generator):
        yield Batch(subgraph, seeds, generator, sampled_rows)


def split_seeds(seeds: Tensor, batch_size: int, generator: torch.Generator) -> Sequence[Tensor]:
    """Shuffle seeds (s, 2) and split them into batches of about equal size.

    A small last batch would cost as much as a full one.
    """
    shuffled = seeds[torch.randperm(len(seeds), generator=generator, device=seeds.device)]
    return shuffled.tensor_split(-(-len(shuffled) // batch_size))


class Stepper:
    """Takes training steps on a model."""

    def __init__(self, model: EmbeddingModel, options: TrainSettings) -> None:
        self._model, self._options = model, options
        self._losses = losses_in_order(options.losses)

    def step(self, batch: Batch, learning_rate: float) -> Tensor:
        """Take one step; returns the loss before the update, a scalar on the device."""
        entities = batch.subgraph.entities
        rows = self._model.entities.leaf_rows(entities)
        loss = self._loss(self._context(batch, rows))
        if loss is None:
            return rows.new_zeros(())
        loss.backward()  # type: ignore[no-untyped-call]
        self._model.step(entities, rows, learning_rate)
        return loss.detach()

    def _context(self, batch: Batch, rows: Tensor) -> StepContext:
        """Draw the negatives, encode the nodes whose outputs are needed, and apply dropout."""
        model, options, generator = self._model, self._options, batch.generator
        structure, seeds, num_nodes = batch.subgraph.graph, batch.seeds, len(batch.subgraph.entities)
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
            entity_table=model.entities.values if batch.sampled_rows is None else batch.sampled_rows.rows,
            table_entities=None if batch.sampled_rows is None else batch.sampled_rows.entities,
            options=options,
            generator=generator,
        )

    def _loss(self, context: StepContext) -> Tensor | None:
        """The weighted sum of the losses; None if every loss returned None."""
        total: Tensor | None = None
        for name, weight, loss in self._losses:
            value = loss(context)
            if value is None:
                continue
            if value.ndim:
                raise InputError(
                    f"the loss {name} returned a tensor of shape {tuple(value.shape)}",
                    expected="one number, a tensor without dimensions",
                    fix="return its mean or sum",
                )
            total = weight * value if total is None else total + weight * value
        return total
