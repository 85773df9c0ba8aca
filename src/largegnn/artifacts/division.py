"""Define the results of the division step: the merged graph, the plan, the parts with their quality, and the subgraphs.

`planning` makes the `DivisionPlan`; `division` makes a `MergedGraph`, a `Partition` of the entities, the `SubgraphSet`
that training reads one subgraph at a time, and a `PartitionQuality` for the report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from largegnn.artifacts.arrays import IntArray, check_offsets, check_range, freeze_fields
from largegnn.errors import ArtifactError

__all__ = ["DivisionPlan", "MergedGraph", "Partition", "PartitionQuality", "Subgraph", "SubgraphSet"]


@dataclass(frozen=True, eq=False)
class MergedGraph:
    """Both graphs as one undirected weighted graph, in which each seed pair is contracted to one node.

    `node_of_entity` (n,) is the node of each entity. The neighbours of node v are
    `neighbors[neighbor_ptr[v]:neighbor_ptr[v + 1]]`, ascending, without v. `edge_weights` counts the triples between
    the two nodes of an edge, `node_weights` the entities of a node.
    """

    node_of_entity: IntArray
    neighbor_ptr: IntArray
    neighbors: IntArray
    edge_weights: IntArray
    node_weights: IntArray

    def __post_init__(self) -> None:
        freeze_fields(self, ["node_of_entity", "neighbors", "edge_weights", "node_weights"], np.int32)
        freeze_fields(self, ["neighbor_ptr"], np.int64)
        check_offsets(self.neighbor_ptr, len(self.neighbors), "neighbor_ptr")
        if len(self.node_weights) != self.num_nodes or len(self.edge_weights) != len(self.neighbors):
            raise ArtifactError("the numbers of weights, nodes and edges do not match")
        check_range(self.neighbors, 0, self.num_nodes, "neighbors")
        check_range(self.node_of_entity, 0, self.num_nodes, "node_of_entity")
        if int(self.node_weights.sum()) != self.num_entities:
            raise ArtifactError("node_weights do not add up to the number of entities")

    @property
    def num_entities(self) -> int:
        """The number of entities of both sides."""
        return len(self.node_of_entity)

    @property
    def num_nodes(self) -> int:
        """The number of nodes after contraction."""
        return len(self.neighbor_ptr) - 1

    @property
    def num_edges(self) -> int:
        """The number of undirected edges between distinct nodes."""
        return len(self.neighbors) // 2


@dataclass(frozen=True, eq=False)
class Partition:
    """Which entities are in which part; parts may overlap.

    Part p holds the entities `entities[part_ptr[p]:part_ptr[p + 1]]`, strictly ascending.
    """

    num_entities: int
    entities: IntArray
    part_ptr: IntArray

    def __post_init__(self) -> None:
        freeze_fields(self, ["entities"], np.int32)
        freeze_fields(self, ["part_ptr"], np.int64)
        check_offsets(self.part_ptr, len(self.entities), "part_ptr")
        check_range(self.entities, 0, self.num_entities, "entities")
        is_ascending = np.diff(self.entities) > 0
        # From the last entity of one part to the first of the next part the ids may descend.
        part_starts = self.part_ptr[1:-1]
        is_ascending[part_starts[(part_starts > 0) & (part_starts < len(self.entities))] - 1] = True
        if not bool(is_ascending.all()):
            raise ArtifactError("the entities of a part must be strictly ascending")

    @classmethod
    def from_labels(cls, part_of_entity: IntArray, num_parts: int) -> Partition:
        """Make disjoint parts of a part number for each entity, (num_entities,)."""
        # Small integers: the stable argsort of numpy is a radix sort for one and two bytes.
        labels = part_of_entity.astype(np.min_scalar_type(num_parts))
        part_ptr = np.zeros(num_parts + 1, dtype=np.int64)
        np.cumsum(np.bincount(labels, minlength=num_parts), out=part_ptr[1:])
        return cls(len(labels), np.argsort(labels, kind="stable"), part_ptr)

    @property
    def num_parts(self) -> int:
        """The number of parts."""
        return len(self.part_ptr) - 1

    @property
    def num_uncovered(self) -> int:
        """The number of entities that are in no part."""
        covered = np.zeros(self.num_entities, dtype=bool)
        covered[self.entities] = True
        return self.num_entities - int(covered.sum())

    @property
    def sizes(self) -> IntArray:
        """The number of entities of each part, (num_parts,)."""
        return np.diff(self.part_ptr)

    def part(self, index: int) -> IntArray:
        """The entities of one part."""
        return self.entities[self.part_ptr[index] : self.part_ptr[index + 1]]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """The entities of a part with the triples and seed pairs that lie wholly inside it.

    `entities` (k,) are global ids, ascending; the entity with local id i is `entities[i]`. `triples` (m, 3): local
    head, global relation, local tail. `seeds` (s, 2): local ids.
    """

    entities: IntArray
    triples: IntArray
    seeds: IntArray

    def __post_init__(self) -> None:
        freeze_fields(self, ["entities"], np.int32)
        freeze_fields(self, ["triples"], np.int32, (None, 3))
        freeze_fields(self, ["seeds"], np.int32, (None, 2))
        check_range(self.triples[:, (0, 2)], 0, len(self.entities), "triples' local ids")
        check_range(self.seeds, 0, len(self.entities), "seeds' local ids")


@dataclass(frozen=True, eq=False)
class SubgraphSet:
    """All subgraphs of a division in six flat arrays, which can be memory-mapped and read one subgraph at a time.

    Subgraph i has the entities `entities[entity_ptr[i]:entity_ptr[i + 1]]`; its triples and seeds are found in the same
    way (see `Subgraph`). Only the offsets are checked: creation does not read the rows.
    """

    entities: IntArray
    entity_ptr: IntArray
    triples: IntArray
    triple_ptr: IntArray
    seeds: IntArray
    seed_ptr: IntArray

    def __post_init__(self) -> None:
        freeze_fields(self, ["entities"], np.int32)
        freeze_fields(self, ["triples"], np.int32, (None, 3))
        freeze_fields(self, ["seeds"], np.int32, (None, 2))
        freeze_fields(self, ["entity_ptr", "triple_ptr", "seed_ptr"], np.int64)
        for name, rows in (("entity_ptr", self.entities), ("triple_ptr", self.triples), ("seed_ptr", self.seeds)):
            ptr = getattr(self, name)
            check_offsets(ptr, len(rows), name)
            if len(ptr) != len(self.entity_ptr):
                raise ArtifactError(f"{name} has {len(ptr) - 1} subgraphs, entity_ptr {len(self)}")

    @classmethod
    def empty(cls) -> SubgraphSet:
        """A set without subgraphs, for callers that need only the whole graph."""
        none, start = np.empty(0), np.zeros(1)
        return cls(none, start, none, start, none, start)

    def __len__(self) -> int:
        return len(self.entity_ptr) - 1

    def subgraph(self, index: int) -> Subgraph:
        """One subgraph, whose arrays are slices and not copies."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Subgraph(
            self.entities[self.entity_ptr[index] : self.entity_ptr[index + 1]],
            self.triples[self.triple_ptr[index] : self.triple_ptr[index + 1]],
            self.seeds[self.seed_ptr[index] : self.seed_ptr[index + 1]],
        )


@dataclass(frozen=True)
class DivisionPlan:
    """How a graph is to be divided: the number of parts, and why.

    `cap` is the largest number of entities in a subgraph, landmarks included.
    """

    num_parts: int
    cap: int
    reason: str


@dataclass(frozen=True)
class PartitionQuality:
    """The sizes of the parts of a division in entities, and the shares of the triples and links that lie inside a part.

    A share is None if there is nothing to count, such as no test links. `edge_cut` is the share of the merged graph's
    edges whose two nodes have no part in common.
    """

    sizes: tuple[int, ...]
    source_sizes: tuple[int, ...]
    num_landmarks: tuple[int, ...]
    num_uncovered: int
    edge_cut: float | None
    triples_kept: float | None
    train_kept: float | None
    valid_kept: float | None
    test_kept: float | None
