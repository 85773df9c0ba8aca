"""Find the nearest free entities of the other side, in both directions (step `search`); free entities have no seed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, Neighbors, SearchRecord
from largegnn.machine.devices import choose_device
from largegnn.machine.mapped_file import forget_pages

if TYPE_CHECKING:
    from largegnn.settings import ProtocolSettings, SearchSettings

__all__ = ["SearchOutcome", "SearchResult", "find_nearest"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchOutcome:
    """Records of the searches for the targets of each source, and for the sources of each target."""

    source_search: SearchRecord
    target_search: SearchRecord


@dataclass(frozen=True)
class SearchResult:
    """The nearest free targets of each free source, and the nearest free sources of each free target."""

    source_neighbors: Neighbors
    target_neighbors: Neighbors
    outcome: SearchOutcome


def find_nearest(
    task: AlignmentTask,
    final_embeddings: EntityEmbeddings,
    protocol: ProtocolSettings,
    search: SearchSettings,
    seed: int,
    *,
    device: str,
) -> SearchResult:
    """Search in both directions by the method of the settings."""
    from largegnn.matching.search import SearchOptions, search_both

    free = task.free(protocol.seeds_from) & final_embeddings.covered
    split = task.num_source_entities
    sides = search_both(
        final_embeddings.vectors[:split],
        final_embeddings.vectors[split:],
        search.k,
        search.method,
        source_ids=np.arange(split),
        target_ids=np.arange(split, task.num_entities),
        source_covered=free[:split],
        target_covered=free[split:],
        options=SearchOptions(
            device=str(choose_device(device)),
            recall=search.recall,
            seed=seed % 2**31,
            max_memory_gb=search.max_memory_gb,
        ),
    )
    forget_pages(final_embeddings.vectors)
    near_targets, near_sources = (side.answered() for side in sides)
    for side, record in (("source", near_targets.record), ("target", near_sources.record)):
        if record.recall is not None:
            _log.info("search: %s from the %s side, recall %.3f on a sample", record.method, side, record.recall)
    return SearchResult(near_targets, near_sources, SearchOutcome(near_targets.record, near_sources.record))
