"""Define the task: two graphs, the known links between them, and the names of entities and relations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from largegnn.artifacts.arrays import IntArray, Mask, are_among, check_offsets, check_range, freeze_fields
from largegnn.errors import ArtifactError

__all__ = ["AlignmentTask", "SeedsFrom", "StringTable", "TaskNames"]

SeedsFrom = Literal["train", "train+valid"]
_HELD_OUT_EVERY = 10  # one of so many anchors is held out
_MIN_VALID_LINKS = 30  # with fewer, some anchors are held out as valid links


@dataclass(frozen=True, eq=False)
class AlignmentTask:
    """Two graphs and the known links between them, as ids.

    `triples` (m, 3) int32: head, relation, tail; sorted, distinct, both entities on one side.
    `train_links`, `valid_links`, `test_links` (k, 2) int32: source entity, target entity; sorted, distinct.
    `anchors` (k, 2) are pairs found by names and values, on which training starts if seeds are few; unlike seeds they
    are not known to be right, and their entities are matched like all other entities.
    `reviewed` (k, 2) are the train links that reviewers accepted. They are right, but selected by reviewers, and so not
    a sample of the links to learn from.
    `forbidden` (k, 2) are pairs known to be wrong; they never become candidates, anchors or pseudo-seeds.
    """

    num_source_entities: int
    num_target_entities: int
    num_source_relations: int
    num_target_relations: int
    triples: IntArray
    train_links: IntArray
    valid_links: IntArray
    test_links: IntArray
    anchors: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    reviewed: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    forbidden: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))

    def __post_init__(self) -> None:
        freeze_fields(self, ["triples"], np.int32, (None, 3))
        triples = self.triples
        check_range(triples[:, (0, 2)], 0, self.num_entities, "the entities of triples")
        check_range(triples[:, 1], 0, self.num_relations, "the relations of triples")
        on_source = triples[:, 0] < self.num_source_entities
        if bool(np.any(on_source != (triples[:, 2] < self.num_source_entities))):
            raise ArtifactError("a triple joins a source entity with a target entity")
        if bool(np.any(on_source != (triples[:, 1] < self.num_source_relations))):
            raise ArtifactError("a triple uses a relation of the other side")
        names = ["train_links", "valid_links", "test_links", "anchors", "reviewed", "forbidden"]
        freeze_fields(self, names, np.int32, (None, 2))
        for name in names:
            links = getattr(self, name)
            check_range(links[:, 0], 0, self.num_source_entities, f"the sources of {name}")
            check_range(links[:, 1], self.num_source_entities, self.num_entities, f"the targets of {name}")

    @property
    def num_entities(self) -> int:
        """The number of entities of both sides."""
        return self.num_source_entities + self.num_target_entities

    @property
    def num_relations(self) -> int:
        """The number of relations of both sides."""
        return self.num_source_relations + self.num_target_relations

    @property
    def num_source_triples(self) -> int:
        """The number of triples of the source, which come first in `triples`."""
        return int(np.searchsorted(self.triples[:, 0], self.num_source_entities))

    def degrees(self) -> IntArray:
        """The number of triples of each entity, (n,)."""
        counts: IntArray = np.bincount(self.triples[:, (0, 2)].ravel(), minlength=self.num_entities)
        return counts

    def without_test_links(self) -> AlignmentTask:
        """The task without the links that only evaluation may use."""
        return dataclasses.replace(self, test_links=self.test_links[:0])

    def held_out(self, seeds_from: SeedsFrom = "train") -> IntArray:
        """The valid links that are not seeds, (k, 2); hyperparameters and early stopping may depend on them."""
        return self.valid_links if seeds_from == "train" else self.valid_links[:0]

    def free(self, seeds_from: SeedsFrom = "train") -> Mask:
        """Which entities are in no given seed pair, (num_entities,)."""
        is_free = np.ones(self.num_entities, dtype=bool)
        is_free[self.given_seeds(seeds_from).ravel()] = False
        return is_free

    def with_anchors(self, anchors: IntArray) -> AlignmentTask:
        """Add anchors (k, 2), most confident first, to train on; some become valid links if there are few of these."""
        given = self.given_seeds("train+valid")
        touches_given = np.isin(anchors[:, 0], given[:, 0]) | np.isin(anchors[:, 1], given[:, 1])
        fresh = anchors[~(touches_given | are_among(anchors, self.forbidden))]
        if not len(fresh):
            return self
        # A few links are not enough to weight vectors against names, or to decide when to stop training.
        if len(self.valid_links) >= _MIN_VALID_LINKS:
            return dataclasses.replace(self, anchors=_sorted_links(fresh))
        held_out = np.zeros(len(fresh), dtype=bool)
        held_out[::_HELD_OUT_EVERY] = True
        valid = np.concatenate([self.valid_links, fresh[held_out]])
        return dataclasses.replace(self, anchors=_sorted_links(fresh[~held_out]), valid_links=_sorted_links(valid))

    def given_seeds(self, seeds_from: SeedsFrom = "train") -> IntArray:
        """The known links that training may use, (k, 2): `train`, or `train+valid` as in the paper."""
        if seeds_from == "train":
            return self.train_links
        return _sorted_links(np.concatenate([self.train_links, self.valid_links]))

    def seeds(self, seeds_from: SeedsFrom = "train") -> IntArray:
        """The pairs on which training starts, (k, 2): the given seeds and the anchors."""
        given = self.given_seeds(seeds_from)
        return _sorted_links(np.concatenate([given, self.anchors])) if len(self.anchors) else given


def _sorted_links(links: IntArray) -> IntArray:
    ordered: IntArray = links[np.lexsort((links[:, 1], links[:, 0]))]
    return ordered


@dataclass(frozen=True, eq=False)
class StringTable:
    """Many strings in two arrays: the concatenated UTF-8 bytes, and the offset at which each string starts."""

    data: IntArray
    data_ptr: IntArray

    def __post_init__(self) -> None:
        freeze_fields(self, ["data"], np.uint8)
        freeze_fields(self, ["data_ptr"], np.int64)
        check_offsets(self.data_ptr, len(self.data), "data_ptr")

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> StringTable:
        """Pack strings in their given order."""
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
        """The strings at the given `indices`; only their bytes are read."""
        rows = np.asarray(indices, dtype=np.int64)
        if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < len(self):
            raise IndexError(f"indices {int(rows.min())}..{int(rows.max())} of {len(self)} strings")
        data = self.data.data  # slices of a memoryview are not copies
        spans = zip(self.data_ptr[rows].tolist(), self.data_ptr[rows + 1].tolist(), strict=True)
        return [str(data[start:end], "utf-8") for start, end in spans]


@dataclass(frozen=True, eq=False)
class TaskNames:
    """The names, as in the user's files, of the entities and relations of an `AlignmentTask`, by id."""

    entities: StringTable
    relations: StringTable
