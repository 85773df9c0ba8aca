from __future__ import annotations

import numpy as np
import pytest
import torch

from largegnn.embedding import structure as structure_module
from largegnn.embedding.structure import GraphStructure, build_structure
from largegnn.errors import ArtifactError
from tests.embedding.random_graphs import NUM_RELATIONS, TOY, random_triples, rows_at, rows_between


def listed(ptr: torch.Tensor, values: torch.Tensor) -> list[list[int]]:
    return [values[ptr[row] : ptr[row + 1]].tolist() for row in range(len(ptr) - 1)]


def test_the_toy_graph_by_hand() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    assert [sorted(row) for row in listed(structure.pair_ptr, structure.neighbors)] == [
        [1],
        [0, 2],
        [1, 3],
        [2],
        [],
        [],
    ]
    sets = listed(structure.member_ptr, structure.members)
    # 2 <- 3 inverse of 0; 3 <- 2 forward 0; 1 <- 2 forward 2; 2 <- 1 inverse of 2; the two of the pair 0, 1.
    assert sets == [[0], [2], [3], [5], [0, 1, 3], [0, 3, 4]]
    assert [sets[at] for at in structure.inverse_set] == [[3], [5], [0], [2], [0, 3, 4], [0, 1, 3]]
    assert listed(structure.incidence_ptr, structure.incidences) == [
        [0, 1, 3],
        [0, 2, 3, 4],
        [3, 5],
        [0, 1, 4],
        [2, 5],
        [],
    ]


@pytest.mark.parametrize("seed", range(6))
def test_pairs_slots_and_sets_say_what_the_triples_say(seed: int) -> None:
    triples = random_triples(15, 10 * seed, seed)
    structure = build_structure(15, triples, NUM_RELATIONS)
    between = rows_between(triples)
    sets = listed(structure.member_ptr, structure.members)
    assert len({tuple(rows) for rows in sets}) == len(sets) == structure.num_sets
    found = {}
    index_of = {}
    for node, pairs in enumerate(listed(structure.pair_ptr, torch.arange(structure.num_pairs))):
        for pair in pairs:
            neighbor, slot = int(structure.neighbors[pair]), int(structure.slot_of_pair[pair])
            assert structure.slot_nodes[slot] == node
            assert structure.slot_pair_ptr[slot] <= pair < structure.slot_pair_ptr[slot + 1]
            found[node, neighbor] = sets[structure.slot_sets[slot]]
            index_of[node, neighbor] = pair
    assert found == {pair: sorted(rows) for pair, rows in between.items()}
    for (node, neighbor), pair in index_of.items():
        assert structure.slot_of_reverse[pair] == structure.slot_of_pair[index_of[neighbor, node]]
    inverse = structure.slot_inverse_sets.tolist()
    assert inverse == structure.inverse_set[structure.slot_sets.long()].tolist()
    assert listed(structure.slot_ptr, structure.slot_nodes) == [
        [node] * len(row) for node, row in enumerate(listed(structure.slot_ptr, structure.slot_sets))
    ]
    for number, slots in enumerate(listed(structure.set_ptr, structure.set_slots)):
        assert all(structure.slot_sets[slot] == number for slot in slots)
    assert structure.set_nodes.tolist() == structure.slot_nodes[structure.set_slots.long()].tolist()
    assert listed(structure.incidence_ptr, structure.incidences) == [rows_at(triples, node) for node in range(15)]
    for row, nodes in enumerate(listed(structure.touched_ptr, structure.touched)):
        assert nodes == [node for node in range(15) if row in rows_at(triples, node)]
    for row, holders in enumerate(listed(structure.holder_ptr, structure.holders)):
        assert holders == [number for number, rows in enumerate(sets) for member in rows if member == row]


def test_a_graph_without_triples_or_nodes_has_a_structure() -> None:
    for num_nodes in (0, 3):
        structure = build_structure(num_nodes, np.empty((0, 3), dtype=np.int32), NUM_RELATIONS)
        assert (structure.num_nodes, structure.num_pairs, structure.num_slots, structure.num_sets) == (
            num_nodes,
            0,
            0,
            0,
        )


def test_structures_move_as_a_whole() -> None:
    structure = build_structure(6, TOY, NUM_RELATIONS)
    moved = structure.to("meta")
    assert isinstance(moved, GraphStructure)
    assert moved.device == torch.device("meta")
    assert moved.num_sets == structure.num_sets
    assert moved.num_nodes == 6


def test_more_nodes_and_relations_than_one_key_holds() -> None:
    """16.8 million entities with 10,000 relations: receiver, neighbour and relation take 65 bits."""
    last, num_rows = 2**24, 20_000
    heads, relations, tails = np.array([last, 5, 5]), np.array([9_999, 3, 0]), np.array([5, last, 7])
    receivers, neighbors, ptr, rows = structure_module._pairs(last + 1, num_rows, heads, relations, tails)
    found = {
        (receiver, neighbor): rows[ptr[pair] : ptr[pair + 1]].tolist()
        for pair, (receiver, neighbor) in enumerate(zip(receivers.tolist(), neighbors.tolist(), strict=True))
    }
    assert found == {(5, 7): [0], (5, last): [3, 19_999], (7, 5): [10_000], (last, 5): [9_999, 10_003]}
    assert list(found) == sorted(found)


@pytest.mark.parametrize("seed", range(3))
def test_long_keys_give_the_same_structure(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    triples = random_triples(15, 20 * seed, seed)
    short = build_structure(15, triples, NUM_RELATIONS)
    monkeypatch.setattr(structure_module, "_MAX_KEY_BITS", 1)
    long = build_structure(15, triples, NUM_RELATIONS)
    for field, value in vars(short).items():
        assert torch.equal(torch.as_tensor(getattr(long, field)), torch.as_tensor(value)), field


def test_a_graph_beyond_32_bit_numbers_is_refused() -> None:
    with pytest.raises(ArtifactError, match="32-bit"):
        build_structure(2**31, np.empty((0, 3), dtype=np.int32), 4)
