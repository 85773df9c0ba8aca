"""The stage `integrate` hands a large graph to a cluster, the members of an ensemble one after the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from largegnn.artifacts import AlignmentTask, SubgraphSet, TrainedModel
from largegnn.embedding import integrate as whole_graph
from largegnn.embedding.dual_amn import DualAMN
from largegnn.embedding.encode import integrate
from largegnn.machine import pieces
from largegnn.machine.pieces import use_workers
from largegnn.settings import IntegrateSettings, TrainSettings
from tests.pickled_pool import PickledPool

DIM = 8


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("members", [1, 2])
def test_a_cluster_makes_the_vectors_of_one_machine(
    members: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_graph, "_MIN_ENTITIES_TO_SEND", 0)
    monkeypatch.setattr(pieces, "num_processors", lambda: 1)
    rng = np.random.default_rng(0)
    triples = np.concatenate([rng.integers(0, [50, 3, 50], (200, 3)), rng.integers([50, 3, 50], [90, 5, 90], (200, 3))])
    none = np.empty((0, 2), dtype=np.int32)
    task = AlignmentTask(50, 40, 3, 2, np.unique(triples, axis=0), none, none, none)
    shapes = (90, members * DIM), (10, members * DIM), members * sum(each.numel() for each in DualAMN(DIM).parameters())
    rows, relations, weights = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    model = TrainedModel("dual_amn", rows, relations, weights, members)
    options = task, model, SubgraphSet.empty(), TrainSettings(), IntegrateSettings()
    alone = integrate(*options, device="cpu", work=tmp_path / "work")
    pool = PickledPool()
    with use_workers(pool):
        together = integrate(*options, device="cpu", work=tmp_path / "work")
    assert pool.made["transformed"] == 2 * members, "each block of each member"
    assert np.array_equal(together.embeddings.vectors, alone.embeddings.vectors)
    assert together.embeddings.covered.all()
