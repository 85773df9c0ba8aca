"""Vectors without training: what linked entities have in common is drawn, and noise is added to either end."""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, EntityEmbeddings
from largegnn.datasets.generator import generate_pair
from largegnn.settings import WorldSettings

TINY = WorldSettings(
    source_entities=800,
    target_entities=750,
    links=500,
    source_relations=6,
    target_relations=5,
    source_triples=2_800,
    target_triples=2_500,
    community_size=30,
    train_share=0.2,
    valid_share=0.4,
)


def tiny_task(seed: int = 0) -> AlignmentTask:
    """800 and 750 entities, 500 links: 100 train, 200 valid, 200 test."""
    return generate_pair(TINY, seed).task


def noisy_vectors(task: AlignmentTask, noise: float, dim: int = 32, seed: int = 0) -> EntityEmbeddings:
    """Random vectors; both ends of a link have the same one, each with noise of this standard deviation."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(task.num_entities, dim))
    links = np.concatenate([task.train_links, task.valid_links, task.test_links])
    vectors[links[:, 1]] = vectors[links[:, 0]]
    vectors += noise * rng.normal(size=vectors.shape)
    return EntityEmbeddings(vectors.astype(np.float32), np.ones(task.num_entities, dtype=bool))
