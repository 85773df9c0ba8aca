from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from largegnn.artifacts import EntityEmbeddings
from largegnn.embedding import ENCODERS, average_subgraphs, build_structure, encode_full
from largegnn.embedding.layerwise import node_chunks
from largegnn.embedding.structure import GraphStructure
from largegnn.errors import ArtifactError
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_rows, random_triples


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("chunk_bytes", [1, 500, 3_000, 10**7])
def test_layer_by_layer_is_the_one_piece_forward(name: str, chunk_bytes: int, tmp_path: Path) -> None:
    triples = random_triples(40, 120, 0)
    structure = build_structure(40, triples, NUM_RELATIONS)
    torch.manual_seed(0)
    encoder = ENCODERS[name](6)
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


class Doubling:
    """An encoder whose outputs are its rows, twice as long."""

    output_dim = 2

    def __call__(
        self, entity_rows: Tensor, relation_rows: Tensor, structure: GraphStructure, nodes: Tensor | None = None
    ) -> Tensor:
        return 2 * entity_rows + structure.pair_ptr.diff().unsqueeze(1)

    def encode_in_chunks(self, *arguments: object) -> None:
        raise NotImplementedError


def test_the_average_by_hand() -> None:
    rows = torch.tensor([(3.0, 4.0), (1.0, 0.0), (0.0, 2.0), (5.0, 5.0)])
    nothing = np.empty((0, 3), dtype=np.int32)
    parts = [
        (np.array([0, 1]), build_structure(2, np.array([(0, 0, 1)]), NUM_RELATIONS)),
        (np.array([1, 2]), build_structure(2, nothing, NUM_RELATIONS)),
    ]
    relations = torch.zeros(2 * NUM_RELATIONS, 2)
    result = average_subgraphs(Doubling(), rows, relations, parts)
    # In the first part each node has one neighbour: (7, 9) and (3, 1); in the second none: (2, 0) and (0, 4).
    # A part weighs as many neighbours as it has, and a hundredth: node 1 is nearly what the first part says.
    first = np.array((7, 9)) / 130**0.5
    second = (1.01 * np.array((3, 1)) / 10**0.5 + 0.01 * np.array((1, 0))) / 1.02
    np.testing.assert_allclose(result.vectors[:3], [first, second, (0, 1)], rtol=1e-6)
    assert result.covered.tolist() == [True, True, True, False]
    assert not result.vectors[3].any()


def test_the_average_over_one_subgraph_is_the_whole() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    encoder = ENCODERS["dual_amn"](4)
    entities, relations = random_rows(6, 4, 1, torch.float32)
    averaged = average_subgraphs(encoder, entities, relations, [(np.arange(6), structure)])
    whole = encode_full(encoder, entities, relations, structure)
    np.testing.assert_allclose(averaged.vectors, whole.vectors, atol=1e-6)


def test_embeddings_are_read_only_and_of_one_length() -> None:
    result = EntityEmbeddings(np.zeros((3, 2), dtype=np.float32), np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="read-only"):
        result.vectors[0, 0] = 1.0
    with pytest.raises(ArtifactError, match="covered"):
        EntityEmbeddings(np.zeros((3, 2), dtype=np.float32), np.ones(4, dtype=bool))
