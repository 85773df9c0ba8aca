"""The losses by name, as training calls them: what a step has at hand in, one number out (section 5.3 of the paper).

In: a `StepContext`, the same for every loss of a step. Out: a scalar with its gradient, or None where a step has
nothing to add. The table `LOSSES` (`largegnn.seams.tables`) has them by name, `train.losses` gives each a weight, and
training minimises the weighted sum. The arithmetic is in `losses`.
A loss draws at random from the context's generator alone, so that a run follows from its seed; one of weight 0 is not
called and draws nothing. Losses are called in a fixed order, whatever the order of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from largegnn.embedding.feeding import ReadySubgraph
from largegnn.embedding.losses import alignment_loss, cross_negative_loss, reconstruction_loss
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.printed_losses import printed_cross_loss
from largegnn.seams.tables import LOSSES

__all__ = [
    "LossTerm",
    "StepContext",
    "alignment",
    "cross_subgraph",
    "cross_subgraph_printed",
    "reconstruction",
    "terms_in_order",
]

_FIRST = ("alignment", "reconstruction", "cross_subgraph")


@dataclass(frozen=True, eq=False)
class OtherRows:
    """Some entities (c,), ascending, and their input rows (c, d)."""

    entities: Tensor
    rows: Tensor


@dataclass(frozen=True, eq=False)
class StepContext:
    """What a step has at hand: k entities of a subgraph, b of its seeds, and the encoder's outputs for m nodes.

    - `subgraph`: structure, global ids (k,) ascending, all seeds of the subgraph
    - `rows` (k, d): the input rows of its entities; `relation_rows` (2R, d). Gradients flow to both
    - `seeds` (b, 2): the seeds of this step in local ids, that is, as indices into `rows`
    - `outputs` (m, D): the encoder's outputs after dropout; `seeds_in_outputs` (b, 2) and `negatives_in_outputs` (c,)
      are indices into them, None means that all outputs are negatives
    - `entity_table` (n, d): the input rows of all entities, without gradient. Where tables are shared with other
      machines these are the rows of some entities drawn at random, `table_entities` (n,) ascending; None means all
    - `generator`: where everything random is drawn from
    """

    subgraph: ReadySubgraph
    rows: Tensor
    relation_rows: Tensor
    seeds: Tensor
    outputs: Tensor
    seeds_in_outputs: Tensor
    negatives_in_outputs: Tensor | None
    entity_table: Tensor
    options: TrainOptions
    generator: torch.Generator
    table_entities: Tensor | None = None


LossTerm = Callable[[StepContext], Tensor | None]


def alignment(context: StepContext) -> Tensor:
    """Pull the two ends of a seed together, away from other nodes of the subgraph."""
    options = context.options
    return alignment_loss(
        context.outputs,
        context.seeds_in_outputs,
        context.negatives_in_outputs,
        gamma=options.gamma,
        scale=options.scale,
        shift=options.shift,
        chunk_bytes=options.loss_chunk_bytes,
    )


def reconstruction(context: StepContext) -> Tensor:
    """Draw the input row of each entity towards the mean of its neighbours' rows."""
    rate = context.options.reconstruction_dropout
    return reconstruction_loss(context.rows, context.subgraph.structure, rate, context.generator)


def cross_subgraph(context: StepContext) -> Tensor | None:
    """Push the input rows of seeds away from those of entities outside the subgraph; None if all drawn are inside."""
    outside = _outside_rows(context)
    if not len(outside):
        return None
    options, seeds = context.options, context.seeds
    return cross_negative_loss(
        context.rows.index_select(0, seeds.flatten()).view(len(seeds), 2, -1),
        outside,
        gamma=options.cross_gamma,
        scale=options.scale,
        shift=options.shift,
        chunk_bytes=options.loss_chunk_bytes,
    )


def cross_subgraph_printed(context: StepContext) -> Tensor | None:
    """Push the input rows of all entities of the subgraph away from those outside, as the paper prints it."""
    outside = _outside_rows(context)
    if not len(outside):
        return None
    return printed_cross_loss(context.rows, outside, chunk_bytes=context.options.loss_chunk_bytes)


def _outside_rows(context: StepContext) -> Tensor:
    """Input rows of entities outside the subgraph: of some drawn from all, those that are not in it."""
    table, entities = context.entity_table, context.subgraph.entities
    drawn = torch.randint(
        len(table), (context.options.cross_negatives,), generator=context.generator, device=entities.device
    )
    ids = drawn if context.table_entities is None else context.table_entities[drawn]
    index = torch.searchsorted(entities, ids).clamp_(max=len(entities) - 1)
    # The table may lie in main memory while the subgraph is on a GPU.
    outside = drawn[entities[index] != ids].to(table.device)
    return table.index_select(0, outside).to(entities.device)


def terms_in_order(losses: Mapping[str, float]) -> list[tuple[str, float, LossTerm]]:
    """Name, weight and function of each loss that has a weight: those of the paper first, then others by name."""
    names = [*_FIRST, *sorted(losses.keys() - set(_FIRST))]
    return [(name, losses[name], LOSSES[name]) for name in names if losses.get(name)]
