"""A pair small enough to train on in seconds, for tests of whole runs."""

from __future__ import annotations

from largegnn.settings import WorldSettings

__all__ = ["WORLD"]

WORLD = WorldSettings(
    source_entities=300,
    target_entities=280,
    links=250,
    source_relations=6,
    target_relations=5,
    source_triples=1_200,
    target_triples=1_000,
    community_size=30,
    train_share=0.3,
    valid_share=0.3,
)
