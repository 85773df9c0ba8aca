"""Give each entity one vector, all in one space (step `integrate`)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, FloatArray, SubgraphSet, TrainedModel
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
    encoder = ENCODERS[model.encoder](model.entity_rows.shape[1] // model.members)
    each, memory_bytes = encoder.output_dim, int(train.max_memory_gb * 2**30)
    outputs = _outputs(task.num_entities, model.members * each, memory_bytes, work)
    if model.members == 1:
        found = _encode(task, model, subgraphs, train, integrate, device, outputs)
    else:
        outputs = np.empty((task.num_entities, model.members * each), dtype=np.float32) if outputs is None else outputs
        covered = np.ones(task.num_entities, dtype=bool)
        for index in range(model.members):
            own = outputs[:, index * each : (index + 1) * each]
            member = model.member(index)
            covered &= _encode(task, member, subgraphs, train, integrate, device, own).covered
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
    outputs: FloatArray | None,
) -> EntityEmbeddings:
    """The vectors of one model, in `outputs` (n, D) if given."""
    import torch

    from largegnn.embedding.feeding import SubgraphFeed
    from largegnn.embedding.integrate import average_subgraphs, encode_graph
    from largegnn.embedding.model import load_weights
    from largegnn.machine.read_only import read_only_tensor

    encoder = ENCODERS[model.encoder](model.entity_rows.shape[1])
    load_weights(encoder, model.encoder_weights)
    chosen = choose_device(device)
    encoder = encoder.to(chosen).eval()
    relation_rows = torch.from_numpy(np.asarray(model.relation_rows).copy()).to(chosen)
    if integrate.method == "full":
        memory_bytes = int(train.max_memory_gb * 2**30)
        return encode_graph(
            encoder,
            model.entity_rows,
            relation_rows,
            task.triples,
            memory_bytes=memory_bytes,
            outputs=outputs,
        )
    feed = SubgraphFeed(subgraphs, task.num_relations, chosen, cache_bytes=0)
    by_neighbors = integrate.method == "average"
    entity_rows = read_only_tensor(model.entity_rows)
    return average_subgraphs(encoder, entity_rows, relation_rows, feed, by_neighbors=by_neighbors, outputs=outputs)


def _scale_rows(rows: FloatArray, length: float) -> None:
    """Bring rows (n, d) to this length, where they are; rows of zeros stay."""
    for start in range(0, len(rows), _PIECE):
        piece = rows[start : start + _PIECE]
        lengths = np.linalg.norm(piece, axis=1, keepdims=True)
        piece *= np.float32(length) / np.where(lengths > 0, lengths, np.float32(1))


def _outputs(num_entities: int, dim: int, memory_bytes: int, folder: Path | None) -> FloatArray | None:
    """A mapped file for vectors that would take more than half of the memory allowed; None leaves it to memory."""
    if folder is None or 4 * num_entities * dim <= memory_bytes // 2:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return cast(FloatArray, np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float32, (num_entities, dim)))
