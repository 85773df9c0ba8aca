"""How the encoder is trained, how every entity gets one vector, and self-training rounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from largegnn.seams.tables import ENCODERS, LOSSES
from largegnn.settings.parts import PartOf, WeightsOf
from largegnn.settings.section import MemoryGB, Section, Share, Weight

__all__ = ["DEFAULT_LOSSES", "IntegrateSettings", "RoundSettings", "TrainSettings"]

# Paper: reconstruction is ER, cross_subgraph is CNS.
DEFAULT_LOSSES = {"alignment": 1.0, "reconstruction": 20.0, "cross_subgraph": 0.6}
Epochs = Annotated[int, Field(ge=1, le=10_000)]
Nodes = Annotated[int, Field(ge=0, le=1_000_000)]


class TrainSettings(Section):
    """How the encoder is trained over the subgraphs (stage `train`)."""

    encoder: Annotated[str, PartOf(ENCODERS)] = Field("dual_amn", description="The graph neural network.")
    dim: int = Field(
        64, ge=1, le=4_096, description="Dimension of an input vector. 128 is a little better and takes twice the time."
    )
    epochs: Epochs = Field(25, description="Passes over the subgraphs.")
    batch_size: int = Field(512, ge=1, le=1_000_000, description="Seeds in a training step.")
    negatives: Nodes = Field(2_000, description="Negatives of a seed, drawn from its subgraph. 0: all nodes.")
    learning_rate: float = Field(0.005, ge=1e-8, le=1, description="Learning rate of RMSprop at the start.")
    schedule: Literal["cosine", "constant"] = Field(
        "cosine", description="How the learning rate goes on. cosine: it falls to 0 along a cosine. constant: it stays."
    )
    losses: Annotated[Mapping[str, Weight], WeightsOf(LOSSES, DEFAULT_LOSSES, 10_000)] = Field(
        DEFAULT_LOSSES, description="Weight of each loss. 0: off. A loss that is not named keeps its default."
    )
    gamma: float = Field(1.0, ge=0, le=100, description="Margin of the alignment loss.")
    scale: float = Field(30.0, ge=0.01, le=1_000, description="How much more hard negatives count (lambda).")
    shift: float = Field(10.0, ge=0, le=1_000, description="Shift of the alignment loss (tau).")
    dropout: Share = Field(0.3, description="Dropout of the encoder's output.")
    reconstruction_dropout: Share = Field(0.3, description="Dropout of the input vector in reconstruction.")
    cross_gamma: float = Field(0.0, ge=0, le=100, description="Margin of the cross-subgraph loss.")
    cross_negatives: int = Field(
        1_000, ge=1, le=1_000_000, description="Entities outside the subgraph drawn in a training step."
    )
    repartition_every: int = Field(
        2, ge=0, le=10_000, description="Epochs between repartitionings, which run beside the training. 0: never."
    )
    members: int = Field(
        1,
        ge=1,
        le=20,
        description="Models trained one after the other, each with its own divisions; their cosines are added.",
    )
    validate_every: Epochs = Field(
        5, description="Epochs between evaluations on the valid links. The best of these epochs is kept."
    )
    checkpoint_seconds: float = Field(
        60.0, ge=0, le=86_400, description="Least seconds between checkpoints. They are written at the end of an epoch."
    )
    max_memory_gb: MemoryGB = Field(4.0, description="Memory in GB for chunks and caches.")
    precision: Literal["float32", "tf32"] = Field(
        "float32", description="Precision of matrix products on a GPU. tf32 is faster."
    )
    step: Literal["auto", "plain"] = Field(
        "auto", description="Training step on a GPU. auto: captured and fused where possible. plain: as on a CPU."
    )
    tables: Literal["auto", "device", "host", "file"] = Field(
        "auto",
        description="Where entity vectors and optimiser state lie. file: in the run folder. auto: where there is room.",
    )


class IntegrateSettings(Section):
    """How every entity gets one vector (stage `integrate`)."""

    method: Literal["full", "average", "plain_average"] = Field(
        "full",
        description="full: whole graph encoded. average: mean over subgraphs by neighbours. plain_average: all alike.",
    )


class RoundSettings(Section):
    """Self-training: confident pairs become pseudo-seeds of further training (stage `rounds`)."""

    number: int = Field(0, ge=0, le=20, description="Number of self-training rounds. 0: none.")
    epochs: Epochs = Field(10, description="Epochs of a self-training round.")
    min_confidence: float = Field(0.5, ge=0, le=1, description="Least confidence of a pseudo-seed.")
