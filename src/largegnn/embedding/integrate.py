"""Encode entities with a trained encoder: over the whole graph, or as means over the subgraphs (section 5.4).

In: the encoder, rows of entities and relations, the subgraphs or the triples of the whole graph. Out: vectors of all
entities, or of some, to be compared by cosine.
The idea: all parameters are global, so `WholeGraph` can run the encoder over the whole graph, and no triple is lost:
with fused kernels if it fits on a GPU, otherwise layer by layer (`layerwise`). `average_subgraphs` is the paper's
method: an entity's vector is the mean over the subgraphs that contain it; an entity in no subgraph is not covered.
During training, `valid_vectors` computes the vectors of the valid links in the same way, to choose the best epoch.
Cost: one forward pass; about a second per million entities on a GPU. Memory: the result, which may be mapped from a
file, and one subgraph, or the chunks of a layer.

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

_CHUNK_NODES = 1 << 16  # nodes whose last layer is computed at a time
_ROWS_PER_ENTITY = 6  # on the device in the first two layers: input, two layers of two blocks, and some more
_PAIR_BYTES = 60  # of a `PairGraph`, for each triple
_BUILD_BYTES = 200  # needed to build a `PairGraph`, for each triple
_MAX_GPU_SHARE = 0.5
_MIN_ENTITIES_TO_SEND = 500_000  # to a cluster: one core encodes fewer in about ten seconds
_MIN_WEIGHT = np.float32(0.01)  # so that an entity without neighbours in any subgraph has a vector too


class WholeGraph:
    """A graph of n entities to encode as a whole, once or several times; its structure is built once."""

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
        """Unit vectors (n, D) of all entities, in `outputs` if given, or only the vectors (k, D) of `nodes` (k,).

        They are computed on the device of `relation_rows` (2R, d); `entity_rows` (n, d) may be in main memory.
        """
        device = relation_rows.device
        if type(encoder) is DualAMN and self._fits_fused(entity_rows.shape[1], device):
            return self._by_kernels(encoder, as_tensor(entity_rows).to(device), relation_rows, nodes, outputs)
        if self._structure is None:
            self._structure = build_structure(self._num_entities, self._triples, self._num_relations)
        # With a GPU, nothing is sent: it is faster than the processors of a cluster.
        send = self._num_entities >= _MIN_ENTITIES_TO_SEND and device.type == "cpu"
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
        """Encode with fused kernels: first layers of all nodes at once, the rest for a chunk of nodes at a time."""
        device = relation_rows.device
        if self._pairs is None:
            triples = torch.tensor(self._triples, device=device)
            self._pairs = build_pair_graph(self._num_entities, triples, self._num_relations)
        no_noise = torch.zeros(1, dtype=torch.int64, device=device)
        layers, _ = hidden_layers(encoder, rows, relation_rows, self._pairs, 0.0, no_noise)
        wanted = torch.arange(self._num_entities) if nodes is None else torch.from_numpy(nodes)
        if outputs is None:
            outputs = new_vectors(len(wanted), encoder.output_dim, self._memory_bytes)
        with progress("encode", len(wanted), "nodes") as work:
            for start in range(0, len(wanted), _CHUNK_NODES):
                chunk = wanted[start : start + _CHUNK_NODES].to(device)
                vectors = functional.normalize(outputs_of(encoder, layers, self._pairs, chunk), dim=1)
                outputs[start : start + len(chunk)] = vectors.cpu().numpy()
                work.advance(len(chunk))
        return outputs

    def _fits_fused(self, dim: int, device: torch.device) -> bool:
        """Whether the first two layers fit on a GPU, within 1.5 times the memory allowed and half of the GPU's."""
        if device.type != "cuda" or not has_kernels(device):
            return False
        num_triples = len(self._triples)
        layer_bytes = _PAIR_BYTES * num_triples + 4 * _ROWS_PER_ENTITY * dim * self._num_entities
        gpu_bytes = torch.cuda.get_device_properties(device).total_memory
        needed_bytes = max(layer_bytes, _BUILD_BYTES * num_triples)
        return needed_bytes <= min(1.5 * self._memory_bytes, _MAX_GPU_SHARE * gpu_bytes)


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
    """Unit vectors (n, D) of all nodes of a graph, layer by layer if the encoder supports it; `send`: see `Layers`.

    They are computed on the device of `relation_rows` (2R, d); `entity_rows` (n, d) may be in main memory.
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
    """Average each entity's unit vectors over the subgraphs, computed on the device of `relation_rows` (2R, d).

    The weight of a subgraph is the number of neighbours that the entity has in it: a subgraph that has the entity as a
    landmark, at its border, has few of its triples. Without `by_neighbors` all subgraphs have equal weight.
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
                weight = np.diff(ready.graph.pair_ptr.cpu().numpy()).astype(np.float32) + _MIN_WEIGHT
            outputs[entities] += vectors.cpu().numpy() * weight[:, None]
            weights[entities] += weight
            work.advance()
    covered = weights > 0
    weights[~covered] = 1.0
    outputs /= weights[:, None]
    return EntityEmbeddings(outputs, covered)


def new_vectors(num_rows: int, dim: int, memory_bytes: int, file: Path | None = None) -> FloatArray:
    """Allocate an array (num_rows, dim), mapped from a file if it would take more than half of the memory allowed.

    If `file` is None, a temporary file is used, which disappears when it is no longer mapped.
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
    """Make a function from a model to the vectors (k, D) of the sources and of the targets of `links` (k, 2).

    With `subgraphs`, the vectors are means over the subgraphs, as in `average_subgraphs`; with None the whole graph is
    encoded. An entity in no subgraph has a vector of zeros.
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
            averaged = average_subgraphs(*parameters, feed, by_neighbors=by_neighbors, outputs=outputs)
            vectors = averaged.vectors[entities]
        return vectors[rows[:, 0]], vectors[rows[:, 1]]

    return both_ends
