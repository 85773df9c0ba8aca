from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from largegnn.embedding.pair_graph import PIECE, Capacity, PairGraph, build_pair_graph, entries_of
from largegnn.embedding.structure import build_structure
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_triples, rows_at, rows_between

CPU = torch.device("cpu")


def graph_of(num_nodes: int, triples: np.ndarray) -> PairGraph:
    return build_pair_graph(num_nodes, torch.from_numpy(triples), NUM_RELATIONS)


def members_of(graph: PairGraph, index: int) -> list[int]:
    return sorted(graph.members[graph.set_of_member == index].tolist())


@pytest.mark.parametrize(("num_nodes", "num_triples"), [(6, 0), (14, 60), (40, 900)])
def test_pairs_sets_and_incidences(num_nodes: int, num_triples: int) -> None:
    triples = random_triples(num_nodes, num_triples, 3) if num_triples else TOY
    graph = graph_of(num_nodes, triples)
    expected = {pair: sorted(rows) for pair, rows in rows_between(triples).items()}
    receivers, entries = entries_of(graph.node_pieces)
    sets = graph.sets[entries].tolist()
    pairs = list(zip(receivers.tolist(), graph.neighbors[entries].tolist(), strict=True))
    assert {pair: members_of(graph, index) for pair, index in zip(pairs, sets, strict=True)} == expected
    for (receiver, neighbor), index in zip(pairs, sets, strict=True):
        assert members_of(graph, int(graph.inverse_set[index])) == expected[neighbor, receiver]
    of_set, entries = entries_of(graph.set_pieces)
    in_order = zip(graph.set_receivers[entries].tolist(), graph.set_neighbors[entries].tolist(), strict=True)
    assert dict(zip(in_order, of_set.tolist(), strict=True)) == dict(zip(pairs, sets, strict=True))
    nodes, entries = entries_of(graph.incidence_pieces)
    for node in range(num_nodes):
        assert sorted(graph.incidences[entries[nodes == node]].tolist()) == rows_at(triples, node)
    rows, entries = entries_of(graph.row_pieces)
    for row in range(2 * NUM_RELATIONS):
        touched = sorted(graph.touched[entries[rows == row]].tolist())
        assert touched == [node for node in range(num_nodes) if row in rows_at(triples, node)]


def test_counts_are_those_of_the_structure() -> None:
    triples = random_triples(40, 900, 4)
    graph, structure = graph_of(40, triples), build_structure(40, triples, NUM_RELATIONS)
    sizes = (structure.num_pairs, structure.num_sets, len(structure.members), len(structure.incidences))
    assert graph.capacity == Capacity(40, *sizes, 2 * NUM_RELATIONS)
    assert torch.equal(graph.degrees, structure.pair_ptr.diff().float())


def hub(num_leaves: int) -> np.ndarray:
    """Node 0 joined with each other node."""
    leaves = np.arange(1, num_leaves + 1)
    return np.stack([np.zeros_like(leaves), np.zeros_like(leaves), leaves], axis=1)


def test_a_long_row_is_cut_into_pieces_marked_as_such() -> None:
    graph = graph_of(301, hub(300))
    rows, starts, stops, alone = graph.node_pieces
    of_hub = (rows == 0).nonzero().flatten()
    assert (stops - starts)[of_hub].tolist() == [PIECE, PIECE, 300 - 2 * PIECE]
    assert alone[of_hub].tolist() == [0, 0, 0]
    assert alone[rows > 0].tolist() == [1] * 300


def equal_where_used(first: PairGraph, second: PairGraph) -> bool:
    return torch.equal(*(torch.stack(entries_of(graph.set_pieces)) for graph in (first, second)))


def test_a_padded_graph_is_the_same_graph_whatever_stood_there_before() -> None:
    large, small = graph_of(40, random_triples(40, 900, 4)), graph_of(14, random_triples(14, 60, 3))
    capacity = large.capacity.rounded_up()
    assert capacity.holds(large.capacity)
    assert capacity.holds(small.capacity)
    assert not small.capacity.holds(large.capacity)
    padded, fresh = PairGraph.empty(capacity, CPU), PairGraph.empty(capacity, CPU)
    padded.put(large)
    padded.put(small)
    fresh.put(small)
    for name in ("neighbors", "sets", "node_pieces", "set_pieces", "members", "set_of_member", "degrees", "num_nodes"):
        there: tuple[Tensor, Tensor] = (getattr(padded, name), getattr(fresh, name))
        assert torch.equal(*there), name
    assert equal_where_used(padded, small)
    # Members of padding belong to a set that no pair has.
    assert int(padded.set_of_member[-1]) == capacity.sets - 1 >= small.capacity.sets


@pytest.mark.parametrize("size", [1, 7, 8, 100, 12_345, 786_433])
def test_sizes_are_rounded_up_a_little(size: int) -> None:
    capacity = Capacity(size, size, size, size, size, 6).rounded_up()
    assert size < capacity.pairs <= max(size + 1, 1.13 * (size + 1))
    assert capacity.rows == 6
