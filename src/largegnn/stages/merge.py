"""The stage `merge`: the two graphs become one at the seeds."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from largegnn.artifacts import AlignmentTask, MergedGraph
from largegnn.division.merge import MergeCounts, count_merge
from largegnn.division.merge import merge as merge_graphs
from largegnn.planning.plan import seeds_warning
from largegnn.settings import ProtocolSettings

__all__ = ["MergeOutcome", "Merged", "merge"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MergeOutcome:
    """How large the merged graph is, and what the contraction did."""

    num_nodes: int
    num_edges: int
    counts: MergeCounts


@dataclass(frozen=True)
class Merged:
    """The merged graph."""

    merged: MergedGraph
    outcome: MergeOutcome


def merge(task: AlignmentTask, protocol: ProtocolSettings) -> Merged:
    """Contract every seed pair to one node."""
    warning = seeds_warning(task, protocol.seeds_from)
    if warning is not None:
        _log.warning("merge: %s", warning)
    graph = merge_graphs(task, protocol.seeds_from)
    return Merged(graph, MergeOutcome(graph.num_nodes, graph.num_edges, count_merge(graph)))
