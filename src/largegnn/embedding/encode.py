"""Compute the vector of every entity from the trained model or ensemble (step `integrate`).

In: the task, the trained model, the subgraphs, settings. Out: unit vectors of all entities in one space, and which
entities have one. The vectors of an ensemble are the vectors of its members side by side, scaled so that their cosine
is the mean of the members' cosines. `largegnn.embedding.integrate` does the encoding.
"""

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
_CHUNK_ROWS = 1 << 16  # rows scaled at a time


@dataclass(frozen=True)
class IntegrateOutcome:
    """How many entities have no vector, and how many numbers a vector has."""

    num_uncovered: int
    dim: int


@dataclass(frozen=True)
class IntegrateResult:
    """The vectors of all entities."""

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
    """Encode the whole graph, or average over the subgraphs; large results are mapped from a file in `work`."""
    from largegnn.embedding.integrate import new_vectors

    dim = ENCODERS[model.encoder](model.entity_rows.shape[1] // model.members).output_dim
    file = None if work is None else work / "vectors.npy"
    outputs = new_vectors(task.num_entities, model.members * dim, train.memory_bytes, file)
    covered = np.ones(task.num_entities, dtype=bool)
    for index in range(model.members):
        member_outputs = outputs[:, index * dim : (index + 1) * dim]
        covered &= _encode(task, model.member(index), subgraphs, train, integrate, device, member_outputs)
        if model.members > 1:
            _scale_rows(member_outputs, model.members**-0.5)
    embeddings = EntityEmbeddings(outputs, covered)
    num_uncovered = int((~embeddings.covered).sum())
    if num_uncovered:
        _log.warning("integrate: %s entities are not covered", f"{num_uncovered:,}")
    return IntegrateResult(embeddings, IntegrateOutcome(num_uncovered, embeddings.vectors.shape[1]))


def _encode(
    task: AlignmentTask,
    model: TrainedModel,
    subgraphs: SubgraphSet,
    train: TrainSettings,
    integrate: IntegrateSettings,
    device: str,
    outputs: FloatArray,
) -> Mask:
    """Write the vectors of one member into `outputs` (n, D); returns which entities have a vector."""
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
    averaged = average_subgraphs(encoder, entity_rows, relation_rows, feed, by_neighbors=by_neighbors, outputs=outputs)
    return averaged.covered


def _scale_rows(rows: FloatArray, length: float) -> None:
    """Scale rows (n, d) to this length, in place; rows of zeros stay zero."""
    for start in range(0, len(rows), _CHUNK_ROWS):
        chunk = rows[start : start + _CHUNK_ROWS]
        lengths = np.linalg.norm(chunk, axis=1, keepdims=True)
        chunk *= np.float32(length) / np.where(lengths > 0, lengths, np.float32(1))
