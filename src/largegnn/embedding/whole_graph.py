"""The whole graph encoded where there is room for it: on a GPU in a few launches, otherwise layer by layer in chunks.

In: a trained encoder, rows of entities and relations, the triples. Out: unit vectors of all entities, or of some.
The idea. All rows of the first two layers fit onto a GPU for some million entities; the last layer, proxies and gate
are then made for a chunk of nodes at a time, and each vector goes to the host once. Who asks for few vectors pays for
no others beyond the first two layers. What does not fit takes the path of `layerwise`, or of `layer_pieces` on a
cluster. Without a GPU, the vectors of a few entities of a large graph are made from what lies within their reach alone.
Cost: about a second for each million entities on a GPU, most of it for writing the vectors down.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from largegnn.artifacts import EntityEmbeddings, FloatArray, IntArray
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.encoders import Encoder
from largegnn.embedding.fused import has_kernels
from largegnn.embedding.fused_encoder import HiddenLayers, hidden_layers, outputs_of
from largegnn.embedding.integrate import encode_full
from largegnn.embedding.layer_pieces import LayerPieces, PiecewiseEncoder
from largegnn.embedding.pair_graph import PairGraph, build_pair_graph
from largegnn.embedding.structure import build_structure
from largegnn.machine.progress import progress
from largegnn.machine.read_only import read_only_tensor
from largegnn.machine.worker_pool import wider_pool

__all__ = ["encode_graph", "encode_nodes", "fits_fused", "within_reach"]

_NODES_AT_ONCE = 1 << 16
_ROWS_ALIVE = 6  # of each entity while the first two layers are made: input, two layers of two blocks, and some more
_PAIR_BYTES, _BUILD_BYTES = 60, 200  # for each triple: what a graph keeps, and what it takes to build it
_SHARE_OF_GPU = 0.5
_WORTH_SHARING = 500_000  # entities: fewer take one core some ten seconds, and layers in files some of their own


def fits_fused(
    encoder: Encoder, num_entities: int, num_triples: int, dim: int, device: torch.device, memory_bytes: int
) -> bool:
    """Whether the first two layers of a graph have room on a GPU: one and a half times the memory allowed."""
    if type(encoder) is not DualAMN or device.type != "cuda" or not has_kernels(device):
        return False
    needed = max(_PAIR_BYTES * num_triples + 4 * _ROWS_ALIVE * dim * num_entities, _BUILD_BYTES * num_triples)
    room = min(1.5 * memory_bytes, _SHARE_OF_GPU * torch.cuda.get_device_properties(device).total_memory)
    return needed <= room


@torch.no_grad()
def encode_graph(
    encoder: Encoder,
    entity_rows: Tensor | FloatArray,
    relation_rows: Tensor,
    triples: IntArray,
    *,
    memory_bytes: int,
    outputs: FloatArray | None = None,
    scratch: Path | None = None,
) -> EntityEmbeddings:
    """Unit vectors (n, D) of all entities, encoded where `relation_rows` (2R, d) are; into `outputs` if given.

    A large graph is encoded by the workers of a cluster, if there are any and a folder `scratch` that all of them see.
    """
    device, num_relations = relation_rows.device, len(relation_rows) // 2
    num_entities, dim = entity_rows.shape
    # The rows may be mapped from a file; a tensor over them reads only what is asked for.
    rows = entity_rows if isinstance(entity_rows, Tensor) else read_only_tensor(entity_rows)
    if not fits_fused(encoder, num_entities, len(triples), dim, device, memory_bytes):
        structure = build_structure(num_entities, triples, num_relations)
        chunk_bytes = memory_bytes // 16
        # A GPU here is faster than a few processors more.
        pool = wider_pool() if num_entities >= _WORTH_SHARING and device.type == "cpu" else None
        if pool is not None and scratch is not None and isinstance(encoder, PiecewiseEncoder):
            pieces = LayerPieces(pool, structure, scratch, chunk_bytes)
            del structure  # what it takes is in files now
            return _encode_in_pieces(encoder, entity_rows, relation_rows, pieces, outputs)
        return encode_full(encoder, rows, relation_rows, structure, outputs=outputs, chunk_bytes=chunk_bytes)
    assert isinstance(encoder, DualAMN)
    if outputs is None:
        outputs = np.empty((num_entities, encoder.output_dim), dtype=np.float32)
    graph = build_pair_graph(num_entities, torch.tensor(triples, device=device), num_relations)
    layers = _layers(encoder, rows, relation_rows, graph)
    target = torch.from_numpy(outputs)
    with progress("encode", num_entities, "nodes") as work:
        for nodes, vectors in _on_host(_unit_outputs(encoder, layers, graph, num_entities)):
            target[nodes] = vectors
            work.advance(len(vectors))
    return EntityEmbeddings(outputs, np.ones(num_entities, dtype=bool))


def _encode_in_pieces(
    encoder: Encoder,
    entity_rows: Tensor | FloatArray,
    relation_rows: Tensor,
    pieces: LayerPieces,
    outputs: FloatArray | None,
) -> EntityEmbeddings:
    """The same by the workers of a cluster."""
    if outputs is None:
        outputs = np.empty((len(entity_rows), encoder.output_dim), dtype=np.float32)
    assert isinstance(encoder, PiecewiseEncoder)
    try:
        rows = entity_rows.cpu().numpy() if isinstance(entity_rows, Tensor) else entity_rows
        encoder.encode_in_pieces(rows, relation_rows, pieces, outputs)
    finally:
        pieces.close()
    return EntityEmbeddings(outputs, np.ones(len(outputs), dtype=bool))


@torch.no_grad()
def encode_nodes(
    encoder: DualAMN, entity_rows: Tensor, relation_rows: Tensor, graph: PairGraph, nodes: Tensor
) -> FloatArray:
    """Unit vectors (k, D) of some `nodes` (k,) of a whole graph on the device."""
    layers = _layers(encoder, entity_rows, relation_rows, graph)
    parts = [
        functional.normalize(outputs_of(encoder, layers, graph, part), dim=1)
        for part in torch.split(nodes, _NODES_AT_ONCE)
    ]
    return torch.cat(parts).cpu().numpy()


def within_reach(entities: IntArray, triples: IntArray, num_entities: int, hops: int) -> tuple[IntArray, IntArray]:
    """All entities, ascending, and all triples that outputs of `entities` depend on if an encoder looks `hops` far.

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


def _layers(encoder: DualAMN, entity_rows: Tensor, relation_rows: Tensor, graph: PairGraph) -> HiddenLayers:
    """The first two layers of all nodes; nothing is hidden."""
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


def _on_host(chunks: Iterator[tuple[slice, Tensor]]) -> Iterator[tuple[slice, Tensor]]:
    """The same chunks in page-locked memory, each handed out while the next one is computed."""
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
