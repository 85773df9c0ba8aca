"""From a trained encoder to one vector for each entity (section 5.4 of the paper).

In: the encoder, the global tables of rows, and the subgraphs or the whole graph. Out: `EntityEmbeddings`, unit vectors
with `encode_full`, means of unit vectors with `average_subgraphs`; compare them by cosine.
The idea: `average_subgraphs` is the paper's: an entity's vector is a mean over the subgraphs that hold it, all alike or
each counted by the neighbours of the entity that it holds; an entity in none is not covered. `encode_full` uses that
all parameters are global: the encoder runs over the whole graph, layer by layer, and no triple is lost.
Cost: one forward pass over what is encoded. Memory: the result, which may be a memory map, and one subgraph or chunk.

# Paper: the mean with every subgraph alike (`by_neighbors=False`, `integrate.method = "plain_average"`).
# Departs: `encode_full` and the mean that counts neighbours are not in the paper.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from largegnn.artifacts import EntityEmbeddings, FloatArray, IntArray, Mask
from largegnn.embedding import layerwise
from largegnn.embedding.encoders import ChunkedEncoder, Encoder
from largegnn.embedding.feeding import SubgraphFeed
from largegnn.embedding.structure import GraphStructure
from largegnn.machine.progress import progress

__all__ = ["average_subgraphs", "encode_full"]

_WITHOUT_NEIGHBORS = np.float32(0.01)  # so that an entity without neighbours in any subgraph has a vector too


@torch.no_grad()
def encode_full(
    encoder: Encoder,
    entity_rows: Tensor,
    relation_rows: Tensor,
    structure: GraphStructure,
    *,
    chunk_bytes: int = 2**28,
    outputs: FloatArray | None = None,
) -> EntityEmbeddings:
    """Encode the whole graph where `relation_rows` (2R, d) are; `entity_rows` (n, d) may stay in main memory."""
    device = relation_rows.device
    if outputs is None:
        outputs = np.empty((structure.num_nodes, encoder.output_dim), dtype=np.float32)
    if isinstance(encoder, ChunkedEncoder):
        encoder.encode_in_chunks(entity_rows, relation_rows, structure.to("cpu"), outputs, chunk_bytes)
    else:
        outputs[:] = encoder(entity_rows.to(device), relation_rows, structure.to(device)).cpu().numpy()
    layerwise.transform_rows(outputs, lambda rows: functional.normalize(rows, dim=1), device, chunk_bytes)
    return EntityEmbeddings(outputs, np.ones(len(outputs), dtype=bool))


@torch.no_grad()
def average_subgraphs(
    encoder: Encoder,
    entity_rows: Tensor,
    relation_rows: Tensor,
    feed: SubgraphFeed,
    *,
    entities: IntArray | None = None,
    by_neighbors: bool = True,
    outputs: FloatArray | None = None,
) -> EntityEmbeddings:
    """Mean of each entity's unit vectors over the subgraphs, encoded where `relation_rows` (2R, d) are.

    A subgraph counts by the number of neighbours it keeps of the entity: one that has it at the border, as a landmark,
    knows little of it. Without `by_neighbors` every subgraph counts alike. With `entities` (k,), distinct, there are k
    vectors, theirs, and only subgraphs that hold one of them are encoded.
    """
    row_of_entity = np.arange(len(entity_rows))
    if entities is not None:
        row_of_entity = np.full(len(entity_rows), -1)
        row_of_entity[entities] = np.arange(len(entities))
    if outputs is None:
        num_rows = len(entity_rows) if entities is None else len(entities)
        outputs = np.empty((num_rows, encoder.output_dim), dtype=np.float32)
    outputs.fill(0.0)
    weights = np.zeros(len(outputs), dtype=np.float32)
    indices = _holders(feed, row_of_entity >= 0)
    device = relation_rows.device
    with progress("encode", len(indices), "subgraphs") as work:
        for ready in feed.in_order(indices):
            rows = row_of_entity[ready.entities.cpu().numpy()]
            nodes = np.flatnonzero(rows >= 0)
            wanted = None if len(nodes) == len(rows) else torch.from_numpy(nodes).to(device)
            structure = ready.structure.to(device)
            inputs = entity_rows.index_select(0, ready.entities.to(entity_rows.device)).to(device)
            vectors = functional.normalize(encoder(inputs, relation_rows, structure, wanted), dim=1)
            weight = np.ones(len(rows), dtype=np.float32)
            if by_neighbors:
                weight = np.diff(structure.pair_ptr.cpu().numpy()).astype(np.float32) + _WITHOUT_NEIGHBORS
            outputs[rows[nodes]] += vectors.cpu().numpy() * weight[nodes, None]
            weights[rows[nodes]] += weight[nodes]
            work.advance()
    covered = weights > 0
    weights[~covered] = 1.0
    outputs /= weights[:, None]
    return EntityEmbeddings(outputs, covered)


def _holders(feed: SubgraphFeed, is_wanted: Mask) -> list[int]:
    """The subgraphs that hold a wanted entity, from a mask (n,)."""
    num_wanted = np.concatenate([[0], np.cumsum(is_wanted[feed.subgraphs.entities])])[feed.subgraphs.entity_ptr]
    return [int(index) for index in np.flatnonzero(np.diff(num_wanted))]
