"""What every loss of the table promises: one number or nothing, finite gradients, the same result for the same seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from largegnn.embedding.feeding import ReadySubgraph
from largegnn.embedding.losses import LOSSES, StepContext
from largegnn.embedding.structure import build_structure
from tests.embedding.random_graphs import NUM_RELATIONS, random_triples
from tests.embedding.small_runs import random_subgraphs, small_options, small_trainer

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.parametrize("name", list(LOSSES))]
NUM_NODES, NUM_ENTITIES, DIM, OUTPUT_DIM = 30, 80, 6, 9
SEEDS = [(0, 20), (3, 21), (3, 22), (7, 29)]


def context_of(seed: int = 0, *, inside: bool = False, **changes: Any) -> StepContext:
    """Thirty nodes of a random graph, four seeds of which two share an end, and all nodes as negatives.

    The subgraph holds every other entity of sixty, and of eighty there are; `inside` leaves none outside.
    """
    draw = torch.Generator().manual_seed(5)
    table = torch.randn(NUM_NODES if inside else NUM_ENTITIES, DIM, generator=draw)
    entities = torch.arange(NUM_NODES) if inside else 2 * torch.arange(NUM_NODES)
    seeds = torch.tensor(SEEDS)
    structure = build_structure(NUM_NODES, random_triples(NUM_NODES, 60, 2), NUM_RELATIONS)
    context = StepContext(
        subgraph=ReadySubgraph(structure, entities, seeds),
        rows=table[entities].clone().requires_grad_(),
        relation_rows=torch.randn(2 * NUM_RELATIONS, DIM, generator=draw).requires_grad_(),
        seeds=seeds,
        outputs=torch.randn(NUM_NODES, OUTPUT_DIM, generator=draw).requires_grad_(),
        seeds_in_outputs=seeds,
        negatives_in_outputs=None,
        entity_table=table,
        options=small_options(),
        generator=torch.Generator().manual_seed(seed),
    )
    return replace(context, **changes)


def value_and_gradients(name: str, context: StepContext) -> tuple[Tensor, list[Tensor]]:
    value = LOSSES[name](context)
    assert value is not None
    leaves = [context.rows, context.relation_rows, context.outputs]
    return value.detach(), list(torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True))


CONTEXTS: dict[str, dict[str, Any]] = {
    "all nodes": {},
    "one seed": {"seeds": torch.tensor([(4, 9)]), "seeds_in_outputs": torch.tensor([(4, 9)])},
    "few outputs": {
        "outputs": torch.linspace(-1, 1, 5 * OUTPUT_DIM).reshape(5, -1).requires_grad_(),
        "seeds_in_outputs": torch.tensor([(0, 1), (2, 3), (2, 4), (1, 3)]),
        "negatives_in_outputs": torch.tensor([4, 0, 2]),
    },
    "equal rows": {
        "rows": torch.ones(NUM_NODES, DIM, requires_grad=True),
        "outputs": torch.ones(NUM_NODES, OUTPUT_DIM, requires_grad=True),
        "entity_table": torch.ones(NUM_ENTITIES, DIM),
    },
    "no triples": {
        "subgraph": ReadySubgraph(
            build_structure(NUM_NODES, np.empty((0, 3), dtype=np.int32), NUM_RELATIONS),
            2 * torch.arange(NUM_NODES),
            torch.tensor(SEEDS),
        )
    },
}


@pytest.mark.parametrize("kind", list(CONTEXTS))
def test_it_is_one_finite_number_with_finite_gradients(name: str, kind: str) -> None:
    value, gradients = value_and_gradients(name, context_of(**CONTEXTS[kind]))
    assert value.shape == ()
    assert value.dtype == torch.float32
    assert torch.isfinite(value)
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_it_has_something_to_teach(name: str) -> None:
    _, gradients = value_and_gradients(name, context_of())
    assert any(gradient.any() for gradient in gradients)


def test_the_same_seed_gives_the_same_number_to_the_last_bit(name: str) -> None:
    (first, gradients), (again, same) = (value_and_gradients(name, context_of(seed=4)) for _ in range(2))
    assert torch.equal(first, again)
    assert all(torch.equal(one, other) for one, other in zip(gradients, same, strict=True))


def test_it_draws_from_the_generator_of_the_step_alone(name: str) -> None:
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    value_and_gradients(name, context_of())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_its_arguments_stay_as_they_are_and_the_table_gets_no_gradient(name: str) -> None:
    context, untouched = context_of(), context_of()
    table = context.entity_table.clone().requires_grad_()
    value = LOSSES[name](replace(context, entity_table=table))
    assert value is not None
    value.backward()  # type: ignore[no-untyped-call]
    assert table.grad is None
    for field in ("rows", "relation_rows", "seeds", "outputs", "seeds_in_outputs", "entity_table"):
        assert torch.equal(getattr(context, field), getattr(untouched, field)), field


def test_without_anything_outside_it_says_so_or_does_without(name: str) -> None:
    value = LOSSES[name](context_of(inside=True))
    assert value is None or torch.isfinite(value)


def test_it_trains_alone(name: str) -> None:
    trainer = small_trainer(random_subgraphs(2), small_options(losses={name: 1.0}))
    before = trainer.model.entities.values.clone()
    assert all(np.isfinite(record.loss) for record in trainer.run())
    assert not torch.equal(trainer.model.entities.values, before)
