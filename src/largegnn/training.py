"""The stages `train` and `integrate`: from subgraphs in a run folder to one vector for each entity.

They hand the settings of a run to the trainer as plain values, give it fresh divisions and valid links to look at, and
turn what it made into artifacts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, IntArray, SubgraphSet, TrainedModel
from largegnn.embedding import ENCODERS, average_subgraphs, build_structure, encode_full
from largegnn.embedding.checkpoint import CheckpointFolder
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.options import TrainOptions
from largegnn.embedding.structure import GraphStructure
from largegnn.embedding.trainer import EpochRecord, Trainer
from largegnn.errors import InputError
from largegnn.evaluation.metrics import rank_links
from largegnn.settings import Settings

__all__ = ["choose_device", "history_facts", "integrate", "train"]

_MOST_VALIDATED = 20_000  # valid links looked at: more tell epochs apart no better, and cost their square


def choose_device(name: str) -> torch.device:
    """The device a setting names; auto is a GPU if there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no GPU that can be used", fix="leave --device out, or name cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def train(
    task: AlignmentTask,
    settings: Settings,
    subgraphs_of_round: Callable[[int], SubgraphSet],
    seed: int,
    folder: Path | None = None,
    start: TrainedModel | None = None,
) -> tuple[TrainedModel, list[EpochRecord]]:
    """Train over the divisions given, from parameters drawn at random or from those of `start`.

    With a `folder`, checkpoints go there and an interrupted run goes on.
    """
    device = choose_device(settings.device)
    options = TrainOptions(**settings.train.model_dump())
    model = EmbeddingModel(task.num_entities, task.num_relations, options, device, seed)
    if start is not None:
        _take_over(model, start)
    validates = settings.protocol.seeds_from == "train" and len(task.valid_links) > 0
    trainer = Trainer(
        model,
        subgraphs_of_round,
        task.num_relations,
        options,
        seed,
        checkpoints=None if folder is None else CheckpointFolder(folder / "checkpoints"),
        best=None if folder is None or not validates else CheckpointFolder(folder / "best", keep=1),
        validate=_validator(task) if validates else None,
    )
    history = trainer.run()
    return _to_artifact(model, options), history


def integrate(
    task: AlignmentTask, model: TrainedModel, subgraphs: SubgraphSet, settings: Settings, folder: Path | None = None
) -> EntityEmbeddings:
    """One vector for each entity, by the method of the settings; large results are mapped from a file in `folder`."""
    device = choose_device(settings.device)
    encoder = ENCODERS[model.encoder](model.entity_rows.shape[1])
    _load_weights(encoder, model.encoder_weights)
    encoder = encoder.to(device).eval()
    # The rows may be mapped from a file; a tensor over them reads only what is asked for.
    entity_rows = torch.from_numpy(np.asarray(model.entity_rows).copy())
    relation_rows = torch.from_numpy(np.asarray(model.relation_rows).copy()).to(device)
    memory_bytes = int(settings.train.max_memory_gb * 2**30)
    outputs = _outputs(task.num_entities, encoder.output_dim, memory_bytes, folder)
    if settings.integrate.method == "full":
        structure = build_structure(task.num_entities, task.triples, task.num_relations)
        options = {"chunk_bytes": memory_bytes // 16}
        return encode_full(encoder, entity_rows, relation_rows, structure, outputs=outputs, **options)
    parts = _parts(subgraphs, task.num_relations)
    return average_subgraphs(encoder, entity_rows, relation_rows, parts, outputs=outputs)


def _outputs(num_entities: int, dim: int, memory_bytes: int, folder: Path | None) -> npt.NDArray[np.float32] | None:
    """A mapped file for vectors that would take more than half of the memory allowed; None leaves it to memory."""
    if folder is None or 4 * num_entities * dim <= memory_bytes // 2:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    vectors = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (num_entities, dim))
    return cast(npt.NDArray[np.float32], vectors)


def _parts(subgraphs: SubgraphSet, num_relations: int) -> Iterator[tuple[IntArray, GraphStructure]]:
    for index in range(len(subgraphs)):
        subgraph = subgraphs.subgraph(index)
        yield subgraph.entities, build_structure(len(subgraph.entities), subgraph.triples, num_relations)


def _validator(task: AlignmentTask) -> Callable[[EmbeddingModel], float]:
    """H@1 of the valid links (evenly chosen ones of very many) among themselves, cosine, the whole graph encoded."""
    structure = build_structure(task.num_entities, task.triples, task.num_relations)
    step = -(-len(task.valid_links) // _MOST_VALIDATED)
    sources, targets = task.valid_links[::step].T

    def validate(model: EmbeddingModel) -> float:
        relations = model.relations.detach()
        vectors = encode_full(model.encoder, model.entities.values, relations, structure).vectors
        ranks = rank_links(vectors[sources], vectors[targets], "cosine", device=str(model.device))
        return float(np.mean([(ranks.source_to_target == 1).mean(), (ranks.target_to_source == 1).mean()]))

    return validate


def _to_artifact(model: EmbeddingModel, options: TrainOptions) -> TrainedModel:
    weights = [parameter.detach().cpu().flatten() for parameter in model.encoder.parameters()]
    return TrainedModel(
        encoder=options.encoder,
        entity_rows=model.entities.values.cpu().numpy(),
        relation_rows=model.relations.detach().cpu().numpy(),
        encoder_weights=torch.cat(weights).numpy(),
    )


@torch.no_grad()
def _take_over(model: EmbeddingModel, start: TrainedModel) -> None:
    """Begin with trained parameters; the optimiser's state begins anew."""
    model.entities.values.copy_(torch.from_numpy(np.asarray(start.entity_rows).copy()))
    model.relations.copy_(torch.from_numpy(np.asarray(start.relation_rows).copy()))
    _load_weights(model.encoder, start.encoder_weights)


@torch.no_grad()
def _load_weights(encoder: torch.nn.Module, weights: Any) -> None:
    rest = torch.from_numpy(np.asarray(weights).copy())
    for parameter in encoder.parameters():
        parameter.copy_(rest[: parameter.numel()].view_as(parameter))
        rest = rest[parameter.numel() :]


def history_facts(history: list[EpochRecord]) -> dict[str, Any]:
    """A training run for the manifest: every epoch as plain values."""
    return {"history": [dataclasses.asdict(record) for record in history]}
