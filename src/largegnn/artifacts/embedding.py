"""What training makes: parameters, and a vector for each entity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts.arrays import frozen
from largegnn.errors import ArtifactError

__all__ = ["EntityEmbeddings", "TrainedModel"]


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The parameters of a trained encoder: rows of entities (n, d) and relations (2R, d), and its weights.

    The weights stand in one vector, in the order the encoder lists its parameters.
    """

    encoder: str
    entity_rows: npt.NDArray[np.float32]
    relation_rows: npt.NDArray[np.float32]
    encoder_weights: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        for name, shape in (
            ("entity_rows", (None, None)),
            ("relation_rows", (None, self.entity_rows.shape[1])),
            ("encoder_weights", (None,)),
        ):
            object.__setattr__(self, name, frozen(getattr(self, name), np.float32, shape, name))
        if len(self.relation_rows) % 2:
            raise ArtifactError(f"{len(self.relation_rows)} relation rows; each relation has two, forward and inverse")


@dataclass(frozen=True, eq=False)
class EntityEmbeddings:
    """One vector per entity, (n, d) float32; only the rows that are `covered` (n,) mean anything."""

    vectors: npt.NDArray[np.float32]
    covered: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        object.__setattr__(self, "vectors", frozen(self.vectors, np.float32, (None, None), "vectors"))
        object.__setattr__(self, "covered", frozen(self.covered, np.bool_, (len(self.vectors),), "covered"))
