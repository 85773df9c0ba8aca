from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from largegnn.artifacts import EntityEmbeddings, IntArray, SubgraphSet
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.feeding import Feed, prepare_subgraph
from largegnn.embedding.gcn import GCN
from largegnn.embedding.integrate import WholeGraph, average_subgraphs, encode_full
from largegnn.embedding.model import load_weights
from largegnn.embedding.structure import GraphStructure, build_structure
from largegnn.errors import ArtifactError
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_rows, random_triples


class Doubling(nn.Module):
    """An encoder whose outputs are its rows, twice as long, and the number of neighbours added."""

    output_dim = 2

    def forward(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        outputs = 2 * entity_rows + structure.pair_ptr.diff().unsqueeze(1)
        return outputs if nodes is None else outputs[nodes]


# Entities 0 and 1 joined by a triple; 1 and 2 not joined; 3 in no subgraph.
ROWS = torch.tensor([(3.0, 4.0), (1.0, 0.0), (0.0, 2.0), (5.0, 5.0)])
RELATIONS = torch.zeros(2 * NUM_RELATIONS, 2)


def feed_of(entities: list[list[int]], triples: list[IntArray]) -> Feed[GraphStructure]:
    """Subgraphs of these entities, with triples in local ids."""
    subgraphs = SubgraphSet(
        entities=np.concatenate(entities),
        entity_ptr=np.cumsum([0, *map(len, entities)]),
        triples=np.concatenate(triples),
        triple_ptr=np.cumsum([0, *map(len, triples)]),
        seeds=np.empty((0, 2)),
        seed_ptr=np.zeros(len(entities) + 1),
    )
    return Feed(subgraphs, prepare_subgraph, NUM_RELATIONS, torch.device("cpu"), 0)


@pytest.fixture
def two_parts() -> Feed[GraphStructure]:
    return feed_of([[0, 1], [1, 2]], [np.array([(0, 0, 1)]), np.empty((0, 3), dtype=np.int32)])


def test_the_average_by_hand(two_parts: Feed[GraphStructure]) -> None:
    result = average_subgraphs(Doubling(), ROWS, RELATIONS, two_parts)
    # In the first part each node has one neighbour: (7, 9) and (3, 1); in the second none: (2, 0) and (0, 4).
    # A part weighs as many neighbours as it has, and a hundredth: node 1 is nearly that of the first part.
    first = np.array((7, 9)) / 130**0.5
    second = (1.01 * np.array((3, 1)) / 10**0.5 + 0.01 * np.array((1, 0))) / 1.02
    np.testing.assert_allclose(result.vectors[:3], [first, second, (0, 1)], rtol=1e-6)
    assert result.covered.tolist() == [True, True, True, False]
    assert not result.vectors[3].any()


def test_the_plain_mean_by_hand(two_parts: Feed[GraphStructure]) -> None:
    result = average_subgraphs(Doubling(), ROWS, RELATIONS, two_parts, by_neighbors=False)
    second = (np.array((3, 1)) / 10**0.5 + np.array((1, 0))) / 2
    np.testing.assert_allclose(result.vectors[:3], [np.array((7, 9)) / 130**0.5, second, (0, 1)], rtol=1e-6)
    assert result.covered.tolist() == [True, True, True, False]


def test_the_average_over_one_subgraph_is_the_whole() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    encoder = DualAMN(4)
    entities, relations = random_rows(6, 4, 1, torch.float32)
    averaged = average_subgraphs(encoder, entities, relations, feed_of([list(range(6))], [np.array(TOY)]))
    whole = encode_full(encoder, entities, relations, structure)
    np.testing.assert_allclose(averaged.vectors, whole.vectors, atol=1e-6)


def test_any_other_encoder_is_given_the_whole_graph() -> None:
    structure = build_structure(4, np.array([(0, 0, 1)]), NUM_RELATIONS)
    result = encode_full(Doubling(), ROWS, RELATIONS, structure)
    expected = torch.nn.functional.normalize(Doubling()(ROWS, RELATIONS, structure), dim=1)
    np.testing.assert_allclose(result.vectors, expected.numpy())


def test_weights_come_back_in_order() -> None:
    encoder, other = GCN(3), GCN(3)
    weights = torch.cat([parameter.detach().flatten() for parameter in encoder.parameters()]).numpy()
    load_weights(other, weights)
    for ours, theirs in zip(encoder.parameters(), other.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    with pytest.raises(ArtifactError, match="the encoder has 18 weights, but 17 were given"):
        load_weights(other, weights[:-1])


def test_embeddings_are_read_only_and_of_one_length() -> None:
    result = EntityEmbeddings(np.zeros((3, 2), dtype=np.float32), np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="read-only"):
        result.vectors[0, 0] = 1.0
    with pytest.raises(ArtifactError, match="covered"):
        EntityEmbeddings(np.zeros((3, 2), dtype=np.float32), np.ones(4, dtype=bool))


NUM_NODES, DIM = 300, 6


def chain_and_cloud() -> np.ndarray:
    """A chain of the first 100 nodes, and a cloud of the others that node 50 belongs to."""
    ends = np.arange(99)
    chain = np.stack([ends, ends % NUM_RELATIONS, ends + 1], axis=1)
    cloud = random_triples(200, 600, 2) + np.array([100, 0, 100])
    return np.concatenate([chain, cloud, [[50, 0, 100]]])


@pytest.mark.parametrize("by_kernels", [True, False])
def test_vectors_of_some_nodes_are_those_of_the_whole_graph(by_kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    triples = chain_and_cloud()
    torch.manual_seed(0)
    encoder = DualAMN(DIM)
    rows, relations = random_rows(NUM_NODES, DIM, 0, torch.float32)
    whole = encode_full(encoder, rows, relations, build_structure(NUM_NODES, triples, NUM_RELATIONS)).vectors
    graph = WholeGraph(NUM_NODES, triples, NUM_RELATIONS, 2**30)
    nodes = np.array([3, 50, 120, 299])
    monkeypatch.setattr(WholeGraph, "_fits_fused", lambda self, *_: by_kernels)
    found = graph.encode(encoder, rows, relations, nodes=nodes)
    np.testing.assert_allclose(found, whole[nodes], rtol=1e-4, atol=1e-5)


def test_without_a_gpu_the_graph_is_encoded_layer_by_layer() -> None:
    triples = chain_and_cloud()
    encoder = DualAMN(DIM)
    rows, relations = random_rows(NUM_NODES, DIM, 0, torch.float32)
    outputs = np.empty((NUM_NODES, encoder.output_dim), dtype=np.float32)
    found = WholeGraph(NUM_NODES, triples, NUM_RELATIONS, 2**20).encode(encoder, rows, relations, outputs=outputs)
    structure = build_structure(NUM_NODES, triples, NUM_RELATIONS)
    expected = encode_full(encoder, rows, relations, structure, chunk_bytes=2**16)
    assert found is outputs
    assert np.array_equal(found, expected.vectors)
