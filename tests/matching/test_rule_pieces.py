"""Rules by the workers of a cluster: the same candidates and evidence to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from largegnn.machine import worker_pool
from largegnn.machine.worker_pool import using_pool
from largegnn.matching import cosines, relations, shared_rows
from tests.matching.mirrored import SIDE, assert_equal, matched, mirrored_task, mirrored_vectors
from tests.pickled_pool import PickledPool


def test_pieces_give_what_one_machine_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_PIECE", 200)  # the same on one machine: sums are made by these
    monkeypatch.setattr(cosines, "_PIECE", 64)
    task, vectors = mirrored_task(), mirrored_vectors(tmp_path)
    pool = PickledPool()
    with using_pool(pool):
        alone = matched(task, vectors)
        assert not {"support_piece", "cosine_piece"} & set(pool.made), "too little to share"
        for module in (shared_rows, cosines):
            monkeypatch.setattr(module, "_WORTH_SHARING", 1)
        monkeypatch.setattr(worker_pool, "num_processors", lambda: 2)
        matched(task, vectors)
        assert set(pool.made) <= {"search_piece"}, "as many processors here as workers"
        monkeypatch.setattr(worker_pool, "num_processors", lambda: 1)
        together = matched(task, vectors)
    assert {"support_piece", "relations_piece", "walk_piece", "cosine_piece"} <= set(pool.made)
    assert len(alone[0]) > 5 * SIDE
    assert (alone[0].column("support") > 0).sum() > SIDE
    assert_equal(together, alone)
