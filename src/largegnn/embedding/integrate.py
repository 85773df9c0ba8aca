"""Compute one vector for each entity from a trained encoder (section 5.4 of the paper).

In: the encoder, rows of entities and relations, the subgraphs or the triples of the whole graph. Out: unit vectors of
all entities, or of some; compare them by cosine.
The idea: all parameters are global, so `encode_graph` runs the encoder over the whole graph and no triple is lost: on a
GPU with room in a few launches, otherwise layer by layer (`layerwise`). `average_subgraphs` is the paper's: an entity's
vector is the mean over the subgraphs that contain it; an entity in none is not covered.
Cost: one forward pass over what is encoded; a second for each million entities on a GPU. Memory: the result, which may
be mapped from a file, and one subgraph, or the chunks of a layer.

# Paper: the mean with every subgraph alike (`by_neighbors=False`, `integrate.method = "plain_average"`).
# Departs: the whole graph and the mean weighted by neighbours are not in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from largegnn.artifacts import EntityEmbeddings, FloatArray, IntArray, Mask
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.encoders import Encoder, LayerwiseEncoder
from largegnn.embedding.feeding import SubgraphFeed
from largegnn.embedding.fused import has_kernels
from largegnn.embedding.fused_encoder import HiddenLayers, hidden_layers, outputs_of
from largegnn.embedding.layerwise import Layers, Rows, as_tensor
from largegnn.embedding.pair_graph import PairGraph, build_pair_graph
from largegnn.embedding.structure import GraphStructure, build_structure
from largegnn.machine.progress import progress

__all__ = ["average_subgraphs", "encode_full", "encode_graph", "encode_nodes", "fits_fused", "within_reach"]

_NODES_AT_ONCE = 1 << 16
_ROWS_ALIVE = 6  # of each entity in the first two layers: input, two layers of two blocks, and some more
_PAIR_BYTES, _BUILD_BYTES = 60, 200  # for each triple: what a graph keeps, and what it takes to build it
_SHARE_OF_GPU = 0.5
_WORTH_SHARING = 500_000  # entities: fewer take one core some ten seconds
_WITHOUT_NEIGHBORS = np.float32(0.01)  # so that an entity without neighbours in any subgraph has a vector too


@torch.no_grad()
def encode_graph(
    encoder: Encoder,
    entity_rows: Rows,
    relation_rows: Tensor,
    triples: IntArray,
    *,
    memory_bytes: int,
    outputs: FloatArray | None = None,
) -> EntityEmbeddings:
    """Unit vectors (n, D) of all entities, encoded where `relation_rows` (2R, d) are; into `outputs` if given."""
    device, num_relations = relation_rows.device, len(relation_rows) // 2
    num_entities, dim = entity_rows.shape
    if not fits_fused(encoder, num_entities, len(triples), dim, device, memory_bytes):
        structure = build_structure(num_entities, triples, num_relations)
        return encode_full(
            encoder,
            entity_rows,
            relation_rows,
            structure,
            chunk_bytes=memory_bytes // 16,
            outputs=outputs,
            # A GPU here is faster than the processors of a cluster.
            send=num_entities >= _WORTH_SHARING and device.type == "cpu",
        )
    assert isinstance(encoder, DualAMN)
    if outputs is None:
        outputs = np.empty((num_entities, encoder.output_dim), dtype=np.float32)
    graph = build_pair_graph(num_entities, torch.tensor(triples, device=device), num_relations)
    layers = _hidden_layers(encoder, as_tensor(entity_rows), relation_rows, graph)
    target = torch.from_numpy(outputs)
    with progress("encode", num_entities, "nodes") as work:
        for nodes, vectors in _through_pinned_memory(_unit_outputs(encoder, layers, graph, num_entities)):
            target[nodes] = vectors
            work.advance(len(vectors))
    return EntityEmbeddings(outputs, np.ones(num_entities, dtype=bool))


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
    """`encode_graph` of a graph with this structure, layer by layer where the encoder can; `send`: see `Layers`.

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
    feed: SubgraphFeed,
    *,
    entities: IntArray | None = None,
    by_neighbors: bool = True,
    outputs: FloatArray | None = None,
) -> EntityEmbeddings:
    """Mean of each entity's unit vectors over the subgraphs, encoded where `relation_rows` (2R, d) are.

    A subgraph counts by the number of neighbours of the entity in it: one with the entity at its border, as a landmark,
    has few of its triples. Without `by_neighbors` every subgraph counts alike. With `entities` (k,), distinct, the
    vectors are those of these k, and only subgraphs that contain one of them are encoded.
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


@torch.no_grad()
def encode_nodes(
    encoder: DualAMN, entity_rows: Tensor, relation_rows: Tensor, graph: PairGraph, nodes: Tensor
) -> FloatArray:
    """Unit vectors (k, D) of some `nodes` (k,) of a whole graph on the device."""
    layers = _hidden_layers(encoder, entity_rows, relation_rows, graph)
    parts = [
        functional.normalize(outputs_of(encoder, layers, graph, part), dim=1)
        for part in torch.split(nodes, _NODES_AT_ONCE)
    ]
    return torch.cat(parts).cpu().numpy()


def fits_fused(
    encoder: Encoder, num_entities: int, num_triples: int, dim: int, device: torch.device, memory_bytes: int
) -> bool:
    """Whether the first two layers of a graph have room on a GPU: one and a half times the memory allowed."""
    if type(encoder) is not DualAMN or device.type != "cuda" or not has_kernels(device):
        return False
    needed = max(_PAIR_BYTES * num_triples + 4 * _ROWS_ALIVE * dim * num_entities, _BUILD_BYTES * num_triples)
    room = min(1.5 * memory_bytes, _SHARE_OF_GPU * torch.cuda.get_device_properties(device).total_memory)
    return needed <= room


def within_reach(entities: IntArray, triples: IntArray, num_entities: int, hops: int) -> tuple[IntArray, IntArray]:
    """All entities, ascending, and all triples that outputs of `entities` depend on if they reach `hops` triples far.

    The neighbourhoods of all within `hops` - 1 steps are whole; the last ones have only what joins them to those.
    """
    inside = np.zeros(num_entities, dtype=bool)
    inside[entities] = True
    needed = np.zeros(len(triples), dtype=bool)
    for _ in range(hops):
        needed = inside[triples[:, 0]] | inside[triples[:, 2]]
        inside[triples[needed, 0]] = True
        inside[triples[needed, 2]] = True
    found = np.flatnonzero(inside)
    local = np.cumsum(inside) - 1
    chosen = triples[needed]
    return found, np.stack([local[chosen[:, 0]], chosen[:, 1], local[chosen[:, 2]]], axis=1)


def _holders(feed: SubgraphFeed, is_wanted: Mask) -> list[int]:
    """The subgraphs that contain a wanted entity, from a mask (n,)."""
    num_wanted = np.concatenate([[0], np.cumsum(is_wanted[feed.subgraphs.entities])])[feed.subgraphs.entity_ptr]
    return [int(index) for index in np.flatnonzero(np.diff(num_wanted))]


def _hidden_layers(encoder: DualAMN, entity_rows: Tensor, relation_rows: Tensor, graph: PairGraph) -> HiddenLayers:
    """The first two layers of all nodes, without dropout."""
    device = relation_rows.device
    nothing = torch.zeros(1, dtype=torch.int64, device=device)
    return hidden_layers(encoder, entity_rows.to(device), relation_rows, graph, 0.0, nothing)[0]


def _unit_outputs(
    encoder: DualAMN, layers: HiddenLayers, graph: PairGraph, num_nodes: int
) -> Iterator[tuple[slice, Tensor]]:
    """Outputs of a chunk of nodes after the other, of length one."""
    for start in range(0, num_nodes, _NODES_AT_ONCE):
        stop = min(start + _NODES_AT_ONCE, num_nodes)
        nodes = torch.arange(start, stop, device=layers.first.device)
        yield slice(start, stop), functional.normalize(outputs_of(encoder, layers, graph, nodes), dim=1)


def _through_pinned_memory(chunks: Iterator[tuple[slice, Tensor]]) -> Iterator[tuple[slice, Tensor]]:
    """The same chunks in page-locked memory, each yielded while the next one is computed."""
    before: tuple[slice, Tensor, torch.cuda.Event] | None = None
    staged: list[Tensor] = []
    for number, (nodes, rows) in enumerate(chunks):
        if len(staged) < 2:
            staged.append(torch.empty(rows.shape, pin_memory=True))
        target = staged[number % 2][: len(rows)]
        target.copy_(rows, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        if before is not None:
            before[2].synchronize()
            yield before[0], before[1]
        before = (nodes, target, event)
    if before is not None:
        before[2].synchronize()
        yield before[0], before[1]
