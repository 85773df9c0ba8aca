"""The vectors of valid links during training, made as the stage `integrate` will make those of all entities.

In: a model between two epochs. Out: the vectors of both ends of each valid link, zeros for an entity without one.
The idea: an epoch is chosen by the vectors that it would give, so a run that takes the mean over subgraphs is validated
by that mean. What does not change between epochs, the structure of the graph or of its subgraphs, is made once.
Cost: one forward pass over the graph, or over the subgraphs that hold a valid entity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, FloatArray, IntArray, SubgraphSet
from largegnn.embedding.feeding import SubgraphFeed
from largegnn.embedding.integrate import average_subgraphs, encode_full
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.structure import build_structure

__all__ = ["valid_vectors"]

Vectors = Callable[[EmbeddingModel], tuple[FloatArray, FloatArray]]


def valid_vectors(
    task: AlignmentTask, links: IntArray, subgraphs: SubgraphSet | None, *, by_neighbors: bool = True, cache_bytes: int
) -> Vectors:
    """A function from a model to the vectors (k, D) of the sources and of the targets of `links` (k, 2).

    With `subgraphs` they are means over these, as in `average_subgraphs`, with None the whole graph is encoded; up to
    `cache_bytes` of what the subgraphs are made of is kept from one call to the next.
    """
    if subgraphs is None:
        return _from_whole_graph(task, links)
    return _from_subgraphs(task, links, subgraphs, by_neighbors, cache_bytes)


def _from_whole_graph(task: AlignmentTask, links: IntArray) -> Vectors:
    structure = build_structure(task.num_entities, task.triples, task.num_relations)

    def encode(model: EmbeddingModel) -> tuple[FloatArray, FloatArray]:
        relations = model.relations.detach()
        vectors = encode_full(model.encoder, model.entities.values, relations, structure).vectors
        return vectors[links[:, 0]], vectors[links[:, 1]]

    return encode


def _from_subgraphs(
    task: AlignmentTask, links: IntArray, subgraphs: SubgraphSet, by_neighbors: bool, cache_bytes: int
) -> Vectors:
    entities, rows = np.unique(links, return_inverse=True)
    rows = rows.reshape(links.shape)
    feed: SubgraphFeed | None = None

    def encode(model: EmbeddingModel) -> tuple[FloatArray, FloatArray]:
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
        return found.vectors[rows[:, 0]], found.vectors[rows[:, 1]]

    return encode
