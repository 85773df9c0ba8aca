"""Ranks and their measures against PyKEEN (Ali et al., 2021): equal scores stand before the true one there and here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from largegnn.evaluation.metrics import DEFAULT_MEASURES, Ranks, rank_links, rank_matrix, summarise

COUNT = 90


@pytest.fixture(scope="module")
def pykeen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The package; where it keeps its data is a folder of ours."""
    home: Path = tmp_path_factory.mktemp("pykeen")
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        for name in ("PYSTOW_HOME", "PYKEEN_HOME"):
            patch.setenv(name, str(home))
        return pytest.importorskip("pykeen.metrics.ranking", reason="pykeen is not installed (make conformance)")


@pytest.mark.filterwarnings("ignore")
def test_measures_of_ranks(pykeen: Any) -> None:
    rng = np.random.default_rng(0)
    ranks = Ranks(rng.zipf(1.4, COUNT), rng.integers(1, 40, COUNT))
    theirs = {f"hits@{k}": pykeen.HitsAtK(k) for k in (1, 5, 10)} | {"mrr": pykeen.InverseHarmonicMeanRank()}
    assert theirs.keys() == set(DEFAULT_MEASURES)
    ours = summarise(ranks)
    both = np.concatenate([ranks.source_to_target, ranks.target_to_source])
    for figures, given in ((ours.source_to_target, ranks.source_to_target), (ours.mean, both)):
        for name, measure in theirs.items():
            assert figures[name] == pytest.approx(measure(given)), name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("levels", [5, 1000])
def test_ranks_with_ties(pykeen: Any, levels: int) -> None:
    """Few distinct scores, so that most rows have ties with the true one."""
    from pykeen.evaluation.ranks import Ranks as Theirs

    rng = np.random.default_rng(levels)
    scores = torch.from_numpy((rng.integers(0, levels, (COUNT, COUNT)) / levels).astype(np.float32))
    gold = np.arange(COUNT)
    ours = rank_matrix(scores, gold, gold)
    for found, matrix in ((ours.source_to_target, scores), (ours.target_to_source, scores.T)):
        theirs = Theirs.from_scores(true_score=matrix.diagonal()[:, None], all_scores=matrix)
        assert found.tolist() == theirs.pessimistic.tolist()
    assert pykeen is not None


@pytest.mark.filterwarnings("ignore")
def test_ranks_of_links_by_cosine(pykeen: Any) -> None:
    from pykeen.evaluation.ranks import Ranks as Theirs

    rng = np.random.default_rng(1)
    sources = rng.normal(size=(COUNT, 8)).astype(np.float32)
    targets = sources + rng.normal(scale=0.8, size=(COUNT, 8)).astype(np.float32)
    ours = rank_links(sources, targets, "cosine")
    unit = [torch.nn.functional.normalize(torch.from_numpy(vectors)) for vectors in (sources, targets)]
    scores = unit[0] @ unit[1].T
    theirs = Theirs.from_scores(true_score=scores.diagonal()[:, None], all_scores=scores)
    assert ours.source_to_target.tolist() == theirs.pessimistic.tolist()
    hits = pykeen.HitsAtK(1)
    assert (ours.source_to_target == 1).mean() == pytest.approx(hits(theirs.pessimistic.numpy()))
