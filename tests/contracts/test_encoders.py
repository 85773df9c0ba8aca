"""What every encoder of the table promises: shapes, finite numbers and gradients, the same result every time."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from largegnn.embedding.encoders import Encoder, LayerwiseEncoder
from largegnn.embedding.integrate import encode_full
from largegnn.embedding.structure import GraphStructure, build_structure
from largegnn.parts import ENCODERS
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_rows, random_triples
from tests.embedding.small_runs import random_subgraphs, small_options, small_trainer

DIM = 5
pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.parametrize("name", list(ENCODERS))]


def made(name: str, seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    return ENCODERS[name](DIM)


def graphs() -> list[GraphStructure]:
    """A toy with isolated nodes and a loop, a graph without triples, one node alone, and a random graph."""
    nothing = np.empty((0, 3), dtype=np.int32)
    return [
        build_structure(6, TOY, NUM_RELATIONS),
        build_structure(4, nothing, NUM_RELATIONS),
        build_structure(1, nothing, NUM_RELATIONS),
        build_structure(30, random_triples(30, 90, 1), NUM_RELATIONS),
    ]


def inputs_of(structure: GraphStructure) -> tuple[Tensor, Tensor]:
    entities, relations = random_rows(structure.num_nodes, DIM, 0, torch.float32)
    return entities.requires_grad_(), relations.requires_grad_()


def test_it_is_a_module_with_one_output_for_each_node(name: str) -> None:
    encoder = made(name)
    assert isinstance(encoder, nn.Module)
    for structure in graphs():
        outputs = encoder(*inputs_of(structure), structure)
        assert outputs.shape == (structure.num_nodes, encoder.output_dim)
        assert outputs.dtype == torch.float32
        assert torch.isfinite(outputs).all()


def test_outputs_of_some_nodes_are_those_of_all(name: str) -> None:
    structure = build_structure(12, random_triples(12, 25, 3), NUM_RELATIONS)
    encoder, inputs = made(name), inputs_of(structure)
    every = encoder(*inputs, structure)
    for nodes in (torch.tensor([7, 0, 11, 7]), torch.empty(0, dtype=torch.int64)):
        some = encoder(*inputs, structure, nodes)
        assert some.shape == (len(nodes), encoder.output_dim)
        torch.testing.assert_close(some, every[nodes])


def test_gradients_are_finite_and_reach_entities_and_weights(name: str) -> None:
    for structure in graphs():
        encoder = made(name)
        entities, relations = inputs_of(structure)
        encoder(entities, relations, structure).square().sum().backward()  # type: ignore[no-untyped-call]
        assert entities.grad is not None
        # Which of the others matter is the encoder's own affair: a graph without triples has no use for relations.
        for leaf in (entities, relations, *encoder.parameters()):
            assert leaf.grad is None or torch.isfinite(leaf.grad).all()
    assert entities.grad is not None
    assert entities.grad.any()
    assert any(weight.grad is not None and weight.grad.any() for weight in encoder.parameters())


def test_equal_seeds_give_equal_numbers_to_the_last_bit(name: str) -> None:
    for structure in graphs():
        results = []
        for _ in range(2):
            encoder = made(name, seed=3)
            entities, relations = inputs_of(structure)
            outputs = encoder(entities, relations, structure)
            (gradient,) = torch.autograd.grad(outputs.square().sum(), entities)
            results.append((outputs, gradient))
        assert all(torch.equal(first, second) for first, second in zip(*results, strict=True))


def test_other_seeds_give_other_weights(name: str) -> None:
    structure = graphs()[-1]
    first, second = (made(name, seed)(*inputs_of(structure), structure) for seed in (0, 1))
    assert not torch.equal(first, second)


def test_its_arguments_stay_as_they_are(name: str) -> None:
    structure = graphs()[0]
    entities, relations = inputs_of(structure)
    before = entities.detach().clone(), relations.detach().clone(), copy.deepcopy(structure)
    made(name)(entities, relations, structure)
    assert torch.equal(entities, before[0])
    assert torch.equal(relations, before[1])
    for field, value in vars(before[2]).items():
        assert torch.equal(torch.as_tensor(getattr(structure, field)), torch.as_tensor(value))


def test_the_parameters_are_always_listed_in_one_order(name: str) -> None:
    shapes = [[tuple(weight.shape) for weight in made(name, seed).parameters()] for seed in (0, 1)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("chunk_bytes", [1, 500, 3_000, 10**7])
def test_a_graph_in_chunks_is_the_graph_in_one_piece(name: str, chunk_bytes: int, tmp_path: Path) -> None:
    encoder = made(name)
    if not isinstance(encoder, LayerwiseEncoder):
        pytest.skip(f"{name} encodes in one piece")
    for number, structure in enumerate(graphs()):
        entities, relations = (rows.detach() for rows in inputs_of(structure))
        expected = nn.functional.normalize(encoder(entities, relations, structure).detach(), dim=1).numpy()
        shape = (structure.num_nodes, encoder.output_dim)
        mapped = np.lib.format.open_memmap(tmp_path / f"{number}.npy", mode="w+", dtype=np.float32, shape=shape)
        encode_full(encoder, entities, relations, structure, chunk_bytes=chunk_bytes, outputs=mapped)
        np.testing.assert_allclose(mapped, expected, atol=1e-6)


@pytest.mark.parametrize("negatives", [0, 20])
def test_it_trains(name: str, negatives: int) -> None:
    trainer = small_trainer(random_subgraphs(2), small_options(encoder=name, negatives=negatives))
    before = trainer.model.entities.values.clone(), [weight.clone() for weight in trainer.model.encoder.parameters()]
    assert all(np.isfinite(record.loss) for record in trainer.run())
    assert not torch.equal(trainer.model.entities.values, before[0])
    assert any(
        not torch.equal(now, then) for now, then in zip(trainer.model.encoder.parameters(), before[1], strict=True)
    )
