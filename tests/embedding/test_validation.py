from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from largegnn.artifacts import AlignmentTask, SubgraphSet
from largegnn.embedding import feeding
from largegnn.embedding.feeding import Feed, prepare_subgraph
from largegnn.embedding.integrate import average_subgraphs, encode_full, valid_vectors
from largegnn.embedding.model import EmbeddingModel
from largegnn.embedding.structure import GraphStructure, build_structure
from tests.embedding.small_runs import CPU, NUM_RELATIONS, random_subgraphs, small_options

# Two links share a source; entity 99 is in no subgraph.
MEMORY = 2**30
LINKS = np.array([(3, 80), (3, 70), (40, 99)])


@pytest.fixture
def task() -> AlignmentTask:
    """A hundred entities, of which the first fifty are the source's."""
    rng = np.random.default_rng(0)
    sides = [rng.integers(0, 50, 150), rng.integers(50, 100, 150)]
    triples = np.concatenate(
        [
            np.stack([side, rng.integers(0, 2, 150) + 2 * at, rng.permutation(side)], axis=1)
            for at, side in enumerate(sides)
        ]
    )
    nothing = np.empty((0, 2), dtype=np.int32)
    return AlignmentTask(
        num_source_entities=50,
        num_target_entities=50,
        num_source_relations=2,
        num_target_relations=2,
        triples=triples,
        train_links=nothing,
        valid_links=LINKS,
        test_links=nothing,
    )


@pytest.fixture
def subgraphs() -> SubgraphSet:
    return random_subgraphs(3)


@pytest.fixture
def model() -> EmbeddingModel:
    return EmbeddingModel(100, NUM_RELATIONS, small_options(), CPU, 0)


def test_the_whole_graph_is_encoded(task: AlignmentTask, model: EmbeddingModel) -> None:
    sources, targets = valid_vectors(task, LINKS, None, CPU, memory_bytes=MEMORY)(model)
    structure = build_structure(100, task.triples, NUM_RELATIONS)
    every = encode_full(model.encoder, model.entities.values, model.relations.detach(), structure).vectors
    assert_array_equal(sources, every[LINKS[:, 0]])
    assert_array_equal(targets, every[LINKS[:, 1]])


@pytest.mark.parametrize("by_neighbors", [True, False])
def test_the_mean_over_subgraphs_is_taken(
    task: AlignmentTask, model: EmbeddingModel, subgraphs: SubgraphSet, by_neighbors: bool
) -> None:
    sources, targets = valid_vectors(task, LINKS, subgraphs, CPU, by_neighbors=by_neighbors, memory_bytes=MEMORY)(model)
    feed = Feed(subgraphs, prepare_subgraph, NUM_RELATIONS, CPU, 0)
    rows, relations = model.entities.values, model.relations.detach()
    every = average_subgraphs(model.encoder, rows, relations, feed, by_neighbors=by_neighbors).vectors
    np.testing.assert_allclose(sources, every[LINKS[:, 0]], atol=1e-6)
    np.testing.assert_allclose(targets, every[LINKS[:, 1]], atol=1e-6)
    assert not targets[2].any()


def test_structures_are_built_once(
    task: AlignmentTask, model: EmbeddingModel, subgraphs: SubgraphSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[int] = []

    def build(*args: int) -> GraphStructure:
        built.append(1)
        return build_structure(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(feeding, "build_structure", build)
    encode = valid_vectors(task, LINKS, subgraphs, CPU, memory_bytes=MEMORY)
    first, again = encode(model), encode(model)
    assert len(built) == 3
    assert_array_equal(first, again)


def test_a_large_graph_is_encoded_in_chunks_into_a_file(task: AlignmentTask, model: EmbeddingModel) -> None:
    expected = valid_vectors(task, LINKS, None, CPU, memory_bytes=MEMORY)(model)
    found = valid_vectors(task, LINKS, None, CPU, memory_bytes=0)(model)
    for ours, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-4, atol=1e-6)
