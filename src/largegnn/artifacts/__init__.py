"""Every value that crosses a stage boundary: frozen dataclasses of numpy arrays, checked on creation.

One id space for entities: 0 .. num_source_entities - 1 are the source's, the target's follow. Relations are numbered
the same way and never shared. Arrays are handed out read-only, so that no stage can change what another one made.
"""

from __future__ import annotations

from largegnn.artifacts.arrays import IntArray
from largegnn.artifacts.division import MergedGraph, Partition, PartitionQuality, Subgraph, SubgraphSet
from largegnn.artifacts.embedding import EntityEmbeddings, TrainedModel
from largegnn.artifacts.matching import REASONS, Alignment, Neighbors
from largegnn.artifacts.pairs import are_among, pair_keys
from largegnn.artifacts.task import AlignmentTask, SeedsFrom, StringTable, TaskNames

__all__ = [
    "REASONS",
    "Alignment",
    "AlignmentTask",
    "EntityEmbeddings",
    "IntArray",
    "MergedGraph",
    "Neighbors",
    "Partition",
    "PartitionQuality",
    "SeedsFrom",
    "StringTable",
    "Subgraph",
    "SubgraphSet",
    "TaskNames",
    "TrainedModel",
    "are_among",
    "pair_keys",
]
