"""Compute the vectors of valid links during training as the stage `integrate` will compute those of all entities.

In: a model between two epochs. Out: the vectors of both ends of each valid link, zeros for an entity without one.
The idea: an epoch is chosen by the vectors it would give, so a run that takes the mean over subgraphs is validated by
that mean. What does not change between epochs, the structure of the graph or of its subgraphs, is built once. Of a
large graph only what the valid links need is encoded: the last layer, proxies and gate of them alone, which takes half
the time of all vectors at 400,000 entities on a CPU.
Cost: at most one forward pass over the graph, or over the subgraphs that contain a valid entity.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, FloatArray, IntArray, SubgraphSet
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.feeding import SubgraphFeed
from largegnn.embedding.integrate import average_subgraphs, encode_full, encode_nodes, fits_fused, within_reach
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.pair_graph import build_pair_graph
from largegnn.embedding.structure import build_structure

__all__ = ["valid_vectors"]

Vectors = Callable[[EmbeddingModel], tuple[FloatArray, FloatArray]]
Encode = Callable[[EmbeddingModel], FloatArray]  # to the vectors of the entities it was made for

_LARGE = 2**29  # bytes of vectors of all entities; below, they are all made
_TRIPLE_BYTES = 120  # of a structure


def valid_vectors(
    task: AlignmentTask,
    links: IntArray,
    subgraphs: SubgraphSet | None,
    *,
    by_neighbors: bool = True,
    cache_bytes: int,
    memory_bytes: int = _LARGE,
) -> Vectors:
    """A function from a model to the vectors (k, D) of the sources and of the targets of `links` (k, 2).

    With `subgraphs` they are means over these, as in `average_subgraphs`, with None the whole graph is encoded; up to
    `cache_bytes` of structures of subgraphs are kept from one call to the next, and `memory_bytes` may be used.
    """
    entities, rows = np.unique(links, return_inverse=True)
    rows = rows.reshape(links.shape)
    if subgraphs is not None:
        encode = _from_subgraphs(task, entities, subgraphs, by_neighbors, cache_bytes)
    else:
        encode = _from_whole_graph(task, entities, memory_bytes)

    def both_ends(model: EmbeddingModel) -> tuple[FloatArray, FloatArray]:
        vectors = encode(model)
        return vectors[rows[:, 0]], vectors[rows[:, 1]]

    return both_ends


def _from_whole_graph(task: AlignmentTask, entities: IntArray, memory_bytes: int) -> Encode:
    """On a GPU with room all at once; a large graph only within reach of the links; else layer by layer."""
    chosen: Encode | None = None

    def encode(model: EmbeddingModel) -> FloatArray:
        nonlocal chosen
        if chosen is None:
            sizes = (task.num_entities, len(task.triples), model.entities.values.shape[1])
            if fits_fused(model.encoder, *sizes, model.device, memory_bytes):
                chosen = _by_kernels(task, entities, model.device)
            elif 4 * task.num_entities * model.encoder.output_dim > _LARGE and hasattr(model.encoder, "reach"):
                chosen = _within_reach(task, entities, model.encoder, memory_bytes)
            if chosen is None:
                chosen = _layer_by_layer(task, entities, memory_bytes)
        return chosen(model)

    return encode


def _by_kernels(task: AlignmentTask, entities: IntArray, device: torch.device) -> Encode:
    graph = build_pair_graph(task.num_entities, torch.tensor(task.triples, device=device), task.num_relations)
    nodes = torch.tensor(entities, device=device)

    def encode(model: EmbeddingModel) -> FloatArray:
        assert isinstance(model.encoder, DualAMN)
        return encode_nodes(model.encoder, model.entities.values, model.relations.detach(), graph, nodes)

    return encode


def _layer_by_layer(task: AlignmentTask, entities: IntArray, memory_bytes: int) -> Encode:
    structure = build_structure(task.num_entities, task.triples, task.num_relations)

    def encode(model: EmbeddingModel) -> FloatArray:
        relations, shape = model.relations.detach(), (task.num_entities, model.encoder.output_dim)
        outputs: FloatArray | None = None
        if 4 * shape[0] * shape[1] > max(_LARGE, memory_bytes // 2):
            # In a file without a name, which is removed when it is closed.
            with tempfile.TemporaryFile() as file:
                outputs = np.memmap(file, np.float32, "w+", shape=shape)
        rows = model.entities.values
        return encode_full(model.encoder, rows, relations, structure, outputs=outputs).vectors[entities]

    return encode


def _within_reach(task: AlignmentTask, entities: IntArray, encoder: Any, memory_bytes: int) -> Encode | None:
    """From the entities within the encoder's reach; None if they do not fit into memory."""
    near, triples = within_reach(entities, task.triples, task.num_entities, encoder.reach)
    if 4 * encoder.output_dim * len(near) + _TRIPLE_BYTES * len(triples) > memory_bytes:
        return None
    structure = build_structure(len(near), triples, task.num_relations)
    ids, nodes = torch.from_numpy(near), torch.from_numpy(np.searchsorted(near, entities))

    @torch.no_grad()
    def encode(model: EmbeddingModel) -> FloatArray:
        device = model.device
        rows = model.entities.rows_of(ids)
        outputs = model.encoder(rows, model.relations.detach(), structure.to(device), nodes.to(device))
        return functional.normalize(outputs, dim=1).cpu().numpy()

    return encode


def _from_subgraphs(
    task: AlignmentTask, entities: IntArray, subgraphs: SubgraphSet, by_neighbors: bool, cache_bytes: int
) -> Encode:
    feed: SubgraphFeed | None = None

    def encode(model: EmbeddingModel) -> FloatArray:
        nonlocal feed
        if feed is None:
            feed = SubgraphFeed(subgraphs, task.num_relations, model.device, cache_bytes)
        found: EntityEmbeddings = average_subgraphs(
            model.encoder,
            model.entities.values,
            model.relations.detach(),
            feed,
            entities=entities,
            by_neighbors=by_neighbors,
        )
        return found.vectors

    return encode
