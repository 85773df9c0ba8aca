from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from largegnn.artifacts import AlignmentTask, SubgraphSet
from largegnn.embedding.feeding import Feed, prepare_subgraph
from largegnn.embedding.losses import LOSSES, StepContext
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.trainer import Trainer
from largegnn.errors import InputError
from largegnn.settings import TrainSettings
from tests.embedding.generated_pairs import generated_pair
from tests.embedding.small_runs import (
    CPU,
    NUM_RELATIONS,
    added_loss,
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


@pytest.fixture(scope="module")
def pair() -> tuple[AlignmentTask, SubgraphSet]:
    """A generated pair of 600 entities a side, which is not hard, in three subgraphs."""
    task, _, subgraphs = generated_pair(600, 3)
    return task, subgraphs


def closer_than_partner(model: EmbeddingModel, subgraphs: SubgraphSet, task: AlignmentTask) -> float:
    """Share of the nodes of its subgraph that are closer to a seed's source than its partner, the mean over seeds."""
    shares = []
    for ready in Feed(subgraphs, prepare_subgraph, task.num_relations, CPU, 0).in_order(list(range(len(subgraphs)))):
        with torch.no_grad():
            outputs = model.encoder(model.entities.leaf_rows(ready.entities), model.relations, ready.graph)
        distances = torch.cdist(outputs[ready.seeds[:, 0]], outputs).square()
        partners = distances.gather(1, ready.seeds[:, 1:])
        shares.append(float((distances < partners).float().mean()))
    return float(np.mean(shares))


def test_training_learns_the_seeds_and_the_test_links(pair: tuple[AlignmentTask, SubgraphSet]) -> None:
    task, subgraphs = pair
    options = train_options(dim=32, epochs=12, negatives=300, batch_size=32)
    model = EmbeddingModel(task.num_entities, task.num_relations, options, CPU, 0)
    untrained = hits_of(model, task.num_relations, task.triples, task.test_links)
    rivals = closer_than_partner(model, subgraphs, task)
    history = Trainer(model, lambda _: subgraphs, task.num_relations, options, 0).run()
    assert [record.epoch for record in history] == list(range(12))
    assert all(math.isfinite(record.loss) and record.valid_hits is None for record in history)
    # The value of the loss does not fall: the mean and deviation it is standardised with move too, without a gradient.
    # What its gradient fights are nodes closer than the partner.
    assert closer_than_partner(model, subgraphs, task) < 0.2 * rivals
    trained = hits_of(model, task.num_relations, task.triples, task.test_links)
    chance = 1 / len(task.test_links)
    assert trained > 100 * chance
    assert trained > 2 * untrained


def test_a_seed_is_a_result() -> None:
    subgraphs = random_subgraphs(3)
    first, again, other = (small_trainer(subgraphs, small_options(), seed) for seed in (0, 0, 1))
    losses = [[record.loss for record in trainer.run()] for trainer in (first, again, other)]
    assert are_equal(copies(first.model), copies(again.model))
    assert losses[0] == losses[1]
    assert not torch.equal(first.model.entities.values, other.model.entities.values)
    # Another course from the same start, too: the seed also draws order, batches, negatives and dropout.
    same_start = Trainer(
        small_model(subgraphs, small_options()), lambda _: subgraphs, NUM_RELATIONS, small_options(), 1
    )
    same_start.run()
    assert not torch.equal(first.model.entities.values, same_start.model.entities.values)


def test_only_entities_of_subgraphs_change() -> None:
    subgraphs = random_subgraphs(2)
    trainer = small_trainer(subgraphs, small_options())
    before = trainer.model.entities.values.clone()
    trainer.run()
    moved = (trainer.model.entities.values != before).any(dim=1)
    assert moved.nonzero().flatten().tolist() == np.unique(subgraphs.entities).tolist()


def with_weight(name: str, weight: float) -> TrainSettings:
    """The alignment loss and at most one other."""
    return small_options(losses={"alignment": 1.0, name: weight})


def first_loss(options: TrainSettings) -> float:
    """The loss of the very first step, before anything has changed."""
    return small_trainer(random_subgraphs(1), options.model_copy(update={"epochs": 1, "batch_size": 100})).run()[0].loss


@pytest.mark.parametrize("name", ["cross_subgraph", "reconstruction"])
def test_each_further_loss_is_one_weight(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, once, twice = (first_loss(with_weight(name, weight)) for weight in (0.0, 1.0, 2.0))
    assert once > alone
    assert twice - alone == pytest.approx(2 * (once - alone), rel=1e-3)
    # At 0 it is not even computed.
    monkeypatch.setitem(LOSSES, name, None)
    assert first_loss(with_weight(name, 0.0)) == alone
    with pytest.raises(TypeError):
        first_loss(with_weight(name, 1.0))


def test_a_custom_loss() -> None:
    called: list[StepContext] = []

    def lengths(context: StepContext) -> Tensor | None:
        """Input rows should be short; nothing is added in the first step."""
        called.append(context)
        return context.rows.square().mean() if len(called) > 1 else None

    with added_loss("lengths", lengths):
        trainer = small_trainer(random_subgraphs(2), small_options(losses={"lengths": 1.0, "alignment": 0.0}))
    norm = float(trainer.model.entities.values.norm())
    losses = [record.loss for record in trainer.run()]
    assert len(called) == 2 * 2 * 4
    assert losses[-1] < losses[1]
    assert float(trainer.model.entities.values.norm()) < norm
    assert called[0].seeds.shape == (6, 2)


def test_a_loss_that_is_not_a_scalar_is_refused() -> None:
    with added_loss("rows", lambda context: context.rows):
        trainer = small_trainer(random_subgraphs(1), small_options(losses={"rows": 1.0}))
    with pytest.raises(InputError, match=r"the loss rows returned a tensor of shape \(40, 8\)"):
        trainer.run()


def test_a_step_without_any_loss_changes_nothing() -> None:
    with added_loss("nothing", lambda context: None):
        trainer = small_trainer(random_subgraphs(2), small_options(losses={"nothing": 1.0}))
    before = copies(trainer.model)
    assert [record.loss for record in trainer.run()] == [0.0] * 4
    assert are_equal(copies(trainer.model), before)


def test_the_order_of_the_losses_in_the_settings_does_not_matter() -> None:
    turned = dict(reversed(list(small_options().losses.items())))
    first, second = (small_trainer(random_subgraphs(2), small_options(**losses)) for losses in ({}, {"losses": turned}))
    assert [record.loss for record in first.run()] == [record.loss for record in second.run()]
    assert are_equal(copies(first.model), copies(second.model))


def test_a_loss_may_be_named_by_its_module() -> None:
    name = "largegnn.embedding.losses:reconstruction"
    first, second = (first_loss(with_weight(each, 2.0)) for each in ("reconstruction", name))
    assert first == second


@pytest.mark.parametrize("name", ["none", "nowhere:none", "math:none"])
def test_an_unknown_loss_is_refused(name: str) -> None:
    with pytest.raises(
        InputError, match=rf"no loss is called '{name}'[\s\S]*alignment, reconstruction, cross_subgraph"
    ):
        small_trainer(random_subgraphs(1), small_options(losses={name: 1.0}))


def test_another_division_every_few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    used: list[int] = []
    divisions = [random_subgraphs(number) for number in (1, 2, 3)]

    def division(number: int) -> SubgraphSet:
        asked.append(number)
        return divisions[number]

    options = small_options(epochs=5, repartition_every=2)
    trainer = Trainer(small_model(divisions[2], options), division, NUM_RELATIONS, options, 0)
    train_epoch = trainer._train_epoch

    def watched(number: int) -> float:
        loss = train_epoch(number)
        assert trainer._feed is not None
        used.append(len(trainer._feed.subgraphs))
        return loss

    monkeypatch.setattr(trainer, "_train_epoch", watched)
    trainer.run()
    assert asked == [0, 1, 2]
    assert used == [1, 1, 2, 2, 3]


def test_a_resumed_run_uses_the_division_of_its_epoch(tmp_path: Path) -> None:
    asked: list[int] = []

    def division(number: int) -> SubgraphSet:
        asked.append(number)
        return random_subgraphs(2)

    for epochs in (2, 3):
        options = small_options(epochs=epochs, repartition_every=1)
        model = small_model(random_subgraphs(2), options)
        Trainer(model, division, NUM_RELATIONS, options, 0, folder=tmp_path).run()
    assert asked == [0, 1, 2]


def test_subgraphs_without_seeds_are_passed_over_but_not_all_of_them() -> None:
    subgraphs = random_subgraphs(2)
    one = SubgraphSet(
        subgraphs.entities,
        subgraphs.entity_ptr,
        subgraphs.triples,
        subgraphs.triple_ptr,
        subgraphs.seeds[:12],
        np.array([0, 0, 12]),
    )
    trainer = small_trainer(one, small_options())
    before = trainer.model.entities.values.clone()
    trainer.run()
    moved = (trainer.model.entities.values != before).any(dim=1)
    assert moved.nonzero().flatten().tolist() == subgraphs.subgraph(1).entities.tolist()
    none = replace(one, seeds=np.empty((0, 2)), seed_ptr=np.zeros(3))
    with pytest.raises(InputError, match="no subgraph holds both ends of a seed pair"):
        small_trainer(none, small_options()).run()


def test_no_epochs_is_no_training() -> None:
    trainer = small_trainer(random_subgraphs(1), small_options(epochs=0))
    before = copies(trainer.model)
    assert trainer.run() == []
    assert are_equal(copies(trainer.model), before)


@pytest.fixture
def shortened_products() -> Iterator[None]:
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    yield
    torch.backends.cuda.matmul.fp32_precision = before


@pytest.mark.usefixtures("shortened_products")
@pytest.mark.parametrize(("precision", "expected"), [("tf32", "tf32"), ("float32", "ieee")])
def test_products_are_shortened_in_training_only(precision: str, expected: str) -> None:
    seen = set()
    subgraphs = random_subgraphs(1)

    def division(number: int) -> SubgraphSet:
        seen.add(torch.backends.cuda.matmul.fp32_precision)
        return subgraphs

    options = small_options(precision=precision)
    Trainer(small_model(subgraphs, options), division, NUM_RELATIONS, options, 0).run()
    assert seen == {expected}
    assert torch.backends.cuda.matmul.fp32_precision == "ieee"


def test_an_unknown_encoder_is_refused() -> None:
    with pytest.raises(InputError, match=r"no encoder is called 'none'[\s\S]*dual_amn, gcn"):
        small_model(random_subgraphs(1), small_options(encoder="none"))


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_the_learning_rate_falls_along_a_cosine_or_stays(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subgraphs, rates = random_subgraphs(2), []
    original = EmbeddingModel.step

    def watched(model: EmbeddingModel, ids: Tensor, rows: Tensor, learning_rate: float) -> None:
        rates.append(learning_rate)
        original(model, ids, rows, learning_rate)

    monkeypatch.setattr(EmbeddingModel, "step", watched)
    options = small_options(schedule=schedule, learning_rate=0.01)
    small_trainer(subgraphs, options).run()
    steps = len(rates) // options.epochs
    assert steps > 1
    falling = [0.01 * (1 + math.cos(math.pi * step / len(rates))) / 2 for step in range(len(rates))]
    assert rates == pytest.approx(falling if schedule == "cosine" else [0.01] * len(rates))
