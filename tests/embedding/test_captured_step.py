"""Visits without a GPU: the same steps, not captured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from largegnn.artifacts import SubgraphSet
from largegnn.embedding.captured_step import CapturedVisits, Draws, Visit, can_be_captured, fixed_shape_loss
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.feeding import Feed, ReadySubgraph, prepare_pairs, prepare_subgraph
from largegnn.embedding.gcn import GCN
from largegnn.embedding.losses import HardNegatives, alignment_loss, cross_negative_loss, reconstruction_loss
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.pair_graph import PairGraph
from largegnn.embedding.trainer import Trainer
from largegnn.settings import TrainSettings
from tests.embedding.generated_pairs import generated_pair
from tests.embedding.small_runs import (
    CPU,
    NUM_RELATIONS,
    are_equal,
    copies,
    hits_of,
    random_subgraphs,
    small_model,
    small_options,
    small_trainer,
    train_options,
)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def visiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainers make visits as they do on a GPU."""
    monkeypatch.setattr(Trainer, "_can_capture", lambda self: True)


def visit_of(subgraphs: SubgraphSet, index: int, num_steps: int = 2) -> Visit:
    ready = Feed(subgraphs, prepare_pairs, NUM_RELATIONS, CPU, 0).ready(index)
    return Visit(ready.graph, ready.entities, ready.seeds.tensor_split(num_steps), [0.01] * num_steps)


def uneven() -> SubgraphSet:
    """A subgraph of 40 entities, and a larger one of 60."""
    first, second = random_subgraphs(1), random_subgraphs(1, part_size=60, num_seeds=18)
    names = ("entities", "entity_ptr", "triples", "triple_ptr", "seeds", "seed_ptr")
    values = {}
    for name in names:
        one, two = getattr(first, name), getattr(second, name)
        values[name] = np.append(one, one[-1] + two[1:]) if name.endswith("_ptr") else np.concatenate([one, two])
    return SubgraphSet(**values)


def test_a_visit_changes_its_own_rows_and_what_is_shared() -> None:
    subgraphs, options = random_subgraphs(2), small_options()
    model = small_model(subgraphs, options)
    before = copies(model)
    losses = CapturedVisits(model, options).visit(visit_of(subgraphs, 1), 5)
    assert losses.shape == (2,)
    assert torch.isfinite(losses).all()
    moved = (model.entities.values != before["entities.values"]).any(dim=1).nonzero().flatten()
    assert moved.tolist() == subgraphs.subgraph(1).entities.tolist()
    assert all(not torch.equal(tensor, before[name]) for name, tensor in model.tensors().items())


def test_what_was_visited_before_leaves_nothing_behind() -> None:
    subgraphs, options = uneven(), small_options()
    results = []
    for before in ([], [1], [0, 1]):
        model = small_model(subgraphs, options)
        visits = CapturedVisits(model, options)
        state = copies(model)
        for index in before:
            visits.visit(visit_of(subgraphs, index, 3), index)
        model.load_tensors(state)
        results.append((visits.visit(visit_of(subgraphs, 0), 9), copies(model)))
    for losses, state in results[1:]:
        assert torch.allclose(losses, results[0][0], rtol=1e-6)
        for name, tensor in state.items():
            torch.testing.assert_close(tensor, results[0][1][name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tables", ["host", "file"])
def test_the_place_of_the_tables_changes_nothing(tables: str, tmp_path: Path, visiting: None) -> None:
    subgraphs = random_subgraphs(3)
    here = small_trainer(subgraphs, small_options())
    there_options = small_options(tables=tables)
    model = EmbeddingModel(len(here.model.entities.values), NUM_RELATIONS, there_options, CPU, 0, tmp_path)
    there = Trainer(model, lambda _: subgraphs, NUM_RELATIONS, there_options, 0)
    assert [record.loss for record in here.run()] == [record.loss for record in there.run()]
    assert are_equal(copies(here.model), copies(there.model))


def test_visits_learn_as_plain_steps_do(visiting: None) -> None:
    task, _, subgraphs = generated_pair(400, 2)
    options = train_options(dim=16, epochs=6, negatives=200, batch_size=32)
    hits = []
    for visits in (True, False):
        model = EmbeddingModel(task.num_entities, task.num_relations, options, CPU, 0)
        trainer = Trainer(model, lambda _: subgraphs, task.num_relations, options, 0)
        if not visits:
            trainer._visits = None
        trainer.run()
        hits.append(hits_of(model, task.num_relations, task.triples, task.test_links))
    assert hits[0] > 0.8 * hits[1] > 0


def test_an_interrupted_run_of_visits_ends_with_the_same_numbers(tmp_path: Path, visiting: None) -> None:
    subgraphs = random_subgraphs(3)
    whole = small_trainer(subgraphs, small_options())
    whole.run()

    class StoppedError(Exception):
        pass

    def fail_at_two(model: EmbeddingModel) -> float:
        if len(broken.history) == 2:
            raise StoppedError
        return 0.0

    broken = small_trainer(subgraphs, small_options(), folder=tmp_path, validate=fail_at_two)
    with pytest.raises(StoppedError):
        broken.run()
    resumed = small_trainer(subgraphs, small_options(), folder=tmp_path, choose=False)
    assert len(resumed.run()) == len(whole.history)
    assert are_equal(copies(whole.model), copies(resumed.model))


def test_small_subgraphs_take_the_plain_path(visiting: None) -> None:
    options: TrainSettings = small_options(negatives=40, epochs=1)
    trainer, plain = (small_trainer(random_subgraphs(2), options) for _ in range(2))
    plain._visits = None
    assert trainer.run()[0].loss == plain.run()[0].loss
    # The larger one of two is visited, and both are trained on.
    subgraphs = uneven()
    trainer = small_trainer(subgraphs, options)
    before = trainer.model.entities.values.clone()
    assert np.isfinite(trainer.run()[0].loss)
    moved = (trainer.model.entities.values != before).any(dim=1).nonzero().flatten()
    assert moved.tolist() == np.unique(subgraphs.entities).tolist()


def padded(ready: ReadySubgraph[PairGraph]) -> PairGraph:
    arrays = PairGraph.empty(ready.graph.capacity.rounded_up(), CPU)
    arrays.put(ready.graph)
    return arrays


def test_the_loss_of_padded_arrays_is_the_plain_one_and_so_is_its_gradient() -> None:
    options, subgraphs = small_options(dropout=0.0, reconstruction_dropout=0.0), random_subgraphs(2)
    model = small_model(subgraphs, options)
    assert isinstance(model.encoder, DualAMN)
    (plain,) = Feed(subgraphs, prepare_subgraph, NUM_RELATIONS, CPU, 0).in_order([0])
    ready = Feed(subgraphs, prepare_pairs, NUM_RELATIONS, CPU, 0).ready(0)
    graph, count = padded(ready), len(ready.entities)
    generator = torch.Generator().manual_seed(1)
    seeds, negatives = plain.seeds[:5], torch.randperm(count, generator=generator)[:20]
    # Two seeds are among the negatives.
    negatives[:2] = seeds[0]
    negatives = torch.unique(negatives)
    own = torch.randn(count, 8, generator=generator)
    outside = torch.randn(14, 8, generator=generator)
    kept = torch.tensor([1.0, 0.0] * 7)

    rows = torch.cat([own, torch.zeros(graph.capacity.nodes - count, 8)]).requires_grad_()
    draws = Draws(
        seeds=torch.cat([seeds, torch.zeros(3, 2, dtype=torch.int64)]),
        shares=torch.tensor([0.2] * 5 + [0.0] * 3),
        negatives=negatives,
        outside=outside,
        is_outside=kept,
        noise=torch.tensor([3]),
    )
    ours = fixed_shape_loss(model.encoder, rows, model.relations, graph, draws, options)

    other = own.clone().requires_grad_()
    outputs = model.encoder(other, model.relations, plain.graph)
    weights = options.losses
    expected = alignment_loss(outputs, seeds, negatives)
    expected = expected + weights["reconstruction"] * reconstruction_loss(other, plain.graph, 0.0, generator)
    seed_rows = other[seeds.flatten()].view(-1, 2, 8)
    pushed = cross_negative_loss(seed_rows, outside[kept > 0], HardNegatives(options.cross_gamma))
    expected = expected + weights["cross_subgraph"] * pushed

    torch.testing.assert_close(ours, expected)
    (grad, *dense) = torch.autograd.grad(ours, [rows, *model.dense])
    (other_grad, *other_dense) = torch.autograd.grad(expected, [other, *model.dense])
    torch.testing.assert_close(grad[:count], other_grad, rtol=1e-4, atol=1e-4)
    assert not grad[count:].any()
    for one, another in zip(dense, other_dense, strict=True):
        torch.testing.assert_close(one, another, rtol=1e-3, atol=1e-4)


def test_other_encoders_and_losses_take_the_plain_path() -> None:
    encoder = DualAMN(8)
    assert can_be_captured(encoder, small_options())
    assert can_be_captured(encoder, small_options(losses={"alignment": 1.0, "mine": 0.0}))
    assert not can_be_captured(GCN(8), small_options())
    assert not can_be_captured(encoder, small_options(losses={"alignment": 1.0, "mine": 0.5}))
    assert not can_be_captured(encoder, small_options(losses={"reconstruction": 1.0}))
    assert not can_be_captured(encoder, small_options(negatives=0))
