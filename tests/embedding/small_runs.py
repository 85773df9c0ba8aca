"""Small training runs for the tests of this folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from largegnn.artifacts import IntArray, SubgraphSet
from largegnn.embedding.integrate import encode_full
from largegnn.embedding.losses import LOSSES, Loss
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.structure import build_structure
from largegnn.embedding.trainer import Trainer
from largegnn.evaluation.metrics import rank_links
from largegnn.settings import TrainSettings

CPU = torch.device("cpu")
NUM_RELATIONS = 4
WEIGHTS = {"alignment": 1.0, "reconstruction": 20.0, "cross_subgraph": 0.6}


def random_subgraphs(num_parts: int, part_size: int = 40, num_seeds: int = 12, step: int = 25) -> SubgraphSet:
    """Overlapping windows of a random graph: part p holds entities p * step and the `part_size` - 1 after it."""
    rng = np.random.default_rng(5)
    starts = step * np.arange(num_parts)
    entities = (starts[:, None] + np.arange(part_size)).ravel()
    heads = rng.integers(0, part_size, (num_parts * 4 * part_size))
    tails = (heads + rng.integers(1, 8, len(heads))) % part_size
    triples = np.stack([heads, rng.integers(0, NUM_RELATIONS, len(heads)), tails], axis=1)
    seeds = np.concatenate([rng.permutation(part_size)[: 2 * num_seeds].reshape(-1, 2) for _ in range(num_parts)])
    counts = np.arange(num_parts + 1)
    return SubgraphSet(entities, counts * part_size, triples, counts * 4 * part_size, seeds, counts * num_seeds)


def num_entities_of(subgraphs: SubgraphSet) -> int:
    """As many as it takes for the subgraphs, and a few outside them all."""
    return int(subgraphs.entities.max()) + 20


def small_model(subgraphs: SubgraphSet, options: TrainSettings, seed: int = 0) -> EmbeddingModel:
    return EmbeddingModel(num_entities_of(subgraphs), NUM_RELATIONS, options, CPU, seed)


def small_trainer(subgraphs: SubgraphSet, options: TrainSettings, seed: int = 0, **more: Any) -> Trainer:
    """A trainer on a new model."""
    return Trainer(small_model(subgraphs, options, seed), lambda _: subgraphs, NUM_RELATIONS, options, seed, **more)


def train_options(**changes: Any) -> TrainSettings:
    """All losses, all else as small tests need it; nothing is checked, as a test may add a loss or an encoder."""
    values: dict[str, Any] = {
        "dim": 32,
        "epochs": 12,
        "batch_size": 32,
        "negatives": 300,
        "losses": WEIGHTS,
        "repartition_every": 0,
    }
    return TrainSettings().model_copy(update=values | changes)


def small_options(**changes: Any) -> TrainSettings:
    """Two batches for each subgraph of `random_subgraphs`, checkpoints after every epoch."""
    few: dict[str, Any] = {"dim": 8, "epochs": 4, "batch_size": 6, "negatives": 20, "cross_negatives": 30}
    return train_options(**few | {"checkpoint_seconds": 0.0, "validate_every": 1} | changes)


@contextlib.contextmanager
def added_loss(name: str, loss: Loss) -> Iterator[None]:
    """`LOSSES` with one more."""
    LOSSES[name] = loss
    try:
        yield
    finally:
        del LOSSES[name]


def copies(model: EmbeddingModel) -> dict[str, torch.Tensor]:
    """The model's state as it is now."""
    return {name: tensor.clone() for name, tensor in model.tensors().items()}


def are_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    """Whether two states are the same to the last bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def hits_of(model: EmbeddingModel, num_relations: int, triples: IntArray, links: IntArray) -> float:
    """H@1 of links by cosine, from the whole graph encoded."""
    structure = build_structure(len(model.entities.values), triples, num_relations)
    vectors = encode_full(model.encoder, model.entities.values, model.relations, structure).vectors
    return rank_links(vectors[links[:, 0]], vectors[links[:, 1]], "cosine").hits_at_1()


def save_subgraphs(path: Path, subgraphs: SubgraphSet, **more: Any) -> None:
    """Write subgraphs, and other arrays, where another process reads them."""
    arrays: dict[str, Any] = {field.name: getattr(subgraphs, field.name) for field in fields(subgraphs)}
    np.savez(path, **arrays, **more)


def load_subgraphs(path: Path) -> tuple[SubgraphSet, dict[str, IntArray]]:
    """What `save_subgraphs` wrote."""
    arrays = dict(np.load(path))
    subgraphs = SubgraphSet(**{field.name: arrays.pop(field.name) for field in fields(SubgraphSet)})
    return subgraphs, arrays
