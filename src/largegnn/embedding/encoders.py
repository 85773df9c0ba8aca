"""The protocol of encoders: a graph neural network from rows of entities and relations to one output for each node.

The table `ENCODERS` (`largegnn.parts`) has them by name; an entry takes the dimension of the rows and returns an
encoder. Entity and relation rows are inputs of an encoder, not its parameters: one encoder is shared by all subgraphs,
and encodes the whole graph as it encodes a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from largegnn.artifacts import FloatArray
from largegnn.embedding.layerwise import Layers, Rows
from largegnn.embedding.structure import GraphStructure

__all__ = ["Encoder", "EncoderFactory", "LayerwiseEncoder"]


class Encoder(Protocol):
    """What training and integration need of an encoder, an `nn.Module`."""

    output_dim: int

    def __call__(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        """Outputs (n, output_dim) from rows (n, d) and (2R, d); with `nodes` (k,) those of these nodes only."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights, always in the same order."""
        ...

    def to(self, device: torch.device) -> Self:
        """The encoder with its weights on a device."""
        ...

    def eval(self) -> Self:
        """The encoder as it is used after training."""
        ...


@runtime_checkable
class LayerwiseEncoder(Protocol):
    """An encoder of graphs too large for one piece; any other is given the whole graph at once."""

    def encode_by_layers(self, entity_rows: Rows, relation_rows: Tensor, layers: Layers, outputs: FloatArray) -> None:
        """Write all outputs into `outputs` (n, output_dim), each layer range by range.

        The structure of `layers` is in main memory, and so may `entity_rows` be; the device is that of `relation_rows`.
        """
        ...


EncoderFactory = Callable[[int], Encoder]
