"""Train one encoder over the subgraphs, or several as an ensemble, one after the other (step `train`).

In: subgraphs, the division of any number, settings. Out: the parameters of the best epoch by the valid links. Members
of an ensemble differ in their random seeds and in their divisions. One is in memory at a time; one that is finished is
kept as a checkpoint until all are. PyTorch is imported inside: the steps before this one do without it.
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
# Seconds of a training step and of dividing one triple, and seconds always allowed for divisions in all.
_STEP_SECONDS, _DIVIDE_PER_TRIPLE, _ALWAYS_ALLOWED = 0.005, 8e-6, 30.0
Divisions = Callable[[int], SubgraphSet]


@dataclass(frozen=True)
class TrainOutcome:
    """What every epoch was like, member after member, and what was taken of a cluster, where there was one."""

    history: tuple[EpochRecord, ...]
    cluster: ClusterUse | None = None


@dataclass(frozen=True)
class TrainResult:
    """The parameters of the best epoch by the valid links, or of the last where there are none or too few."""

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
    """Train over the divisions given, from parameters drawn at random or from those of `start`.

    The valid links are validated by the whole graph, or by the mean over `subgraphs`, as `integrate` says. With a
    folder `work`, checkpoints go there and an interrupted training resumes.
    """
    on_gpu = choose_device(device).type != "cpu"
    every = epochs_between_divisions(train, len(task.triples), len(task.seeds(protocol.seeds_from)), on_gpu)
    each = divisions_of_training(train, every)
    history: list[EpochRecord] = []
    uses: list[ClusterUse] = []

    def members() -> Iterator[TrainedModel]:
        for member in range(train.members):
            if train.members > 1:
                _log.info("train: member %d of %d", member + 1, train.members)
            made = _train_member(
                task,
                subgraphs,
                _later(divisions, member * each),
                protocol,
                train.model_copy(update={"repartition_every": every}),
                integrate,
                member_seed(seed, member),
                device,
                work if work is None or train.members == 1 else work / f"member-{member:02d}",
                None if start is None else start.member(member),
            )
            history.extend(replace(epoch, member=member) for epoch in made.outcome.history)
            uses.extend([] if made.outcome.cluster is None else [made.outcome.cluster])
            yield made.model

    model = TrainedModel.joined(members(), train.members)
    return TrainResult(model, TrainOutcome(tuple(history), ClusterUse.joined(uses) if uses else None))


def epochs_between_divisions(train: TrainSettings, num_triples: int, num_seeds: int, on_gpu: bool) -> int:
    """Epochs that one division serves; 0: all of them.

    Divisions are made in the background and must not take longer than the training they serve. On a processor they
    never do. On a GPU an epoch of a million entities takes seconds and a division a minute: there are fewer then.
    """
    every = train.repartition_every
    if not every or not on_gpu:
        return every
    training = train.epochs * _STEP_SECONDS * num_seeds / train.batch_size
    fresh = int(max(training, _ALWAYS_ALLOWED) / (_DIVIDE_PER_TRIPLE * max(num_triples, 1)))
    return max(every, -(-train.epochs // (fresh + 1))) if fresh else 0


def divisions_of_training(train: TrainSettings, every: int) -> int:
    """Divisions that one training takes, if each serves `every` epochs."""
    return -(-train.epochs // every) if every else 1


def member_seed(seed: int, member: int) -> int:
    """The random seed of a member: the first one has that of a training without an ensemble."""
    return seed if not member else int(np.random.SeedSequence([seed, member]).generate_state(1)[0])


def _later(divisions: Divisions, first: int) -> Divisions:
    """The same divisions, counted from number `first` on."""
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
    """Train one model to its end; one that was finished before is taken from its folder."""
    # Imported here: PyTorch takes seconds, and the stages before this one do without it.
    from largegnn.embedding.model import EmbeddingModel
    from largegnn.embedding.trainer import Trainer
    from largegnn.embedding.visits import ClusterVisits

    chosen = choose_device(device)
    tables = None if work is None else work / "tables"
    model = EmbeddingModel(task.num_entities, task.num_relations, train, chosen, seed, tables)
    if start is not None:
        _begin_with(model, start)
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
        choose=len(valid_links) >= _ENOUGH_TO_CHOOSE,
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
    """H@1 of the valid links (evenly chosen ones of very many) among themselves, by cosine, mean of both directions."""
    from largegnn.embedding.integrate import valid_vectors
    from largegnn.evaluation.metrics import rank_links

    vectors = valid_vectors(
        task,
        task.valid_links[:: -(-len(task.valid_links) // _MOST_VALIDATED)],
        None if integrate.method == "full" else subgraphs,
        device,
        by_neighbors=integrate.method == "average",
        memory_bytes=train.memory_bytes,
    )
    return lambda model: rank_links(*vectors(model), "cosine", device=str(device)).hits_at_1()


_ENOUGH_TO_CHOOSE = 250  # valid links: by fewer, epochs differ by chance, and the last has learnt most
_MOST_VALIDATED = 20_000  # valid links ranked: more tell epochs apart no better, and cost their square


def _to_artifact(model: EmbeddingModel, encoder: str) -> TrainedModel:
    import torch

    weights = [parameter.detach().cpu().flatten() for parameter in model.encoder.parameters()]
    return TrainedModel(
        encoder=encoder,
        entity_rows=model.entities.values.cpu().numpy(),
        relation_rows=model.relations.detach().cpu().numpy(),
        encoder_weights=torch.cat(weights).numpy() if weights else np.empty(0, dtype=np.float32),
    )


def _begin_with(model: EmbeddingModel, start: TrainedModel) -> None:
    """Begin with trained parameters; the optimiser's state begins anew."""
    import torch

    from largegnn.embedding.model import load_weights

    with torch.no_grad():
        model.entities.values.copy_(torch.from_numpy(np.asarray(start.entity_rows).copy()))
        model.relations.copy_(torch.from_numpy(np.asarray(start.relation_rows).copy()))
    load_weights(model.encoder, start.encoder_weights)
