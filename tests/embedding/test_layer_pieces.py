from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from largegnn.artifacts import IntArray
from largegnn.embedding import whole_graph
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.gcn import GCN
from largegnn.embedding.layer_files import LayerFiles, LayerRows
from largegnn.embedding.whole_graph import encode_graph
from largegnn.machine import worker_pool
from largegnn.machine.worker_pool import using_pool
from tests.embedding.random_graphs import TOY, random_rows, random_triples
from tests.pickled_pool import PickledPool

DIM = 12
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_graph, "_WORTH_SHARING", 0)
    monkeypatch.setattr(worker_pool, "num_processors", lambda: 1)


def test_rows_are_read_from_whichever_files_they_are_in(tmp_path: Path) -> None:
    rows = np.arange(30, dtype=np.float32).reshape(10, 3)
    files = LayerFiles(str(tmp_path / "rows"), np.array([0, 4, 4, 9, 10]), 3)
    for number in (3, 0, 2, 1):
        start, stop = files.bounds[number : number + 2]
        files.write(number, [rows[start : start + 1], rows[start + 1 : stop]] if start < stop else [])
    read = LayerRows(files)
    for ids in ([], [0], [3, 4, 8, 9], [0, 0, 5], range(10)):
        assert np.array_equal(read.take(np.array(ids, dtype=np.int64)), rows[list(ids)])
    for start, stop in ((0, 10), (2, 5), (4, 9), (9, 10), (3, 3)):
        assert np.array_equal(read.part(start, stop), rows[start:stop])
    assert not list(tmp_path.rglob("*.partial"))
    files.remove()
    assert not list(tmp_path.iterdir())


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
def test_pieces_give_what_one_machine_gives_to_the_bit(
    num_nodes: int, triples: IntArray, memory_bytes: int, tmp_path: Path
) -> None:
    if memory_bytes == 16 and num_nodes > 10:
        pytest.skip("a file for each node")
    torch.manual_seed(0)
    encoder = DualAMN(DIM).eval()
    rows, relations = random_rows(num_nodes, DIM, 0, torch.float32)
    how: Any = {"memory_bytes": memory_bytes, "scratch": tmp_path / "layers"}
    expected = encode_graph(encoder, rows.numpy(), relations, triples, **how)
    assert not list(tmp_path.iterdir()), "without a cluster nothing is written"
    pool = PickledPool()
    with using_pool(pool):
        found = encode_graph(encoder, rows.numpy(), relations, triples, **how)
        # A member of an ensemble: its rows lie apart, and so do its vectors.
        wide, side = np.repeat(rows.numpy(), 2, axis=1), np.zeros((num_nodes, 2 * encoder.output_dim), np.float32)
        own = side[:, encoder.output_dim :]
        encode_graph(encoder, wide[:, ::2], relations, triples, outputs=own, **how)
    assert np.array_equal(found.vectors, expected.vectors)
    assert np.array_equal(own, expected.vectors)
    assert not side[:, : encoder.output_dim].any()
    assert pool.made["reflected_piece"] >= 2 * 4
    assert not list(tmp_path.iterdir()), "what was written is gone"


def test_small_graphs_and_other_encoders_stay_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, relations = random_rows(6, DIM, 0, torch.float32)
    pool = PickledPool()
    with using_pool(pool):
        encode_graph(GCN(DIM), rows, relations, TOY, memory_bytes=2**20, scratch=tmp_path)
        encode_graph(DualAMN(DIM), rows, relations, TOY, memory_bytes=2**20)
        monkeypatch.setattr(worker_pool, "num_processors", lambda: 2)  # as many as workers
        encode_graph(DualAMN(DIM), rows, relations, TOY, memory_bytes=2**20, scratch=tmp_path)
        monkeypatch.setattr(worker_pool, "num_processors", lambda: 1)
        monkeypatch.setattr(whole_graph, "_WORTH_SHARING", 7)
        encode_graph(DualAMN(DIM), rows, relations, TOY, memory_bytes=2**20, scratch=tmp_path)
    assert not pool.made
