"""Every value that crosses a stage boundary: frozen dataclasses of numpy arrays, checked on creation.

One id space for entities: 0 .. num_source_entities - 1 are the source's, the target's follow. Relations are numbered
the same way and never shared. Arrays are handed out read-only, so that no stage can change what another one made.
"""

from __future__ import annotations

from largegnn.artifacts.alignment import REASONS, Alignment
from largegnn.artifacts.arrays import FloatArray, IntArray, Mask
from largegnn.artifacts.candidates import CandidateGraph, EdgeRanks
from largegnn.artifacts.division import DivisionPlan, MergedGraph, Partition, PartitionQuality, Subgraph, SubgraphSet
from largegnn.artifacts.embedding import EntityEmbeddings, TrainedModel
from largegnn.artifacts.history import EpochRecord, RoundRecord
from largegnn.artifacts.neighbors import Neighbors, SearchRecord
from largegnn.artifacts.pairs import are_among, pair_keys
from largegnn.artifacts.plain import from_plain, to_plain
from largegnn.artifacts.relations import RelationAlignment
from largegnn.artifacts.report import Cost, Evaluation, PairFigures, Protocol, RankFigures, ReliabilityRow
from largegnn.artifacts.task import AlignmentTask, SeedsFrom, StringTable, TaskNames

__all__ = [
    "REASONS",
    "Alignment",
    "AlignmentTask",
    "CandidateGraph",
    "Cost",
    "DivisionPlan",
    "EdgeRanks",
    "EntityEmbeddings",
    "EpochRecord",
    "Evaluation",
    "FloatArray",
    "IntArray",
    "Mask",
    "MergedGraph",
    "Neighbors",
    "PairFigures",
    "Partition",
    "PartitionQuality",
    "Protocol",
    "RankFigures",
    "RelationAlignment",
    "ReliabilityRow",
    "RoundRecord",
    "SearchRecord",
    "SeedsFrom",
    "StringTable",
    "Subgraph",
    "SubgraphSet",
    "TaskNames",
    "TrainedModel",
    "are_among",
    "from_plain",
    "pair_keys",
    "to_plain",
]
