from __future__ import annotations

import numpy as np
import pytest
import torch

from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.gcn import GCN
from largegnn.embedding.integrate import encode_full
from largegnn.embedding.pair_graph import build_pair_graph
from largegnn.embedding.structure import build_structure
from largegnn.embedding.whole_graph import encode_graph, encode_nodes, fits_fused, within_reach
from tests.embedding.random_graphs import NUM_RELATIONS, random_rows, random_triples

CPU = torch.device("cpu")
NUM_NODES, DIM = 300, 6


def chain_and_cloud() -> np.ndarray:
    """A chain of the first 100 nodes, and a cloud of the others that node 50 belongs to."""
    ends = np.arange(99)
    chain = np.stack([ends, ends % NUM_RELATIONS, ends + 1], axis=1)
    cloud = random_triples(200, 600, 2) + np.array([100, 0, 100])
    return np.concatenate([chain, cloud, [[50, 0, 100]]])


@pytest.mark.parametrize("make", [DualAMN, GCN])
def test_what_lies_within_reach_is_all_that_counts(make: type[DualAMN] | type[GCN]) -> None:
    triples = chain_and_cloud()
    torch.manual_seed(0)
    encoder = make(DIM).double()
    rows, relations = random_rows(NUM_NODES, DIM, 0)
    with torch.no_grad():
        whole = encoder(rows, relations, build_structure(NUM_NODES, triples, NUM_RELATIONS))
        for entities in (np.array([10]), np.array([48, 90]), np.array([100, 205])):
            near, chosen = within_reach(entities, triples, NUM_NODES, encoder.reach)
            structure = build_structure(len(near), chosen, NUM_RELATIONS)
            nodes = torch.from_numpy(np.searchsorted(near, entities))
            found = encoder(rows[near], relations, structure, nodes)
            torch.testing.assert_close(found, whole[entities])
    near, chosen = within_reach(np.array([10]), triples, NUM_NODES, 3)
    assert near.tolist() == [7, 8, 9, 10, 11, 12, 13]
    assert len(chosen) == 6


def test_vectors_of_some_nodes_are_those_of_the_whole_graph() -> None:
    triples = chain_and_cloud()
    torch.manual_seed(0)
    encoder = DualAMN(DIM)
    rows, relations = random_rows(NUM_NODES, DIM, 0, torch.float32)
    whole = encode_full(encoder, rows, relations, build_structure(NUM_NODES, triples, NUM_RELATIONS)).vectors
    graph = build_pair_graph(NUM_NODES, torch.from_numpy(triples), NUM_RELATIONS)
    nodes = torch.tensor([3, 50, 120, 299])
    found = encode_nodes(encoder, rows, relations, graph, nodes)
    np.testing.assert_allclose(found, whole[nodes.numpy()], rtol=1e-4, atol=1e-5)


def test_without_a_gpu_the_graph_is_encoded_in_chunks() -> None:
    triples = chain_and_cloud()
    encoder = DualAMN(DIM)
    rows, relations = random_rows(NUM_NODES, DIM, 0, torch.float32)
    assert not fits_fused(encoder, NUM_NODES, len(triples), DIM, CPU, 2**40)
    outputs = np.empty((NUM_NODES, encoder.output_dim), dtype=np.float32)
    found = encode_graph(encoder, rows, relations, triples, memory_bytes=2**20, outputs=outputs)
    structure = build_structure(NUM_NODES, triples, NUM_RELATIONS)
    expected = encode_full(encoder, rows, relations, structure, chunk_bytes=2**16)
    assert found.vectors is outputs or np.shares_memory(found.vectors, outputs)
    assert np.array_equal(found.vectors, expected.vectors)
