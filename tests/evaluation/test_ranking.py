"""Ranks of test links that a search shows equal those counted from all scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, IntArray, LiteralEvidence
from largegnn.evaluation.evaluate import _TestRanking as Ranking
from largegnn.settings import MatchSettings

_LINKS = 400


@pytest.fixture(params=[0.3, 1.0])
def vectors(request: pytest.FixtureRequest) -> np.ndarray[Any, Any]:
    """Sources and targets around a few centres, a target near its source; one pair of zeros, some equal rows."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((20, 8))
    sources = centres[rng.integers(0, 20, _LINKS)] + rng.standard_normal((_LINKS, 8))
    targets = sources + request.param * rng.standard_normal((_LINKS, 8))
    sources[5] = targets[9] = 0.0
    targets[20:24] = targets[20]
    return np.concatenate([sources, targets]).astype(np.float32)


def _task(test_links: np.ndarray[Any, Any]) -> AlignmentTask:
    triples = np.array([(0, 0, 1), (_LINKS, 1, _LINKS + 1)], dtype=np.int32)
    none = np.empty((0, 2), dtype=np.int32)
    return AlignmentTask(_LINKS, _LINKS, 1, 1, triples, none, none, test_links)


def _ranks(task: AlignmentTask, vectors: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    embeddings = EntityEmbeddings(vectors, np.ones(len(vectors), dtype=bool))
    held = Ranking(task, embeddings, MatchSettings(), 0, torch.device("cpu"), 1.0)
    found = held.ranks(("structure",), task.train_links, LiteralEvidence.empty(), {"cosine": 1.0, "literal": 1.0})
    return {name: np.stack([found[name].source_to_target, found[name].target_to_source]) for name in ("cosine", "csls")}


def test_what_the_search_shows_is_what_counting_gives(
    vectors: np.ndarray[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = np.arange(_LINKS, dtype=np.int32)
    task = _task(np.stack([ids, ids + _LINKS], axis=1))
    counted: list[int] = []
    count = Ranking._count

    def counting(self: Ranking, chosen: IntArray) -> Any:
        counted.append(len(chosen))
        return count(self, chosen)

    monkeypatch.setattr(Ranking, "_count", counting)
    some = _ranks(task, vectors)
    assert 0 < counted[0] < _LINKS  # some were shown, some were not
    monkeypatch.setattr(Ranking, "_by_search", _nothing_shown)
    everything = _ranks(task, vectors)
    assert counted[1] == _LINKS
    for name in ("cosine", "csls"):
        assert np.array_equal(some[name], everything[name])
    assert some["cosine"][0, 5] == some["cosine"][1, 9] == _LINKS  # no vector: last


def test_an_entity_of_two_links_has_a_rank_in_each() -> None:
    """Source 1 belongs to two targets, of which the farther one comes second; it does not tie with itself."""
    found = np.eye(4, 8, dtype=np.float32).repeat(_LINKS // 2, axis=0)
    found[[0, _LINKS]] = np.eye(8, dtype=np.float32)[6]
    found[[1, _LINKS + 1]] = np.eye(8, dtype=np.float32)[7]
    found[_LINKS + 2] = np.eye(8, dtype=np.float32)[7] + 0.5
    ranks = _ranks(_task(np.array([(0, _LINKS), (1, _LINKS + 1), (1, _LINKS + 2)], dtype=np.int32)), found)
    assert ranks["cosine"].tolist() == [[1, 1, 2], [1, 1, 1]]


def _nothing_shown(self: Ranking) -> Any:
    shown, is_shown = _BY_SEARCH(self)
    return shown, np.zeros_like(is_shown)


_BY_SEARCH = Ranking._by_search
