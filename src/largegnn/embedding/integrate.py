"""Compute one vector for each entity from a trained encoder (section 5.4 of the paper).

In: the encoder, rows of entities and relations, the subgraphs or the triples of the whole graph. Out: unit vectors of
all entities, or of some; compare them by cosine.
The idea: all parameters are global, so `WholeGraph` runs the encoder over the whole graph and no triple is lost: on a
GPU with room in a few launches, otherwise layer by layer (`layerwise`). `average_subgraphs` is the paper's: an entity's
vector is the mean over the subgraphs that contain it; an entity in none is not covered. During training the vectors of
the valid links are computed in the same way (`valid_vectors`), so that an epoch is chosen by the vectors it would give;
the structure of the graph or of its subgraphs is built once.
Cost: one forward pass over what is encoded; a second for each million entities on a GPU. Memory: the result, which may
be mapped from a file, and one subgraph, or the chunks of a layer.

# Paper: the mean with every subgraph alike (`by_neighbors=False`, `integrate.method = "plain_average"`).
# Departs: the whole graph and the mean weighted by neighbours are not in the paper.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, FloatArray, IntArray, SubgraphSet
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.encoders import Encoder, LayerwiseEncoder
from largegnn.embedding.feeding import Feed, prepare_subgraph
from largegnn.embedding.fused import has_kernels
from largegnn.embedding.fused_encoder import hidden_layers, outputs_of
from largegnn.embedding.layerwise import Layers, Rows, as_tensor
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.pair_graph import PairGraph, build_pair_graph
from largegnn.embedding.structure import GraphStructure, build_structure
from largegnn.machine.progress import progress

__all__ = ["WholeGraph", "average_subgraphs", "encode_full", "new_vectors", "valid_vectors"]

_NODES_AT_ONCE = 1 << 16
_ROWS_ALIVE = 6  # of each entity in the first two layers: input, two layers of two blocks, and some more
_PAIR_BYTES, _BUILD_BYTES = 60, 200  # for each triple: what a graph keeps, and what it takes to build it
_SHARE_OF_GPU = 0.5
_WORTH_SHARING = 500_000  # entities: fewer take one core some ten seconds
_WITHOUT_NEIGHBORS = np.float32(0.01)  # so that an entity without neighbours in any subgraph has a vector too


class WholeGraph:
    """A graph of n entities to be encoded as a whole, once or several times."""

    def __init__(self, num_entities: int, triples: IntArray, num_relations: int, memory_bytes: int) -> None:
        self._num_entities, self._triples, self._num_relations = num_entities, triples, num_relations
        self._memory_bytes = memory_bytes
        self._pairs: PairGraph | None = None
        self._structure: GraphStructure | None = None

    @torch.no_grad()
    def encode(
        self,
        encoder: Encoder,
        entity_rows: Rows,
        relation_rows: Tensor,
        *,
        nodes: IntArray | None = None,
        outputs: FloatArray | None = None,
    ) -> FloatArray:
        """Unit vectors (n, D) of all entities, in `outputs` if given, or only those (k, D) of `nodes` (k,).

        They are computed where `relation_rows` (2R, d) are; `entity_rows` (n, d) may be in main memory.
        """
        device = relation_rows.device
        if type(encoder) is DualAMN and self._fits_fused(entity_rows.shape[1], device):
            return self._by_kernels(encoder, as_tensor(entity_rows).to(device), relation_rows, nodes, outputs)
        if self._structure is None:
            self._structure = build_structure(self._num_entities, self._triples, self._num_relations)
        # A GPU here is faster than the processors of a cluster.
        send = self._num_entities >= _WORTH_SHARING and device.type == "cpu"
        if outputs is None:
            outputs = new_vectors(self._num_entities, encoder.output_dim, self._memory_bytes)
        chunk_bytes = self._memory_bytes // 16
        encode_full(
            encoder, entity_rows, relation_rows, self._structure, chunk_bytes=chunk_bytes, outputs=outputs, send=send
        )
        return outputs if nodes is None else outputs[nodes]

    def _by_kernels(
        self, encoder: DualAMN, rows: Tensor, relation_rows: Tensor, nodes: IntArray | None, outputs: FloatArray | None
    ) -> FloatArray:
        """All nodes on the device: the last layer and what follows for some of them at a time."""
        device = relation_rows.device
        if self._pairs is None:
            triples = torch.tensor(self._triples, device=device)
            self._pairs = build_pair_graph(self._num_entities, triples, self._num_relations)
        nothing = torch.zeros(1, dtype=torch.int64, device=device)
        layers = hidden_layers(encoder, rows, relation_rows, self._pairs, 0.0, nothing)[0]
        wanted = torch.arange(self._num_entities) if nodes is None else torch.from_numpy(nodes)
        if outputs is None:
            outputs = new_vectors(len(wanted), encoder.output_dim, self._memory_bytes)
        with progress("encode", len(wanted), "nodes") as work:
            for start in range(0, len(wanted), _NODES_AT_ONCE):
                some = wanted[start : start + _NODES_AT_ONCE].to(device)
                vectors = functional.normalize(outputs_of(encoder, layers, self._pairs, some), dim=1)
                outputs[start : start + len(some)] = vectors.cpu().numpy()
                work.advance(len(some))
        return outputs

    def _fits_fused(self, dim: int, device: torch.device) -> bool:
        """Whether the first two layers have room on a GPU: one and a half times the memory allowed."""
        if device.type != "cuda" or not has_kernels(device):
            return False
        num_triples = len(self._triples)
        layers = _PAIR_BYTES * num_triples + 4 * _ROWS_ALIVE * dim * self._num_entities
        total = torch.cuda.get_device_properties(device).total_memory
        return max(layers, _BUILD_BYTES * num_triples) <= min(1.5 * self._memory_bytes, _SHARE_OF_GPU * total)


@torch.no_grad()
def encode_full(
    encoder: Encoder,
    entity_rows: Rows,
    relation_rows: Tensor,
    structure: GraphStructure,
    *,
    chunk_bytes: int = 2**28,
    outputs: FloatArray | None = None,
    send: bool = False,
) -> EntityEmbeddings:
    """Unit vectors (n, D) of a graph with this structure, layer by layer where the encoder can; `send`: see `Layers`.

    `relation_rows` (2R, d) are on the device that computes; `entity_rows` (n, d) may be in main memory.
    """
    device = relation_rows.device
    if outputs is None:
        outputs = np.empty((structure.num_nodes, encoder.output_dim), dtype=np.float32)
    layers = Layers(structure.to("cpu"), device, chunk_bytes, send)
    if isinstance(encoder, LayerwiseEncoder):
        encoder.encode_by_layers(entity_rows, relation_rows, layers, outputs)
    else:
        outputs[:] = encoder(as_tensor(entity_rows).to(device), relation_rows, structure.to(device)).cpu().numpy()
    layers.transform(outputs, functional.normalize, send=False)
    return EntityEmbeddings(outputs, np.ones(len(outputs), dtype=bool))


@torch.no_grad()
def average_subgraphs(
    encoder: Encoder,
    entity_rows: Tensor,
    relation_rows: Tensor,
    feed: Feed[GraphStructure],
    *,
    by_neighbors: bool = True,
    outputs: FloatArray | None = None,
) -> EntityEmbeddings:
    """Mean of each entity's unit vectors over the subgraphs, encoded where `relation_rows` (2R, d) are.

    A subgraph counts by the number of neighbours of the entity in it: one with the entity at its border, as a landmark,
    has few of its triples. Without `by_neighbors` every subgraph counts alike.
    """
    if outputs is None:
        outputs = np.empty((len(entity_rows), encoder.output_dim), dtype=np.float32)
    outputs.fill(0.0)
    weights = np.zeros(len(outputs), dtype=np.float32)
    device = relation_rows.device
    indices = np.flatnonzero(np.diff(feed.subgraphs.entity_ptr)).tolist()
    with progress("encode", len(indices), "subgraphs") as work:
        for ready in feed.in_order(indices):
            entities = ready.entities.cpu().numpy()
            inputs = entity_rows.index_select(0, ready.entities.to(entity_rows.device)).to(device)
            vectors = functional.normalize(encoder(inputs, relation_rows, ready.graph), dim=1)
            weight = np.ones(len(entities), dtype=np.float32)
            if by_neighbors:
                weight = np.diff(ready.graph.pair_ptr.cpu().numpy()).astype(np.float32) + _WITHOUT_NEIGHBORS
            outputs[entities] += vectors.cpu().numpy() * weight[:, None]
            weights[entities] += weight
            work.advance()
    covered = weights > 0
    weights[~covered] = 1.0
    outputs /= weights[:, None]
    return EntityEmbeddings(outputs, covered)


def new_vectors(num_rows: int, dim: int, memory_bytes: int, file: Path | None = None) -> FloatArray:
    """An array (num_rows, dim), mapped from a file if it would take more than half of the memory allowed.

    Without a name the file is removed as soon as nothing maps it any more.
    """
    shape = (num_rows, dim)
    if 4 * num_rows * dim <= memory_bytes // 2:
        return np.empty(shape, dtype=np.float32)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        mapped: FloatArray = np.lib.format.open_memmap(file, "w+", np.float32, shape)
        return mapped
    with tempfile.TemporaryFile() as nameless:
        return np.memmap(nameless, np.float32, "w+", shape=shape)


def valid_vectors(
    task: AlignmentTask,
    links: IntArray,
    subgraphs: SubgraphSet | None,
    device: torch.device,
    *,
    by_neighbors: bool = True,
    memory_bytes: int,
) -> Callable[[EmbeddingModel], tuple[FloatArray, FloatArray]]:
    """A function from a model to the vectors (k, D) of the sources and of the targets of `links` (k, 2).

    With `subgraphs` they are means over these, as in `average_subgraphs`, with None the whole graph is encoded. An
    entity without a vector has zeros.
    """
    entities, rows = np.unique(links, return_inverse=True)
    rows = rows.reshape(links.shape)
    graph = WholeGraph(task.num_entities, task.triples, task.num_relations, memory_bytes)
    feed = None
    if subgraphs is not None:
        feed = Feed(subgraphs, prepare_subgraph, task.num_relations, device, memory_bytes // 8)

    def both_ends(model: EmbeddingModel) -> tuple[FloatArray, FloatArray]:
        parameters = model.encoder, model.entities.values, model.relations.detach()
        if feed is None:
            vectors = graph.encode(*parameters, nodes=entities)
        else:
            outputs = new_vectors(task.num_entities, model.encoder.output_dim, memory_bytes)
            found = average_subgraphs(*parameters, feed, by_neighbors=by_neighbors, outputs=outputs)
            vectors = found.vectors[entities]
        return vectors[rows[:, 0]], vectors[rows[:, 1]]

    return both_ends
