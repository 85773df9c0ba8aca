from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from largegnn.artifacts import EntityEmbeddings, IntArray, SubgraphSet
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.feeding import ReadySubgraph, SubgraphFeed
from largegnn.embedding.gcn import GCN
from largegnn.embedding.integrate import average_subgraphs, encode_full
from largegnn.embedding.layerwise import node_chunks
from largegnn.embedding.model import load_weights
from largegnn.embedding.structure import GraphStructure, build_structure
from largegnn.errors import ArtifactError
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_rows, random_triples


@pytest.mark.parametrize("chunk_bytes", [1, 500, 3_000, 10**7])
def test_layer_by_layer_is_the_one_piece_forward(chunk_bytes: int, tmp_path: Path) -> None:
    triples = random_triples(40, 120, 0)
    structure = build_structure(40, triples, NUM_RELATIONS)
    torch.manual_seed(0)
    encoder = DualAMN(6)
    entities, relations = random_rows(40, 6, 0, torch.float32)
    expected = torch.nn.functional.normalize(encoder(entities, relations, structure).detach(), dim=1).numpy()
    result = encode_full(encoder, entities, relations, structure, chunk_bytes=chunk_bytes)
    np.testing.assert_allclose(result.vectors, expected, atol=1e-6)
    assert result.covered.all()
    mapped = np.lib.format.open_memmap(
        tmp_path / "vectors.npy", mode="w+", dtype=np.float32, shape=(40, encoder.output_dim)
    )
    encode_full(encoder, entities, relations, structure, chunk_bytes=chunk_bytes, outputs=mapped)
    np.testing.assert_array_equal(mapped, result.vectors)


def test_chunks_cover_all_nodes_within_the_budget() -> None:
    ptr = np.array([0, 3, 3, 20, 21, 22, 25])
    for budget in (1, 100, 200, 10**6):
        chunks = list(node_chunks(ptr, 4, budget))
        assert [node for chunk in chunks for node in range(chunk.start, chunk.stop)] == list(range(6))
        for chunk in chunks:
            size = chunk.stop - chunk.start
            assert size == 1 or (ptr[chunk.stop] - ptr[chunk.start] + size) * 4 * 3 <= budget
    assert len(list(node_chunks(ptr, 4, 10**6))) == 1


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


def feed_of(entities: list[list[int]], triples: list[IntArray]) -> SubgraphFeed:
    """Subgraphs of these entities, with triples in local ids."""
    subgraphs = SubgraphSet(
        entities=np.concatenate(entities),
        entity_ptr=np.cumsum([0, *map(len, entities)]),
        triples=np.concatenate(triples),
        triple_ptr=np.cumsum([0, *map(len, triples)]),
        seeds=np.empty((0, 2)),
        seed_ptr=np.zeros(len(entities) + 1),
    )
    return SubgraphFeed(subgraphs, NUM_RELATIONS, torch.device("cpu"), 0)


@pytest.fixture
def two_parts() -> SubgraphFeed:
    return feed_of([[0, 1], [1, 2]], [np.array([(0, 0, 1)]), np.empty((0, 3), dtype=np.int32)])


def test_the_average_by_hand(two_parts: SubgraphFeed) -> None:
    result = average_subgraphs(Doubling(), ROWS, RELATIONS, two_parts)
    # In the first part each node has one neighbour: (7, 9) and (3, 1); in the second none: (2, 0) and (0, 4).
    # A part weighs as many neighbours as it has, and a hundredth: node 1 is nearly what the first part says.
    first = np.array((7, 9)) / 130**0.5
    second = (1.01 * np.array((3, 1)) / 10**0.5 + 0.01 * np.array((1, 0))) / 1.02
    np.testing.assert_allclose(result.vectors[:3], [first, second, (0, 1)], rtol=1e-6)
    assert result.covered.tolist() == [True, True, True, False]
    assert not result.vectors[3].any()


def test_the_plain_mean_by_hand(two_parts: SubgraphFeed) -> None:
    result = average_subgraphs(Doubling(), ROWS, RELATIONS, two_parts, by_neighbors=False)
    second = (np.array((3, 1)) / 10**0.5 + np.array((1, 0))) / 2
    np.testing.assert_allclose(result.vectors[:3], [np.array((7, 9)) / 130**0.5, second, (0, 1)], rtol=1e-6)
    assert result.covered.tolist() == [True, True, True, False]


@pytest.mark.parametrize("chosen", [[1], [3, 0], [2, 1, 0], [3], []])
@pytest.mark.parametrize("by_neighbors", [True, False])
def test_the_average_of_some_is_that_of_all(two_parts: SubgraphFeed, chosen: list[int], by_neighbors: bool) -> None:
    every = average_subgraphs(Doubling(), ROWS, RELATIONS, two_parts, by_neighbors=by_neighbors)
    entities = np.array(chosen, dtype=np.int64)
    some = average_subgraphs(Doubling(), ROWS, RELATIONS, two_parts, entities=entities, by_neighbors=by_neighbors)
    np.testing.assert_array_equal(some.vectors, every.vectors[entities])
    np.testing.assert_array_equal(some.covered, every.covered[entities])


def test_subgraphs_without_a_chosen_entity_are_not_even_built(
    two_parts: SubgraphFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[int] = []
    ready = two_parts._ready

    def noted(index: int) -> ReadySubgraph:
        built.append(index)
        return ready(index)

    monkeypatch.setattr(two_parts, "_ready", noted)
    average_subgraphs(Doubling(), ROWS, RELATIONS, two_parts, entities=np.array([2]))
    assert built == [1]


def test_the_average_over_one_subgraph_is_the_whole() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    encoder = DualAMN(4)
    entities, relations = random_rows(6, 4, 1, torch.float32)
    averaged = average_subgraphs(encoder, entities, relations, feed_of([list(range(6))], [np.array(TOY)]))
    whole = encode_full(encoder, entities, relations, structure)
    np.testing.assert_allclose(averaged.vectors, whole.vectors, atol=1e-6)


def test_an_encoder_that_knows_no_chunks_is_given_the_whole_graph() -> None:
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
    with pytest.raises(ArtifactError, match="an encoder of 18 weights cannot take 17"):
        load_weights(other, weights[:-1])


def test_embeddings_are_read_only_and_of_one_length() -> None:
    result = EntityEmbeddings(np.zeros((3, 2), dtype=np.float32), np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="read-only"):
        result.vectors[0, 0] = 1.0
    with pytest.raises(ArtifactError, match="covered"):
        EntityEmbeddings(np.zeros((3, 2), dtype=np.float32), np.ones(4, dtype=bool))
