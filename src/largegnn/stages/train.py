"""The stage `train`: one encoder is trained over the subgraphs.

It hands the settings to the trainer as plain values, gives it divisions and valid links to validate by, and turns what
it made into an artifact.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import AlignmentTask, EpochRecord, SubgraphSet, TrainedModel
from largegnn.artifacts.history import ClusterUse
from largegnn.machine.devices import choose_device
from largegnn.machine.worker_pool import worker_pool
from largegnn.planning.repartitioning import epochs_between_divisions
from largegnn.settings import IntegrateSettings, ProtocolSettings, TrainSettings

if TYPE_CHECKING:
    from largegnn.cluster.visits import RayVisits
    from largegnn.embedding.model import EmbeddingModel
    from largegnn.embedding.options import TrainOptions

__all__ = ["TrainOutcome", "Trained", "train"]

Divisions = Callable[[int], SubgraphSet]


@dataclass(frozen=True)
class TrainOutcome:
    """What every epoch was like, and what was taken of a cluster, where there was one."""

    history: tuple[EpochRecord, ...]
    cluster: ClusterUse | None = None


@dataclass(frozen=True)
class Trained:
    """The parameters of the best epoch by the valid links, or of the last where there are none."""

    model: TrainedModel
    outcome: TrainOutcome


def train(
    task: AlignmentTask,
    subgraphs: SubgraphSet,
    divisions: Divisions,
    protocol: ProtocolSettings,
    train: TrainSettings,
    integrate: IntegrateSettings,
    seed: int,
    device: str,
    work: Path | None = None,
    start: TrainedModel | None = None,
) -> Trained:
    """Train over the divisions given, from parameters drawn at random or from those of `start`.

    The valid links are validated by the whole graph, or by the mean over `subgraphs`, as `integrate` says. With a
    folder `work`, checkpoints go there and an interrupted training resumes.
    """
    # Imported here: PyTorch takes seconds, and the stages before this one do without it.
    from largegnn.embedding.checkpoint import CheckpointFolder
    from largegnn.embedding.model import EmbeddingModel
    from largegnn.embedding.options import TrainOptions
    from largegnn.embedding.trainer import Trainer

    chosen = choose_device(device)
    num_seeds = len(task.seeds(protocol.seeds_from))
    every = epochs_between_divisions(train, len(task.triples), num_seeds, chosen.type != "cpu")
    options = TrainOptions(**train.model_dump() | {"repartition_every": every})
    tables = None if work is None else work / "tables"
    model = EmbeddingModel(task.num_entities, task.num_relations, options, chosen, seed, tables)
    if start is not None:
        _begin_with(model, start)
    valid_links = task.held_out(protocol.seeds_from)
    validated_by = None if integrate.method == "full" else subgraphs
    with _visit_workers(options, task.num_relations) as workers:
        trainer = Trainer(
            model,
            divisions,
            task.num_relations,
            options,
            seed,
            checkpoints=None if work is None else CheckpointFolder(work / "checkpoints"),
            best=None if work is None or not len(valid_links) else CheckpointFolder(work / "best", keep=1),
            validate=_validator(task, validated_by, options) if len(valid_links) else None,
            workers=workers,
        )
        history = trainer.run()
    use = None if workers is None else workers.tally.use()
    return Trained(_to_artifact(model, options), TrainOutcome(tuple(history), use))


@contextlib.contextmanager
def _visit_workers(options: TrainOptions, num_relations: int) -> Iterator[RayVisits | None]:
    """The workers of the cluster, where the run has one."""
    pool = worker_pool()
    if pool is None:
        yield None
        return
    from largegnn.cluster.pool import RayPool
    from largegnn.cluster.visits import RayVisits

    assert isinstance(pool, RayPool)
    with RayVisits(pool, options, num_relations) as workers:
        yield workers


def _validator(
    task: AlignmentTask, subgraphs: SubgraphSet | None, options: TrainOptions
) -> Callable[[EmbeddingModel], float]:
    """H@1 of the valid links (evenly chosen ones of very many) among themselves, by cosine, mean of both directions."""
    from largegnn.embedding.validation import valid_vectors
    from largegnn.evaluation.metrics import rank_links

    step = -(-len(task.valid_links) // _MOST_VALIDATED)
    room, memory = options.cache_bytes, options.memory_bytes
    vectors = valid_vectors(task, task.valid_links[::step], subgraphs, cache_bytes=room, memory_bytes=memory)

    def validate(model: EmbeddingModel) -> float:
        return rank_links(*vectors(model), "cosine", device=str(model.device)).both_ways_hits()

    return validate


_MOST_VALIDATED = 20_000  # valid links ranked: more tell epochs apart no better, and cost their square


def _to_artifact(model: EmbeddingModel, options: TrainOptions) -> TrainedModel:
    import torch

    weights = [parameter.detach().cpu().flatten() for parameter in model.encoder.parameters()]
    return TrainedModel(
        encoder=options.encoder,
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
