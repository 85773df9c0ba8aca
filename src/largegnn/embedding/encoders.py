"""Define the protocol of encoders: graph neural networks from entity and relation rows to an output for each node.

The table `largegnn.parts.ENCODERS` lists encoders by name: an entry is a function from the dimension of the rows to an
encoder. Entity and relation rows are inputs of an encoder, not its parameters, so all subgraphs share one encoder, and
the same encoder can encode the whole graph.
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
    """The methods of an encoder that training and integration call; usually an `nn.Module`."""

    output_dim: int

    def __call__(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        """Outputs (n, output_dim) from rows (n, d) and (2R, d); with `nodes` (k,) only the outputs of these nodes."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights, always in the same order."""
        ...

    def to(self, device: torch.device) -> Self:
        """Move the weights to a device, and return the encoder."""
        ...

    def eval(self) -> Self:
        """Switch to evaluation mode, and return the encoder."""
        ...


@runtime_checkable
class LayerwiseEncoder(Protocol):
    """An encoder that can encode a large graph layer by layer; other encoders encode the whole graph at once."""

    def encode_by_layers(self, entity_rows: Rows, relation_rows: Tensor, layers: Layers, outputs: FloatArray) -> None:
        """Write all outputs into `outputs` (n, output_dim), layer by layer, a range of nodes at a time.

        The structure of `layers` is in main memory; `entity_rows` may be there too. The encoder computes on the device
        of `relation_rows`.
        """
        ...


EncoderFactory = Callable[[int], Encoder]
