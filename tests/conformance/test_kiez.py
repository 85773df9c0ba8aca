"""CSLS of candidate edges against kiez (Obraczka and Rahm, 2021), which has it as a distance: one minus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from largegnn.matching.candidates import csls
from largegnn.matching.search import search_both
from largegnn.matching.union import build_candidates

kiez: Any = pytest.importorskip("kiez", reason="kiez is not installed (make conformance)")

NUM_SOURCES, NUM_TARGETS = 130, 170


@pytest.mark.filterwarnings("ignore")  # kiez was written before NumPy 2
@pytest.mark.parametrize("k", [2, 5, 10])
def test_csls(k: int) -> None:
    rng = np.random.default_rng(k)
    hub = rng.normal(size=12)
    sources, targets = (rng.normal(size=(count, 12)) + hub for count in (NUM_SOURCES, NUM_TARGETS))
    theirs = kiez.Kiez(n_candidates=k, algorithm="SklearnNN", algorithm_kwargs={"metric": "cosine"}, hubness="CSLS")
    theirs.fit(sources, targets)
    distances, targets_of = theirs.kneighbors()
    found = search_both(
        sources.astype(np.float32),
        targets.astype(np.float32),
        k,
        "torch",
        source_ids=np.arange(NUM_SOURCES),
        target_ids=NUM_SOURCES + np.arange(NUM_TARGETS),
    )
    graph = build_candidates(*found)
    scores = csls(graph, *found, k)
    ours = dict(zip(map(tuple, graph.pairs().tolist()), scores.tolist(), strict=True))
    assert distances.shape == (NUM_SOURCES, k)
    for source in range(NUM_SOURCES):
        expected = {
            (source, NUM_SOURCES + int(target)): -distance
            for target, distance in zip(targets_of[source], distances[source], strict=True)
        }
        assert {edge: ours[edge] for edge in expected} == pytest.approx(expected, abs=2e-5)
        best = max(expected, key=lambda edge: ours[edge])
        assert best[1] == NUM_SOURCES + int(targets_of[source][0]), "theirs are sorted"
