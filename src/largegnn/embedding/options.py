"""The options of a training run as plain values: the settings, for a machine where only torch is installed.

The defaults are in the settings and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from largegnn.errors import ArtifactError, InputError
from largegnn.machine.precision import Precision

__all__ = ["TrainOptions"]


@dataclass(frozen=True)
class TrainOptions:
    """Every choice of a training run.

    `losses` has the weight of each of `LOSSES` by its name; one of weight 0 is not computed. `negatives` 0 takes
    all nodes of the subgraph; `repartition_every` 0 keeps the first division. `step` "plain" captures none on a GPU;
    `tables` is the place of the entity table and the state of its optimiser.
    """

    encoder: str
    dim: int
    epochs: int
    batch_size: int
    negatives: int
    learning_rate: float
    schedule: Literal["cosine", "constant"]
    losses: Mapping[str, float]
    gamma: float
    scale: float
    shift: float
    dropout: float
    reconstruction_dropout: float
    cross_gamma: float
    cross_negatives: int
    repartition_every: int
    validate_every: int
    checkpoint_seconds: float
    max_memory_gb: float
    precision: Precision
    step: Literal["auto", "plain"]
    tables: Literal["auto", "device", "host", "file"]

    def __post_init__(self) -> None:
        lowest = {"dim": 1, "epochs": 0, "batch_size": 1, "validate_every": 1}
        lowest |= dict.fromkeys(("negatives", "cross_negatives", "repartition_every", "checkpoint_seconds"), 0)
        lowest |= dict.fromkeys(("learning_rate", "max_memory_gb"), 0)
        for name, least in lowest.items():
            # Not `<`: NaN is refused, too.
            if not getattr(self, name) >= least:
                raise ArtifactError(f"{name} is {getattr(self, name)}, must be {least} or more")
        for name in ("dropout", "reconstruction_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ArtifactError(f"{name} is {getattr(self, name)}, must be a share below 1")
        object.__setattr__(self, "losses", dict(self.losses))
        for name, weight in self.losses.items():
            if not 0 <= weight < math.inf:
                raise ArtifactError(f"the weight of the loss {name} is {weight}, must be 0 or more")
        if not any(self.losses.values()):
            raise InputError(
                "no loss has a weight, so there is nothing to train on",
                expected="a weight above 0 for one of train.losses",
                fix="set train.losses.alignment to 1",
            )

    @property
    def memory_bytes(self) -> int:
        """Bytes that chunks and caches may take."""
        return int(self.max_memory_gb * (1 << 30))

    @property
    def loss_chunk_bytes(self) -> int:
        """Bytes of (batch x nodes) values alive at once in a loss: a small share of the memory allowed."""
        return max(1 << 22, min(1 << 30, int(self.max_memory_gb * (1 << 30) / 64)))

    @property
    def cache_bytes(self) -> int:
        """Bytes of subgraph structures kept between epochs, which need not be built again."""
        return int(self.max_memory_gb * (1 << 30) / 8)
