from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from largegnn.artifacts import IntArray
from largegnn.embedding import integrate
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.gcn import GCN
from largegnn.embedding.integrate import WholeGraph, encode_full
from largegnn.embedding.layerwise import node_ranges
from largegnn.embedding.structure import build_structure
from largegnn.machine import pieces
from largegnn.machine.pieces import use_workers
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_rows, random_triples
from tests.pickled_pool import PickledPool

DIM = 12
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrate, "_MIN_ENTITIES_TO_SEND", 0)
    monkeypatch.setattr(pieces, "num_processors", lambda: 1)


@pytest.mark.parametrize("chunk_bytes", [1, 500, 3_000, 10**7])
def test_layer_by_layer_is_the_one_piece_forward(chunk_bytes: int, tmp_path: Path) -> None:
    structure = build_structure(40, random_triples(40, 120, 0), NUM_RELATIONS)
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


def test_ranges_cover_all_nodes_within_the_budget() -> None:
    ptr = np.array([0, 3, 3, 20, 21, 22, 25])
    for budget in (1, 100, 200, 10**6):
        ranges = list(node_ranges(ptr, 4, budget))
        assert [node for each in ranges for node in range(*each)] == list(range(6))
        for start, stop in ranges:
            assert stop - start == 1 or (ptr[stop] - ptr[start] + stop - start) * 4 * 3 <= budget
    assert len(list(node_ranges(ptr, 4, 10**6))) == 1


@pytest.mark.parametrize("make", [DualAMN, GCN])
@pytest.mark.parametrize(
    ("num_nodes", "triples"),
    [
        (6, TOY),
        (4, np.empty((0, 3), dtype=np.int32)),
        (1, np.empty((0, 3), dtype=np.int32)),
        (3_000, random_triples(3_000, 20_000, 1)),
        (300, random_triples(300, 30_000, 2)),  # dozens of pairs in a slot
    ],
)
@pytest.mark.parametrize("memory_bytes", [16, 2**19, 2**23, 2**30])
def test_the_workers_of_a_cluster_give_what_one_machine_gives_to_the_bit(
    make: type[DualAMN] | type[GCN], num_nodes: int, triples: IntArray, memory_bytes: int
) -> None:
    if memory_bytes == 16 and num_nodes > 10:
        pytest.skip("a piece for each node")
    torch.manual_seed(0)
    encoder = make(DIM).eval()
    rows, relations = random_rows(num_nodes, DIM, 0, torch.float32)
    graph = WholeGraph(num_nodes, triples, NUM_RELATIONS, memory_bytes)
    expected = graph.encode(encoder, rows.numpy(), relations)
    pool = PickledPool()
    with use_workers(pool):
        found = graph.encode(encoder, rows.numpy(), relations)
        # A member of an ensemble: its rows are every other column, and its vectors half of the columns.
        wide, both = np.repeat(rows.numpy(), 2, axis=1), np.zeros((num_nodes, 2 * encoder.output_dim), np.float32)
        own = both[:, encoder.output_dim :]
        graph.encode(encoder, wide[:, ::2], relations, outputs=own)
    assert np.array_equal(found, expected)
    assert np.array_equal(own, expected)
    assert not both[:, : encoder.output_dim].any()
    assert pool.made["neighborhood_rows"] >= 2 * 1


def test_small_graphs_and_small_clusters_are_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, relations = random_rows(6, DIM, 0, torch.float32)
    pool = PickledPool()
    with use_workers(pool):
        monkeypatch.setattr(pieces, "num_processors", lambda: 2)  # as many as workers
        WholeGraph(len(rows), TOY, NUM_RELATIONS, 2**20).encode(DualAMN(DIM), rows, relations)
        monkeypatch.setattr(pieces, "num_processors", lambda: 1)
        monkeypatch.setattr(integrate, "_MIN_ENTITIES_TO_SEND", 7)
        WholeGraph(len(rows), TOY, NUM_RELATIONS, 2**20).encode(DualAMN(DIM), rows, relations)
    assert not pool.made
