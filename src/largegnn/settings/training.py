"""How the encoder is trained, how every entity gets one vector, and self-training rounds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from largegnn.settings.section import Positive, Section, Share, Weight

__all__ = ["IntegrateSettings", "RoundSettings", "TrainSettings"]


class TrainSettings(Section):
    """How the encoder is trained over the subgraphs (stage `train`)."""

    encoder: Literal["dual_amn", "gcn"] = Field("dual_amn", description="the graph neural network")
    dim: Positive = Field(64, description="numbers in an input row; 128 is a little better and takes twice the time")
    epochs: Positive = Field(25, description="passes over the subgraphs")
    batch_size: Positive = Field(512, description="seeds in a step")
    negatives: int = Field(2_000, ge=0, description="nodes of the subgraph a seed is pushed away from; 0 = all")
    learning_rate: float = Field(0.005, gt=0, description="of RMSprop, at the start; it falls along a cosine")
    gamma: float = Field(1.0, ge=0, description="margin of the alignment loss")
    scale: float = Field(30.0, gt=0, description="how much harder negatives weigh more (lambda)")
    shift: float = Field(10.0, ge=0, description="shift of the alignment loss (tau)")
    dropout: Share = Field(0.3, description="share of an output hidden in training")
    reconstruction_weight: Weight = Field(20.0, description="weight of entity reconstruction (ER); 0 = off")
    reconstruction_dropout: Share = Field(0.3, description="share of a row hidden in reconstruction")
    cross_weight: Weight = Field(0.6, description="weight of cross-subgraph negatives (CNS); 0 = off")
    cross_gamma: float = Field(0.0, ge=0, description="margin of the cross-subgraph negatives")
    cross_negatives: Positive = Field(1_000, description="entities outside the subgraph drawn for a step")
    refresh_every: int = Field(
        2, ge=0, description="epochs between fresh divisions, made beside the training; 0 = never"
    )
    validate_every: Positive = Field(5, description="epochs between looks at the valid links, which choose the epoch")
    checkpoint_seconds: Weight = Field(60.0, description="seconds between checkpoints, at the end of an epoch")
    max_memory_gb: float = Field(4.0, gt=0, description="memory that sizes of chunks and caches follow from")
    precision: Literal["float32", "tf32"] = Field(
        "float32", description="of matrix products on a GPU; tf32 is faster, and made no difference at 15K"
    )


class IntegrateSettings(Section):
    """How every entity gets one vector (stage `integrate`)."""

    method: Literal["full", "average"] = Field(
        "full",
        description="full = encode the whole graph in chunks; average = mean over the subgraphs, after the paper",
    )


class RoundSettings(Section):
    """Whether confident pairs become seeds of further training (stage `rounds`)."""

    number: int = Field(0, ge=0, le=20, description="rounds of training on with confident pairs as seeds; 0 = none")
    epochs: Positive = Field(10, description="epochs of each round")
    min_confidence: float = Field(0.5, ge=0, le=1, description="confidence from which a pair becomes a seed")
