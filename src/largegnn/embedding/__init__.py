"""From subgraphs to one vector for each entity."""

from __future__ import annotations

from largegnn.embedding.encoders import ENCODERS
from largegnn.embedding.integrate import Encoder, average_subgraphs, encode_full
from largegnn.embedding.losses import alignment_loss, cross_negative_loss, reconstruction_loss
from largegnn.embedding.structure import GraphStructure, build_structure

__all__ = [
    "ENCODERS",
    "Encoder",
    "GraphStructure",
    "alignment_loss",
    "average_subgraphs",
    "build_structure",
    "cross_negative_loss",
    "encode_full",
    "reconstruction_loss",
]
