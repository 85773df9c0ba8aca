"""Define the values that steps pass to each other: frozen dataclasses of numpy arrays, checked on creation.

Entities of both graphs have ids in one range: 0 to num_source_entities - 1 are the source's, the target's follow.
Relations are numbered in the same way; the two graphs share no relation. Arrays are read-only, so that no step can
change the result of another step.
"""

from __future__ import annotations

from largegnn.artifacts.alignment import EXAMPLES, MAPPINGS, REASONS, Alignment, RelationAlignment
from largegnn.artifacts.arrays import FloatArray, IntArray, Mask, are_among, check_range, frozen, pair_keys
from largegnn.artifacts.candidates import CandidateGraph, EdgeRanks, Neighbors, SearchRecord
from largegnn.artifacts.division import DivisionPlan, MergedGraph, Partition, PartitionQuality, Subgraph, SubgraphSet
from largegnn.artifacts.embedding import ClusterUse, EntityEmbeddings, EpochRecord, RoundRecord, TrainedModel
from largegnn.artifacts.literals import LiteralEvidence, Literals
from largegnn.artifacts.plain import from_plain, to_plain
from largegnn.artifacts.report import (
    AddedEntityRecall,
    Cost,
    Evaluation,
    PairFigures,
    Protocol,
    RankFigures,
    ReliabilityRow,
    UpdatePairs,
    UpdateReport,
)
from largegnn.artifacts.task import AlignmentTask, SeedsFrom, StringTable, TaskNames

__all__ = [
    "EXAMPLES",
    "MAPPINGS",
    "REASONS",
    "AddedEntityRecall",
    "Alignment",
    "AlignmentTask",
    "CandidateGraph",
    "ClusterUse",
    "Cost",
    "DivisionPlan",
    "EdgeRanks",
    "EntityEmbeddings",
    "EpochRecord",
    "Evaluation",
    "FloatArray",
    "IntArray",
    "LiteralEvidence",
    "Literals",
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
    "UpdatePairs",
    "UpdateReport",
    "are_among",
    "check_range",
    "from_plain",
    "frozen",
    "pair_keys",
    "to_plain",
]
