"""Give each entity one vector, all in one space (step `integrate`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, FloatArray, Mask, SubgraphSet, TrainedModel
from largegnn.machine.devices import choose_device
from largegnn.parts import ENCODERS

if TYPE_CHECKING:
    from largegnn.settings import IntegrateSettings, TrainSettings

__all__ = ["IntegrateOutcome", "IntegrateResult", "integrate"]

_log = logging.getLogger(__name__)
_PIECE = 1 << 16  # rows scaled at once


@dataclass(frozen=True)
class IntegrateOutcome:
    """How many entities have no vector, and how many numbers a vector has."""

    num_uncovered: int
    dim: int


@dataclass(frozen=True)
class IntegrateResult:
    """The vectors."""

    embeddings: EntityEmbeddings
    outcome: IntegrateOutcome


def integrate(
    task: AlignmentTask,
    model: TrainedModel,
    subgraphs: SubgraphSet,
    train: TrainSettings,
    integrate: IntegrateSettings,
    *,
    device: str,
    work: Path | None = None,
) -> IntegrateResult:
    """Encode the whole graph, or take the mean over the subgraphs; large results are mapped from a file in `work`.

    The vectors of an ensemble are those of its members side by side, so that the cosine of two is the mean of theirs.
    """
    from largegnn.embedding.integrate import new_vectors

    each = ENCODERS[model.encoder](model.entity_rows.shape[1] // model.members).output_dim
    file = None if work is None else work / "vectors.npy"
    outputs = new_vectors(task.num_entities, model.members * each, train.memory_bytes, file)
    covered = np.ones(task.num_entities, dtype=bool)
    for index in range(model.members):
        own = outputs[:, index * each : (index + 1) * each]
        covered &= _encode(task, model.member(index), subgraphs, train, integrate, device, own)
        if model.members > 1:
            _scale_rows(own, model.members**-0.5)
    found = EntityEmbeddings(outputs, covered)
    num_uncovered = int((~found.covered).sum())
    if num_uncovered:
        _log.warning("integrate: %s entities are not covered", f"{num_uncovered:,}")
    return IntegrateResult(found, IntegrateOutcome(num_uncovered, found.vectors.shape[1]))


def _encode(
    task: AlignmentTask,
    model: TrainedModel,
    subgraphs: SubgraphSet,
    train: TrainSettings,
    integrate: IntegrateSettings,
    device: str,
    outputs: FloatArray,
) -> Mask:
    """Write the vectors of one model into `outputs` (n, D); which entities have one."""
    import torch

    from largegnn.embedding.feeding import Feed, prepare_subgraph
    from largegnn.embedding.integrate import WholeGraph, average_subgraphs
    from largegnn.embedding.model import load_weights
    from largegnn.machine.read_only import read_only_tensor

    encoder = ENCODERS[model.encoder](model.entity_rows.shape[1])
    load_weights(encoder, model.encoder_weights)
    chosen = choose_device(device)
    encoder = encoder.to(chosen).eval()
    relation_rows = torch.from_numpy(np.asarray(model.relation_rows).copy()).to(chosen)
    if integrate.method == "full":
        graph = WholeGraph(task.num_entities, task.triples, task.num_relations, train.memory_bytes)
        graph.encode(encoder, model.entity_rows, relation_rows, outputs=outputs)
        return np.ones(task.num_entities, dtype=bool)
    feed = Feed(subgraphs, prepare_subgraph, task.num_relations, chosen, cache_bytes=0)
    by_neighbors = integrate.method == "average"
    entity_rows = read_only_tensor(model.entity_rows)
    found = average_subgraphs(encoder, entity_rows, relation_rows, feed, by_neighbors=by_neighbors, outputs=outputs)
    return found.covered


def _scale_rows(rows: FloatArray, length: float) -> None:
    """Bring rows (n, d) to this length, where they are; rows of zeros stay."""
    for start in range(0, len(rows), _PIECE):
        piece = rows[start : start + _PIECE]
        lengths = np.linalg.norm(piece, axis=1, keepdims=True)
        piece *= np.float32(length) / np.where(lengths > 0, lengths, np.float32(1))
