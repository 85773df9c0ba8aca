"""Train one encoder over the subgraphs, or several as an ensemble, one after the other (step `train`).

In: subgraphs, a function that makes further divisions, settings. Out: the parameters of the epoch that was best on the
valid links. The members of an ensemble differ in their random seeds and in their divisions. They are trained one at a
time, and only one is in memory; a finished member is kept as a checkpoint until all are finished.
PyTorch is imported inside functions, because the steps before this one do not need it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import AlignmentTask, ClusterUse, EpochRecord, SubgraphSet, TrainedModel
from largegnn.machine.devices import choose_device
from largegnn.machine.pieces import current_workers

if TYPE_CHECKING:
    import torch

    from largegnn.embedding.model import EmbeddingModel
    from largegnn.settings import IntegrateSettings, ProtocolSettings, TrainSettings

__all__ = ["TrainOutcome", "TrainResult", "divisions_of_training", "epochs_between_divisions", "member_seed", "train"]

_log = logging.getLogger(__name__)
_STEP_SECONDS = 0.005  # estimated, of one training step on a GPU
_DIVISION_SECONDS_PER_TRIPLE = 8e-6  # estimated
_MIN_DIVISION_SECONDS = 30.0  # that divisions may take in total, however short the training
_MIN_LINKS_TO_CHOOSE = 250  # valid links: with fewer, epochs differ by chance, and the last epoch has learnt most
_MAX_VALIDATED = 20_000  # valid links ranked: more do not distinguish epochs better, and the cost is quadratic
Divisions = Callable[[int], SubgraphSet]  # from the number of a division to its subgraphs


@dataclass(frozen=True)
class TrainOutcome:
    """The records of all epochs, member after member, and the use of a cluster, if there was one."""

    history: tuple[EpochRecord, ...]
    cluster: ClusterUse | None = None


@dataclass(frozen=True)
class TrainResult:
    """The parameters of the epoch that was best on the valid links; of the last epoch if there are too few links."""

    model: TrainedModel
    outcome: TrainOutcome


def train(
    task: AlignmentTask,
    subgraphs: SubgraphSet,
    protocol: ProtocolSettings,
    train: TrainSettings,
    integrate: IntegrateSettings,
    seed: int,
    *,
    divisions: Divisions,
    device: str,
    work: Path | None = None,
    start: TrainedModel | None = None,
) -> TrainResult:
    """Train an ensemble over `divisions`, from random parameters or from the parameters of `start`.

    An epoch is validated on the valid links, with vectors of the whole graph or means over `subgraphs`, as `integrate`
    says. With a folder `work`, checkpoints are written into it and an interrupted training resumes from them.
    """
    on_gpu = choose_device(device).type != "cpu"
    every = epochs_between_divisions(train, len(task.triples), len(task.seeds(protocol.seeds_from)), on_gpu)
    per_member = divisions_of_training(train, every)
    history: list[EpochRecord] = []
    uses: list[ClusterUse] = []

    def members() -> Iterator[TrainedModel]:
        for member in range(train.members):
            if train.members > 1:
                _log.info("train: member %d of %d", member + 1, train.members)
            trained = _train_member(
                task,
                subgraphs,
                _from_number(divisions, member * per_member),
                protocol,
                train.model_copy(update={"repartition_every": every}),
                integrate,
                member_seed(seed, member),
                device,
                work if work is None or train.members == 1 else work / f"member-{member:02d}",
                None if start is None else start.member(member),
            )
            history.extend(replace(epoch, member=member) for epoch in trained.outcome.history)
            if trained.outcome.cluster is not None:
                uses.append(trained.outcome.cluster)
            yield trained.model

    model = TrainedModel.joined(members(), train.members)
    return TrainResult(model, TrainOutcome(tuple(history), ClusterUse.joined(uses) if uses else None))


def epochs_between_divisions(train: TrainSettings, num_triples: int, num_seeds: int, on_gpu: bool) -> int:
    """How many epochs train on one division; 0 means all epochs.

    Divisions are computed in the background and should not take longer than the training itself. Without a GPU they
    never do. On a GPU an epoch of a million entities takes seconds but a division a minute, so fewer divisions are made
    than `repartition_every` asks for.
    """
    every = train.repartition_every
    if not every or not on_gpu:
        return every
    training_seconds = train.epochs * _STEP_SECONDS * num_seeds / train.batch_size
    division_seconds = _DIVISION_SECONDS_PER_TRIPLE * max(num_triples, 1)
    max_new_divisions = int(max(training_seconds, _MIN_DIVISION_SECONDS) / division_seconds)
    return max(every, -(-train.epochs // (max_new_divisions + 1))) if max_new_divisions else 0


def divisions_of_training(train: TrainSettings, every: int) -> int:
    """How many divisions a training of one member needs, if every division is used for `every` epochs."""
    return -(-train.epochs // every) if every else 1


def member_seed(seed: int, member: int) -> int:
    """The random seed of a member; the first member has the seed of a training without an ensemble."""
    return seed if not member else int(np.random.SeedSequence([seed, member]).generate_state(1)[0])


def _from_number(divisions: Divisions, first: int) -> Divisions:
    """The divisions from number `first` on, renumbered from 0."""
    return lambda number: divisions(first + number)


def _train_member(
    task: AlignmentTask,
    subgraphs: SubgraphSet,
    divisions: Divisions,
    protocol: ProtocolSettings,
    train: TrainSettings,
    integrate: IntegrateSettings,
    seed: int,
    device: str,
    work: Path | None,
    start: TrainedModel | None,
) -> TrainResult:
    """Train one model to its last epoch; a model that was finished before is loaded from its folder."""
    # Imported here: PyTorch takes seconds, and the stages before this one do without it.
    from largegnn.embedding.model import EmbeddingModel
    from largegnn.embedding.trainer import Trainer
    from largegnn.embedding.visits import ClusterVisits

    chosen = choose_device(device)
    tables = None if work is None else work / "tables"
    model = EmbeddingModel(task.num_entities, task.num_relations, train, chosen, seed, tables)
    if start is not None:
        _load_start(model, start)
    valid_links = task.held_out(protocol.seeds_from)
    workers = current_workers()
    visits = None if workers is None else ClusterVisits(workers, train, task.num_relations)
    trainer = Trainer(
        model,
        divisions,
        task.num_relations,
        train,
        seed,
        folder=None if work is None else work / "checkpoints",
        validate=_validator(task, subgraphs, train, integrate, chosen) if len(valid_links) else None,
        cluster=visits,
        choose=len(valid_links) >= _MIN_LINKS_TO_CHOOSE,
        keep_last=train.members > 1,
    )
    history = trainer.run()
    return TrainResult(
        _to_artifact(model, train.encoder), TrainOutcome(tuple(history), None if visits is None else visits.use())
    )


def _validator(
    task: AlignmentTask,
    subgraphs: SubgraphSet,
    train: TrainSettings,
    integrate: IntegrateSettings,
    device: torch.device,
) -> Callable[[EmbeddingModel], float]:
    """Make the function that validates a model: H@1 of the valid links, by cosine, mean of both directions.

    The candidates are the valid links' own entities. Of very many links, an evenly spaced sample is ranked.
    """
    from largegnn.embedding.integrate import valid_vectors
    from largegnn.evaluation.metrics import rank_links

    vectors = valid_vectors(
        task,
        task.valid_links[:: -(-len(task.valid_links) // _MAX_VALIDATED)],
        None if integrate.method == "full" else subgraphs,
        device,
        by_neighbors=integrate.method == "average",
        memory_bytes=train.memory_bytes,
    )
    return lambda model: rank_links(*vectors(model), "cosine", device=str(device)).hits_at_1()


def _to_artifact(model: EmbeddingModel, encoder: str) -> TrainedModel:
    """The parameters of a model as arrays in main memory; `encoder` is its name in the settings."""
    import torch

    weights = [parameter.detach().cpu().flatten() for parameter in model.encoder.parameters()]
    return TrainedModel(
        encoder=encoder,
        entity_rows=model.entities.values.cpu().numpy(),
        relation_rows=model.relations.detach().cpu().numpy(),
        encoder_weights=torch.cat(weights).numpy() if weights else np.empty(0, dtype=np.float32),
    )


def _load_start(model: EmbeddingModel, start: TrainedModel) -> None:
    """Copy trained parameters into a new model; its optimiser state stays zero."""
    import torch

    from largegnn.embedding.model import load_weights

    with torch.no_grad():
        model.entities.values.copy_(torch.from_numpy(np.asarray(start.entity_rows).copy()))
        model.relations.copy_(torch.from_numpy(np.asarray(start.relation_rows).copy()))
    load_weights(model.encoder, start.encoder_weights)
