"""The cosines of candidate pairs: from memory, and from a mapped file window by window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import CandidateGraph, EntityEmbeddings
from largegnn.machine.mapped_file import file_behind
from largegnn.matching import candidates
from largegnn.matching.candidates import edge_cosines

NUM_SOURCES, NUM_TARGETS, DIM = 70, 90, 4


@pytest.fixture
def graph() -> CandidateGraph:
    """A third of all pairs, in order."""
    sources, targets = np.nonzero(np.random.default_rng(0).random((NUM_SOURCES, NUM_TARGETS)) < 0.3)
    return CandidateGraph(sources, targets + NUM_SOURCES)


def embeddings() -> EntityEmbeddings:
    vectors = np.random.default_rng(1).standard_normal((NUM_SOURCES + NUM_TARGETS, DIM)).astype(np.float32)
    vectors[3] = 0.0
    covered = np.ones(len(vectors), dtype=bool)
    covered[NUM_SOURCES + 5] = False
    return EntityEmbeddings(vectors, covered)


def test_by_hand(graph: CandidateGraph) -> None:
    given = embeddings()
    lengths = np.linalg.norm(given.vectors, axis=1)
    found = edge_cosines(graph, given)
    for edge, (source, target) in enumerate(zip(graph.sources, graph.targets, strict=True)):
        if source == 3 or target == NUM_SOURCES + 5:
            assert found[edge] == -1.0
        else:
            product = float(given.vectors[source] @ given.vectors[target])
            assert found[edge] == pytest.approx(product / (lengths[source] * lengths[target]), abs=1e-6)


@pytest.mark.parametrize(("rows", "most"), [(1_000, 8), (7, 100), (1, 3)])
def test_windows_of_a_file_change_nothing(
    graph: CandidateGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, most: int
) -> None:
    given = embeddings()
    np.save(tmp_path / "vectors.npy", given.vectors)
    mapped = EntityEmbeddings(np.load(tmp_path / "vectors.npy", mmap_mode="r"), given.covered)
    assert file_behind(mapped.vectors) is not None
    monkeypatch.setattr(candidates, "_WINDOW_BYTES", rows * 4 * DIM)
    monkeypatch.setattr(candidates, "_MAX_WINDOWS", most)
    np.testing.assert_array_equal(edge_cosines(graph, mapped), edge_cosines(graph, given))


def test_a_window_reads_few_rows_at_either_end(graph: CandidateGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_WINDOW_BYTES", 10 * 4 * DIM)
    monkeypatch.setattr(candidates, "_MAX_WINDOWS", 100)
    windows = list(candidates._windows(graph, embeddings()))
    assert len(windows) == 7 * 9
    for edges in windows:
        assert np.ptp(graph.sources[edges]) < 10
        assert np.ptp(graph.targets[edges]) < 10
    np.testing.assert_array_equal(np.sort(np.concatenate(windows)), np.arange(len(graph)))


def test_no_candidates_have_no_cosines(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", embeddings().vectors)
    mapped = EntityEmbeddings(np.load(tmp_path / "vectors.npy", mmap_mode="r"), embeddings().covered)
    none = CandidateGraph(np.empty(0), np.empty(0))
    assert edge_cosines(none, mapped).shape == edge_cosines(none, embeddings()).shape == (0,)
