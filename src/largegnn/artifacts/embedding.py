"""Define the results of training: parameters, a vector for each entity, and records of epochs, rounds, cluster use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from largegnn.artifacts.arrays import freeze_fields
from largegnn.errors import ArtifactError

__all__ = ["ClusterUse", "EntityEmbeddings", "EpochRecord", "RoundRecord", "TrainedModel"]


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """The parameters of a trained encoder: rows of entities (n, d) and relations (2R, d), and the encoder's weights.

    The weights are one vector, in the order in which the encoder lists its parameters. The rows of an ensemble of m
    `members` are concatenated by columns, (n, m d) and (2R, m d), and the weights of its members follow each other.
    """

    encoder: str
    entity_rows: npt.NDArray[np.float32]
    relation_rows: npt.NDArray[np.float32]
    encoder_weights: npt.NDArray[np.float32]
    members: int = 1

    def __post_init__(self) -> None:
        freeze_fields(self, ["entity_rows"], np.float32, (None, None))
        freeze_fields(self, ["relation_rows"], np.float32, (None, self.entity_rows.shape[1]))
        freeze_fields(self, ["encoder_weights"], np.float32)
        if len(self.relation_rows) % 2:
            raise ArtifactError(f"{len(self.relation_rows)} relation rows; each relation has two, forward and inverse")
        if self.members < 1 or self.entity_rows.shape[1] % self.members or len(self.encoder_weights) % self.members:
            raise ArtifactError(
                f"rows of {self.entity_rows.shape[1]} numbers cannot be divided among {self.members} members"
            )

    def member(self, index: int) -> TrainedModel:
        """One member of an ensemble as a model of its own."""
        if self.members == 1 and index == 0:
            return self
        dim, num_weights = self.entity_rows.shape[1] // self.members, len(self.encoder_weights) // self.members
        columns = slice(index * dim, (index + 1) * dim)
        weights = self.encoder_weights[index * num_weights : (index + 1) * num_weights]
        return TrainedModel(self.encoder, self.entity_rows[:, columns], self.relation_rows[:, columns], weights)

    @classmethod
    def joined(cls, members: Iterable[TrainedModel], num_members: int) -> TrainedModel:
        """Make an ensemble of `num_members` members; only one of them is in memory beside the result at a time."""
        if num_members == 1:
            (only,) = members
            return only
        encoder, tables = "", list[npt.NDArray[np.float32]]()
        for index, member in enumerate(members):
            parts = (member.entity_rows, member.relation_rows, member.encoder_weights[None])
            if not tables:
                encoder = member.encoder
                tables = [np.empty((len(part), num_members * part.shape[1]), dtype=np.float32) for part in parts]
            for table, part in zip(tables, parts, strict=True):
                table[:, index * part.shape[1] : (index + 1) * part.shape[1]] = part
        return cls(encoder, tables[0], tables[1], tables[2][0], num_members)


@dataclass(frozen=True, eq=False)
class EntityEmbeddings:
    """One vector per entity, (n, d) float32; only the rows of `covered` (n,) entities are meaningful."""

    vectors: npt.NDArray[np.float32]
    covered: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        freeze_fields(self, ["vectors"], np.float32, (None, None))
        freeze_fields(self, ["covered"], np.bool_, (len(self.vectors),))

    @classmethod
    def none(cls, num_entities: int) -> EntityEmbeddings:
        """Embeddings in which no entity is covered, for runs without training."""
        return cls(np.zeros((num_entities, 1), dtype=np.float32), np.zeros(num_entities, dtype=bool))


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of a member of the ensemble: the mean loss of its steps, H@1 on the valid links (if measured), time."""

    epoch: int
    loss: float
    valid_hits: float | None
    seconds: float
    member: int = 0


@dataclass(frozen=True)
class RoundRecord:
    """One self-training round: the number of its pseudo-seeds, the share of them that is right, and its H@1.

    `share_right` is a share of the `num_judged` pseudo-seeds that touch a valid link. `share_right` and `valid_hits`
    are None if there are no valid links; `kept` is False if the round made the result worse and was undone.
    """

    round: int
    num_pseudo_seeds: int
    num_judged: int
    share_right: float | None
    valid_hits: float | None
    kept: bool


@dataclass(frozen=True)
class ClusterUse:
    """The use that training made of a cluster: the maximum numbers of nodes and workers, visits, and bytes sent.

    The staleness of a visit is the number of other visits that returned their rows while it was computed: its mean and
    its maximum. `shared_rows` counts the rows that another visit had changed in the meantime. `visit_seconds` and
    `visit_cpu_seconds` are summed over all workers, without waiting.
    """

    num_nodes: int
    num_workers: int
    num_visits: int
    bytes_sent: int
    mean_staleness: float
    most_stale: int
    shared_rows: int
    visit_seconds: float
    visit_cpu_seconds: float
    peak_worker_mb: float

    @classmethod
    def joined(cls, uses: Sequence[ClusterUse]) -> ClusterUse:
        """The use of a cluster by several trainings, one after another."""
        summed = ("num_visits", "bytes_sent", "shared_rows", "visit_seconds", "visit_cpu_seconds")
        maxima = ("num_nodes", "num_workers", "most_stale", "peak_worker_mb")
        staleness = sum(use.mean_staleness * use.num_visits for use in uses)
        values = {name: sum(getattr(use, name) for use in uses) for name in summed}
        values |= {name: max(getattr(use, name) for use in uses) for name in maxima}
        return cls(**values, mean_staleness=staleness / max(values["num_visits"], 1))
