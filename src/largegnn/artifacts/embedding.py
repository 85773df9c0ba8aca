"""What training makes: parameters, and a vector for each entity."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts.arrays import frozen
from largegnn.errors import ArtifactError

__all__ = ["EntityEmbeddings", "TrainedModel"]


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The parameters of a trained encoder: rows of entities (n, d) and relations (2R, d), and its weights.

    The weights stand in one vector, in the order the encoder lists its parameters. Those of an ensemble of m `members`
    stand side by side: rows (n, m d) and (2R, m d), and m vectors of weights end to end.
    """

    encoder: str
    entity_rows: npt.NDArray[np.float32]
    relation_rows: npt.NDArray[np.float32]
    encoder_weights: npt.NDArray[np.float32]
    members: int = 1

    def __post_init__(self) -> None:
        for name, shape in (
            ("entity_rows", (None, None)),
            ("relation_rows", (None, self.entity_rows.shape[1])),
            ("encoder_weights", (None,)),
        ):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float32, shape, name))
        if len(self.relation_rows) % 2:
            raise ArtifactError(f"{len(self.relation_rows)} relation rows; each relation has two, forward and inverse")
        if self.members < 1 or self.entity_rows.shape[1] % self.members or len(self.encoder_weights) % self.members:
            raise ArtifactError(f"{self.members} members cannot share rows of {self.entity_rows.shape[1]} numbers")

    def member(self, index: int) -> TrainedModel:
        """One member of an ensemble, by itself."""
        if self.members == 1 and index == 0:
            return self
        dim, num_weights = self.entity_rows.shape[1] // self.members, len(self.encoder_weights) // self.members
        columns = slice(index * dim, (index + 1) * dim)
        weights = self.encoder_weights[index * num_weights : (index + 1) * num_weights]
        return TrainedModel(self.encoder, self.entity_rows[:, columns], self.relation_rows[:, columns], weights)

    @classmethod
    def joined(cls, members: Iterable[TrainedModel], number: int) -> TrainedModel:
        """An ensemble of so many members, taken one by one: no more than one is held beside the result."""
        if number == 1:
            (only,) = members
            return only
        encoder, tables = "", list[npt.NDArray[np.float32]]()
        for index, member in enumerate(members):
            parts = (member.entity_rows, member.relation_rows, member.encoder_weights[None])
            if not tables:
                encoder = member.encoder
                tables = [np.empty((len(part), number * part.shape[1]), dtype=np.float32) for part in parts]
            for table, part in zip(tables, parts, strict=True):
                table[:, index * part.shape[1] : (index + 1) * part.shape[1]] = part
        return cls(encoder, tables[0], tables[1], tables[2][0], number)


@dataclass(frozen=True, eq=False)
class EntityEmbeddings:
    """One vector per entity, (n, d) float32; only the rows that are `covered` (n,) mean anything."""

    vectors: npt.NDArray[np.float32]
    covered: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", frozen(self.vectors, np.float32, (None, None), "vectors"))
        object.__setattr__(self, "covered", frozen(self.covered, np.bool_, (len(self.vectors),), "covered"))

    @classmethod
    def none(cls, num_entities: int) -> EntityEmbeddings:
        """No entity has a vector: nothing was trained."""
        return cls(np.zeros((num_entities, 1), dtype=np.float32), np.zeros(num_entities, dtype=bool))
