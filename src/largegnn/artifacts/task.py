"""The task: two graphs, the known links between them, and what everything is called."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from largegnn.artifacts.arrays import IntArray, Mask, check_offsets, check_range, frozen
from largegnn.artifacts.pairs import are_among
from largegnn.errors import ArtifactError

__all__ = ["AlignmentTask", "SeedsFrom", "StringTable", "TaskNames"]

SeedsFrom = Literal["train", "train+valid"]
_HELD_OUT_EVERY = 10
_FEWEST_VALID = 30  # given ones that make choices by themselves


@dataclass(frozen=True, eq=False)
class AlignmentTask:
    """Two graphs and the known links between them, as numbers.

    `triples` (m, 3) int32: head, relation, tail; sorted, distinct, both ends on one side.
    `train_links`, `valid_links`, `test_links` (k, 2) int32: source entity, target entity; sorted, distinct.
    `anchors` (k, 2) are pairs found by names and values that training starts from where seeds are few; unlike seeds
    they are not known to be right, and their entities are matched like all others.
    `reviewed` (k, 2) are the train links that reviewers accepted: right, but chosen, and so no sample to learn from.
    `forbidden` (k, 2) are pairs that are known to be wrong: they are no candidates, no anchors and no pseudo-seeds.
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
        triples = frozen(self.triples, np.int32, (None, 3), "triples")
        object.__setattr__(self, "triples", triples)
        check_range(triples[:, (0, 2)], 0, self.num_entities, "triples' entities")
        check_range(triples[:, 1], 0, self.num_relations, "triples' relations")
        on_source = triples[:, 0] < self.num_source_entities
        if bool(np.any(on_source != (triples[:, 2] < self.num_source_entities))):
            raise ArtifactError("a triple joins a source entity with a target entity")
        if bool(np.any(on_source != (triples[:, 1] < self.num_source_relations))):
            raise ArtifactError("a triple uses a relation of the other side")
        for name in ("train_links", "valid_links", "test_links", "anchors", "reviewed", "forbidden"):
            links = frozen(getattr(self, name), np.int32, (None, 2), name)
            object.__setattr__(self, name, links)
            check_range(links[:, 0], 0, self.num_source_entities, f"{name}' sources")
            check_range(links[:, 1], self.num_source_entities, self.num_entities, f"{name}' targets")

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

    def degrees(self) -> IntArray:
        """The number of triples of each entity, (n,)."""
        counts: IntArray = np.bincount(self.triples[:, (0, 2)].ravel(), minlength=self.num_entities)
        return counts

    def without_test_links(self) -> AlignmentTask:
        """The task as every stage but the last may see it."""
        return dataclasses.replace(self, test_links=self.test_links[:0])

    def held_out(self, seeds_from: SeedsFrom = "train") -> IntArray:
        """The valid links that are no seeds, (k, 2): what choices may be made by."""
        return self.valid_links if seeds_from == "train" else self.valid_links[:0]

    def free(self, seeds_from: SeedsFrom = "train") -> Mask:
        """Which entities are no seeds, (num_entities,)."""
        free = np.ones(self.num_entities, dtype=bool)
        free[self.given_seeds(seeds_from).ravel()] = False
        return free

    def with_anchors(self, anchors: IntArray) -> AlignmentTask:
        """The task with anchors (k, 2), surest first, to train on; some are held out where valid links are few."""
        taken = self.given_seeds("train+valid")
        is_taken = np.isin(anchors[:, 0], taken[:, 0]) | np.isin(anchors[:, 1], taken[:, 1])
        fresh = anchors[~(is_taken | are_among(anchors, self.forbidden))]
        if not len(fresh):
            return self
        # A handful of links cannot tell what vectors are worth beside names, nor when training has gone far enough.
        if len(self.valid_links) >= _FEWEST_VALID:
            return dataclasses.replace(self, anchors=_sorted_links(fresh))
        held_out = np.zeros(len(fresh), dtype=bool)
        held_out[::_HELD_OUT_EVERY] = True
        valid = np.concatenate([self.valid_links, fresh[held_out]])
        return dataclasses.replace(self, anchors=_sorted_links(fresh[~held_out]), valid_links=_sorted_links(valid))

    def given_seeds(self, seeds_from: SeedsFrom = "train") -> IntArray:
        """The known links training may see, (k, 2): the honest protocol's `train`, or the paper's `train+valid`."""
        if seeds_from == "train":
            return self.train_links
        return _sorted_links(np.concatenate([self.train_links, self.valid_links]))

    def seeds(self, seeds_from: SeedsFrom = "train") -> IntArray:
        """What training starts from, (k, 2): the given seeds, and the anchors where there are some."""
        given = self.given_seeds(seeds_from)
        return _sorted_links(np.concatenate([given, self.anchors])) if len(self.anchors) else given


def _sorted_links(links: IntArray) -> IntArray:
    ordered: IntArray = links[np.lexsort((links[:, 1], links[:, 0]))]
    return ordered


@dataclass(frozen=True, eq=False)
class StringTable:
    """Many strings in two arrays: UTF-8 bytes end to end, and where each one starts."""

    data: IntArray
    data_ptr: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", frozen(self.data, np.uint8, (None,), "data"))
        object.__setattr__(self, "data_ptr", frozen(self.data_ptr, np.int64, (None,), "data_ptr"))
        check_offsets(self.data_ptr, len(self.data), "data_ptr")

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
        """The strings at these positions; only their bytes are touched."""
        at = np.asarray(indices, dtype=np.int64)
        if at.size and not 0 <= int(at.min()) <= int(at.max()) < len(self):
            raise IndexError(f"positions {int(at.min())}..{int(at.max())} of {len(self)} strings")
        data = self.data.data  # a buffer, whose slices copy nothing
        spans = zip(self.data_ptr[at].tolist(), self.data_ptr[at + 1].tolist(), strict=True)
        return [str(data[start:end], "utf-8") for start, end in spans]


@dataclass(frozen=True, eq=False)
class TaskNames:
    """What the ids of an `AlignmentTask` are called in the user's files."""

    entities: StringTable
    relations: StringTable
