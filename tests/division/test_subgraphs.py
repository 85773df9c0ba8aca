from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask, Partition, SubgraphSet
from largegnn.division.subgraphs import build_subgraphs
from largegnn.errors import ArtifactError
from tests.division.random_tasks import make_partition, make_task, partitions, tasks, unhurried


def two_overlapping() -> tuple[AlignmentTask, Partition]:
    """Source 0 -> 1 -> 2 and target 3 -> 4, seeds (0, 3) and (2, 4); the parts {0, 1, 3} and {1, 2, 3, 4}."""
    task = make_task(3, 2, [(0, 1), (1, 2), (3, 4)], [(0, 3), (2, 4)])
    return task, make_partition(5, [[0, 1, 3], [1, 2, 3, 4]])


def test_two_overlapping_parts_by_hand() -> None:
    task, partition = two_overlapping()
    subgraphs = build_subgraphs(task, task.train_links, partition)
    first, second = subgraphs.subgraph(0), subgraphs.subgraph(1)
    assert len(subgraphs) == 2
    assert first.entities.tolist() == [0, 1, 3]
    assert first.triples.tolist() == [[0, 0, 1]]
    assert first.seeds.tolist() == [[0, 2]]
    assert second.entities.tolist() == [1, 2, 3, 4]
    assert second.triples.tolist() == [[0, 0, 1], [2, 1, 3]]
    assert second.seeds.tolist() == [[1, 3]]


@unhurried
@given(task=tasks(), data=st.data())
def test_equals_a_scan_of_all_triples_per_part(task: AlignmentTask, data: st.DataObject) -> None:
    partition = data.draw(partitions(task.num_entities))
    subgraphs = build_subgraphs(task, task.train_links, partition)
    assert len(subgraphs) == partition.num_parts
    for index in range(partition.num_parts):
        part = partition.part(index).tolist()
        subgraph = subgraphs.subgraph(index)
        triples = [[part.index(h), r, part.index(t)] for h, r, t in task.triples.tolist() if h in part and t in part]
        seeds = [[part.index(s), part.index(t)] for s, t in task.train_links.tolist() if s in part and t in part]
        assert subgraph.entities.tolist() == part
        assert subgraph.triples.tolist() == triples
        assert subgraph.seeds.tolist() == seeds


def test_subgraphs_are_views_also_of_files(tmp_path: Path) -> None:
    subgraphs = build_subgraphs(*_with_seeds(*two_overlapping()))
    names = ("entities", "entity_ptr", "triples", "triple_ptr", "seeds", "seed_ptr")
    for name in names:
        np.save(tmp_path / f"{name}.npy", getattr(subgraphs, name))
    mapped = SubgraphSet(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in names))
    for index in range(2):
        expected, found = subgraphs.subgraph(index), mapped.subgraph(index)
        assert np.shares_memory(expected.triples, subgraphs.triples)
        assert np.shares_memory(found.triples, mapped.triples)
        assert found.triples.tolist() == expected.triples.tolist()
        assert not found.entities.flags.writeable


def test_a_set_with_offsets_that_do_not_match_is_refused() -> None:
    subgraphs = build_subgraphs(*_with_seeds(*two_overlapping()))
    with pytest.raises(ArtifactError, match="seed_ptr has 1 subgraphs"):
        SubgraphSet(
            subgraphs.entities,
            subgraphs.entity_ptr,
            subgraphs.triples,
            subgraphs.triple_ptr,
            subgraphs.seeds,
            subgraphs.seed_ptr[[0, -1]],
        )
    with pytest.raises(IndexError):
        subgraphs.subgraph(2)


def _with_seeds(task: AlignmentTask, partition: Partition) -> tuple[AlignmentTask, np.ndarray, Partition]:
    return task, task.train_links, partition
