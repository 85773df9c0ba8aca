"""Rules by the workers of a cluster: the same candidates and evidence to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from largegnn.machine import pieces
from largegnn.machine.pieces import use_workers
from largegnn.matching import candidates, exact_search, neighbor_rows, relations
from tests.matching.mirrored import SIDE, assert_equal, matched, mirrored_task, mirrored_vectors
from tests.pickled_pool import PickledPool


def test_pieces_give_what_one_machine_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_PIECE", 200)  # the same on one machine: sums are made by these
    monkeypatch.setattr(candidates, "_COSINE_CHUNK", 64)
    task, vectors = mirrored_task(), mirrored_vectors(tmp_path)
    pool = PickledPool()
    with use_workers(pool):
        alone = matched(task, vectors)
        assert not pool.made, "too little to send"
        for module in (neighbor_rows, candidates, exact_search):
            monkeypatch.setattr(module, "_WORTH_SENDING", 1)
        monkeypatch.setattr(pieces, "num_processors", lambda: 2)
        matched(task, vectors)
        assert not pool.made, "as many processors here as workers"
        monkeypatch.setattr(pieces, "num_processors", lambda: 1)
        together = matched(task, vectors)
    assert {"search_piece", "support_piece", "relations_piece", "rule_piece", "cosine_piece"} <= set(pool.made)
    assert len(alone[0]) > 5 * SIDE
    assert (alone[0].column("support") > 0).sum() > SIDE
    assert_equal(together, alone)
