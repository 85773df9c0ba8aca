"""From a trained encoder to one vector for each entity (section 5.4 of the paper).

In: the encoder, the global tables of rows, and the subgraphs or the whole graph. Out: `EntityEmbeddings`, unit vectors
with `encode_full`, weighted means of unit vectors with `average_subgraphs`; compare them by cosine.
The idea: `average_subgraphs` is the paper's: an entity's vector is a mean over the subgraphs that hold it, each counted
by the neighbours of the entity that it holds, and an entity in none is not covered. `encode_full` uses that all
parameters are global: the encoder runs over the whole graph, layer by layer, and no triple is lost.
Cost: one forward pass over what is encoded. Memory: the result, which may be a memory map, and one subgraph or chunk.

# Departs: `encode_full` is not in the paper, and its mean counts every subgraph alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from largegnn.artifacts import EntityEmbeddings, IntArray
from largegnn.embedding import layerwise
from largegnn.embedding.structure import GraphStructure

__all__ = ["Encoder", "average_subgraphs", "encode_full"]

_WITHOUT_NEIGHBORS = np.float32(0.01)  # so that an entity without neighbours in any subgraph has a vector too


class Encoder(Protocol):
    """What training and integration need of an encoder."""

    output_dim: int

    def __call__(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        """Outputs (n, output_dim), or those of `nodes` only."""
        ...

    def encode_in_chunks(
        self,
        entity_rows: Tensor,
        relation_rows: Tensor,
        structure: GraphStructure,
        outputs: npt.NDArray[np.float32],
        chunk_bytes: int,
    ) -> None:
        """Write all outputs into `outputs`, with bounded memory."""
        ...


@torch.no_grad()
def encode_full(
    encoder: Encoder,
    entity_rows: Tensor,
    relation_rows: Tensor,
    structure: GraphStructure,
    *,
    chunk_bytes: int = 2**28,
    outputs: npt.NDArray[np.float32] | None = None,
) -> EntityEmbeddings:
    """Encode the whole graph where `relation_rows` (2R, d) are; `entity_rows` (n, d) may stay in main memory."""
    if outputs is None:
        outputs = np.empty((structure.num_nodes, encoder.output_dim), dtype=np.float32)
    encoder.encode_in_chunks(entity_rows, relation_rows, structure.to("cpu"), outputs, chunk_bytes)
    layerwise.transform_rows(outputs, lambda rows: functional.normalize(rows, dim=1), relation_rows.device, chunk_bytes)
    return EntityEmbeddings(outputs, np.ones(len(outputs), dtype=bool))


@torch.no_grad()
def average_subgraphs(
    encoder: Encoder,
    entity_rows: Tensor,
    relation_rows: Tensor,
    parts: Iterable[tuple[IntArray, GraphStructure]],
    *,
    outputs: npt.NDArray[np.float32] | None = None,
) -> EntityEmbeddings:
    """Mean of each entity's unit vectors over `parts`: the entities of a subgraph, distinct, and its structure.

    A subgraph counts by the number of neighbours it keeps of the entity: one that has it at the border, as a landmark,
    knows little of it.
    """
    if outputs is None:
        outputs = np.empty((len(entity_rows), encoder.output_dim), dtype=np.float32)
    outputs.fill(0.0)
    weights = np.zeros(len(outputs), dtype=np.float32)
    for entities, structure in parts:
        ids = torch.from_numpy(entities.astype(np.int64)).to(entity_rows.device)
        rows = entity_rows.index_select(0, ids).to(relation_rows.device)
        vectors = functional.normalize(encoder(rows, relation_rows, structure.to(relation_rows.device)), dim=1)
        weight = np.diff(structure.pair_ptr.cpu().numpy()).astype(np.float32) + _WITHOUT_NEIGHBORS
        outputs[entities] += vectors.cpu().numpy() * weight[:, None]
        weights[entities] += weight
    covered = weights > 0
    weights[~covered] = 1.0
    outputs /= weights[:, None]
    return EntityEmbeddings(outputs, covered)
