"""Every value that crosses a stage boundary: frozen dataclasses of numpy arrays, checked on creation.

One id space for entities: 0 .. num_source_entities - 1 are the source's, the target's follow. Relations are numbered
the same way and never shared. Arrays are handed out read-only, so that no stage can change what another one made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from largegnn.errors import ArtifactError

__all__ = [
    "AlignmentTask",
    "EntityEmbeddings",
    "IntArray",
    "MergedGraph",
    "Partition",
    "PartitionQuality",
    "SeedsFrom",
    "StringTable",
    "Subgraph",
    "SubgraphSet",
    "TaskNames",
]

IntArray = npt.NDArray[Any]
SeedsFrom = Literal["train", "train+valid"]


def _frozen(array: npt.ArrayLike, dtype: npt.DTypeLike, shape: tuple[int | None, ...], name: str) -> IntArray:
    """A read-only, contiguous view of `array`; refuses another shape (None = any length)."""
    result = np.ascontiguousarray(array, dtype=dtype).view()
    if result.size == 0 and len(shape) == 2 and shape[1] is not None:
        result = result.reshape(0, shape[1])
    matches = len(shape) == result.ndim and all(
        want in (None, have) for want, have in zip(shape, result.shape, strict=True)
    )
    if not matches:
        raise ArtifactError(f"{name} has shape {result.shape}, expected {shape}")
    result.flags.writeable = False
    return result


def _check_range(array: IntArray, low: int, high: int, name: str) -> None:
    """Refuse values outside low <= value < high."""
    if array.size and (int(array.min()) < low or int(array.max()) >= high):
        raise ArtifactError(f"{name} holds {int(array.min())}..{int(array.max())}, allowed {low}..{high - 1}")


def _check_offsets(ptr: IntArray, total: int, name: str) -> None:
    """Refuse CSR offsets that do not climb from 0 to `total`."""
    if ptr.size == 0 or ptr[0] != 0 or ptr[-1] != total or bool(np.any(np.diff(ptr) < 0)):
        raise ArtifactError(f"{name} must climb from 0 to {total}")


@dataclass(frozen=True, eq=False)
class AlignmentTask:
    """Two graphs and the known links between them, as numbers.

    `triples` (m, 3) int32: head, relation, tail; sorted, distinct, both ends on one side.
    `train_links`, `valid_links`, `test_links` (k, 2) int32: source entity, target entity; sorted, distinct.
    """

    num_source_entities: int
    num_target_entities: int
    num_source_relations: int
    num_target_relations: int
    triples: IntArray
    train_links: IntArray
    valid_links: IntArray
    test_links: IntArray

    def __post_init__(self) -> None:
        triples = _frozen(self.triples, np.int32, (None, 3), "triples")
        object.__setattr__(self, "triples", triples)
        _check_range(triples[:, (0, 2)], 0, self.num_entities, "triples' entities")
        _check_range(triples[:, 1], 0, self.num_relations, "triples' relations")
        on_source = triples[:, 0] < self.num_source_entities
        if bool(np.any(on_source != (triples[:, 2] < self.num_source_entities))):
            raise ArtifactError("a triple joins a source entity with a target entity")
        if bool(np.any(on_source != (triples[:, 1] < self.num_source_relations))):
            raise ArtifactError("a triple uses a relation of the other side")
        for name in ("train_links", "valid_links", "test_links"):
            links = _frozen(getattr(self, name), np.int32, (None, 2), name)
            object.__setattr__(self, name, links)
            _check_range(links[:, 0], 0, self.num_source_entities, f"{name}' sources")
            _check_range(links[:, 1], self.num_source_entities, self.num_entities, f"{name}' targets")

    @property
    def num_entities(self) -> int:
        """Entities of both sides."""
        return self.num_source_entities + self.num_target_entities

    @property
    def num_relations(self) -> int:
        """Relations of both sides."""
        return self.num_source_relations + self.num_target_relations

    @property
    def num_source_triples(self) -> int:
        """Triples of the source; they come first in `triples`."""
        return int(np.searchsorted(self.triples[:, 0], self.num_source_entities))

    def seeds(self, seeds_from: SeedsFrom = "train") -> IntArray:
        """The links training may see, (k, 2): the honest protocol's `train`, or the paper's `train+valid`."""
        if seeds_from == "train":
            return self.train_links
        both = np.concatenate([self.train_links, self.valid_links])
        return both[np.lexsort((both[:, 1], both[:, 0]))]


@dataclass(frozen=True, eq=False)
class StringTable:
    """Many strings in two arrays: UTF-8 bytes end to end, and where each one starts."""

    data: IntArray
    data_ptr: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", _frozen(self.data, np.uint8, (None,), "data"))
        object.__setattr__(self, "data_ptr", _frozen(self.data_ptr, np.int64, (None,), "data_ptr"))
        _check_offsets(self.data_ptr, len(self.data), "data_ptr")

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> StringTable:
        """Pack strings in the order given."""
        encoded = [text.encode("utf-8") for text in strings]
        ptr = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(text) for text in encoded], out=ptr[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ptr)

    def __len__(self) -> int:
        return len(self.data_ptr) - 1

    def __getitem__(self, index: int) -> str:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.data[self.data_ptr[index] : self.data_ptr[index + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        return iter(self.take(range(len(self))))

    def take(self, indices: Sequence[int] | IntArray | range) -> list[str]:
        """The strings at these positions."""
        data, ptr = self.data.tobytes(), self.data_ptr.tolist()
        return [data[ptr[index] : ptr[index + 1]].decode("utf-8") for index in indices]


@dataclass(frozen=True, eq=False)
class TaskNames:
    """What the ids of an `AlignmentTask` are called in the user's files."""

    entities: StringTable
    relations: StringTable


@dataclass(frozen=True, eq=False)
class MergedGraph:
    """Both graphs as one undirected weighted graph, each seed pair contracted to one node.

    `node_of_entity` (n,) int32; neighbours of node v are `neighbors[neighbor_ptr[v]:neighbor_ptr[v + 1]]`, ascending,
    without v; `edge_weights` counts the triples between the two nodes; `node_weights` counts the entities in a node.
    """

    node_of_entity: IntArray
    neighbor_ptr: IntArray
    neighbors: IntArray
    edge_weights: IntArray
    node_weights: IntArray

    def __post_init__(self) -> None:
        for name, dtype in (
            ("node_of_entity", np.int32),
            ("neighbor_ptr", np.int64),
            ("neighbors", np.int32),
            ("edge_weights", np.int32),
            ("node_weights", np.int32),
        ):
            object.__setattr__(self, name, _frozen(getattr(self, name), dtype, (None,), name))
        _check_offsets(self.neighbor_ptr, len(self.neighbors), "neighbor_ptr")
        if len(self.node_weights) != self.num_nodes or len(self.edge_weights) != len(self.neighbors):
            raise ArtifactError("weights do not match the graph they weigh")
        _check_range(self.neighbors, 0, self.num_nodes, "neighbors")
        _check_range(self.node_of_entity, 0, self.num_nodes, "node_of_entity")
        if int(self.node_weights.sum()) != self.num_entities:
            raise ArtifactError("node_weights do not add up to the number of entities")

    @property
    def num_entities(self) -> int:
        """Entities of both sides."""
        return len(self.node_of_entity)

    @property
    def num_nodes(self) -> int:
        """Nodes after contraction."""
        return len(self.neighbor_ptr) - 1

    @property
    def num_edges(self) -> int:
        """Undirected edges between distinct nodes."""
        return len(self.neighbors) // 2


@dataclass(frozen=True, eq=False)
class Partition:
    """A cover of the entities by parts that may overlap.

    Part p holds the entities `entities[part_ptr[p]:part_ptr[p + 1]]`, strictly ascending.
    """

    num_entities: int
    entities: IntArray
    part_ptr: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "entities", _frozen(self.entities, np.int32, (None,), "entities"))
        object.__setattr__(self, "part_ptr", _frozen(self.part_ptr, np.int64, (None,), "part_ptr"))
        _check_offsets(self.part_ptr, len(self.entities), "part_ptr")
        _check_range(self.entities, 0, self.num_entities, "entities")
        climbs = np.diff(self.entities) > 0
        starts = self.part_ptr[1:-1]
        climbs[starts[(starts > 0) & (starts < len(self.entities))] - 1] = True
        if not bool(climbs.all()):
            raise ArtifactError("the entities of a part must be strictly ascending")

    @classmethod
    def from_labels(cls, part_of_entity: IntArray, num_parts: int) -> Partition:
        """The disjoint parts that `part_of_entity` (num_entities,) names."""
        labels = part_of_entity.astype(np.min_scalar_type(num_parts))
        part_ptr = np.zeros(num_parts + 1, dtype=np.int64)
        np.cumsum(np.bincount(labels, minlength=num_parts), out=part_ptr[1:])
        return cls(len(labels), np.argsort(labels, kind="stable"), part_ptr)

    @property
    def num_parts(self) -> int:
        """How many parts there are."""
        return len(self.part_ptr) - 1

    @property
    def num_uncovered(self) -> int:
        """Entities that are in no part."""
        covered = np.zeros(self.num_entities, dtype=bool)
        covered[self.entities] = True
        return self.num_entities - int(covered.sum())

    @property
    def sizes(self) -> IntArray:
        """Entities per part, (num_parts,)."""
        return np.diff(self.part_ptr)

    def part(self, index: int) -> IntArray:
        """The entities of one part."""
        return self.entities[self.part_ptr[index] : self.part_ptr[index + 1]]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """A part with the triples and seed pairs that lie wholly inside it.

    `entities` (k,) global ids, ascending: local id i is `entities[i]`. `triples` (m, 3): local head, global relation,
    local tail. `seeds` (s, 2): local ids.
    """

    entities: IntArray
    triples: IntArray
    seeds: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "entities", _frozen(self.entities, np.int32, (None,), "entities"))
        object.__setattr__(self, "triples", _frozen(self.triples, np.int32, (None, 3), "triples"))
        object.__setattr__(self, "seeds", _frozen(self.seeds, np.int32, (None, 2), "seeds"))
        _check_range(self.triples[:, (0, 2)], 0, len(self.entities), "triples' local ids")
        _check_range(self.seeds, 0, len(self.entities), "seeds' local ids")


@dataclass(frozen=True, eq=False)
class SubgraphSet:
    """All subgraphs of a division in six flat arrays, so that they can be memory-mapped and read one at a time.

    Subgraph i owns the rows `entities[entity_ptr[i]:entity_ptr[i + 1]]`, and the same of `triples` and `seeds`; what
    the rows mean is said at `Subgraph`. Only the offsets are checked here: creation never reads the rows.
    """

    entities: IntArray
    entity_ptr: IntArray
    triples: IntArray
    triple_ptr: IntArray
    seeds: IntArray
    seed_ptr: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "entities", _frozen(self.entities, np.int32, (None,), "entities"))
        object.__setattr__(self, "triples", _frozen(self.triples, np.int32, (None, 3), "triples"))
        object.__setattr__(self, "seeds", _frozen(self.seeds, np.int32, (None, 2), "seeds"))
        for name, rows in (("entity_ptr", self.entities), ("triple_ptr", self.triples), ("seed_ptr", self.seeds)):
            ptr = _frozen(getattr(self, name), np.int64, (None,), name)
            object.__setattr__(self, name, ptr)
            _check_offsets(ptr, len(rows), name)
            if len(ptr) != len(self.entity_ptr):
                raise ArtifactError(f"{name} counts {len(ptr) - 1} subgraphs, entity_ptr {len(self)}")

    def __len__(self) -> int:
        return len(self.entity_ptr) - 1

    def subgraph(self, index: int) -> Subgraph:
        """One subgraph: slices of the arrays, nothing copied."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Subgraph(
            self.entities[self.entity_ptr[index] : self.entity_ptr[index + 1]],
            self.triples[self.triple_ptr[index] : self.triple_ptr[index + 1]],
            self.seeds[self.seed_ptr[index] : self.seed_ptr[index + 1]],
        )


@dataclass(frozen=True)
class PartitionQuality:
    """How much of the graphs and of the links survives a division.

    Shares are of what there is; a share of nothing (no test links, say) is None. `edge_cut` is the share of the merged
    graph's edges whose two nodes share no part. Sizes count entities.
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


@dataclass(frozen=True, eq=False)
class EntityEmbeddings:
    """One vector per entity, (n, d) float32; only the rows that are `covered` (n,) mean anything."""

    vectors: npt.NDArray[np.float32]
    covered: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", _frozen(self.vectors, np.float32, (None, None), "vectors"))
        object.__setattr__(self, "covered", _frozen(self.covered, np.bool_, (len(self.vectors),), "covered"))
