"""How to train, as plain values: what the settings of a run become where only torch is installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from largegnn.errors import ArtifactError

__all__ = ["TrainOptions"]


@dataclass(frozen=True)
class TrainOptions:
    """Every choice of a training run; `negatives` 0 takes all nodes of the subgraph, weights of 0 switch a loss off."""

    encoder: str = "dual_amn"
    dim: int = 64
    epochs: int = 30
    batch_size: int = 512
    negatives: int = 2_000
    learning_rate: float = 0.005
    gamma: float = 1.0
    scale: float = 30.0
    shift: float = 10.0
    dropout: float = 0.3
    reconstruction_weight: float = 20.0
    reconstruction_dropout: float = 0.3
    cross_weight: float = 0.6
    cross_gamma: float = 0.0
    cross_negatives: int = 1_000
    refresh_every: int = 0
    validate_every: int = 5
    checkpoint_seconds: float = 60.0
    max_memory_gb: float = 4.0
    precision: Literal["float32", "tf32"] = "float32"

    def __post_init__(self) -> None:
        lowest = {"dim": 1, "epochs": 0, "batch_size": 1, "validate_every": 1}
        lowest |= dict.fromkeys(("negatives", "cross_negatives", "refresh_every", "checkpoint_seconds"), 0)
        lowest |= dict.fromkeys(("learning_rate", "reconstruction_weight", "cross_weight", "max_memory_gb"), 0)
        for name, least in lowest.items():
            # Turned round, so that NaN is refused too.
            if not getattr(self, name) >= least:
                raise ArtifactError(f"{name} is {getattr(self, name)}, must be {least} or more")
        for name in ("dropout", "reconstruction_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ArtifactError(f"{name} is {getattr(self, name)}, must be a share below 1")

    @property
    def loss_chunk_bytes(self) -> int:
        """Bytes of (batch x nodes) values alive at once in a loss: a small share of the memory allowed."""
        return max(1 << 22, min(1 << 30, int(self.max_memory_gb * (1 << 30) / 64)))

    @property
    def cache_bytes(self) -> int:
        """Bytes of subgraph structures kept between epochs instead of being built anew."""
        return int(self.max_memory_gb * (1 << 30) / 8)
