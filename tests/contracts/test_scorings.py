"""What every entry of `SCORINGS` keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from largegnn.artifacts import CandidateGraph, EntityEmbeddings, FloatArray
from largegnn.matching.scorings import ScoringContext, scoring_of
from largegnn.parts import SCORINGS
from tests.matching.random_candidates import scored_graphs

every_scoring = pytest.mark.parametrize("name", list(SCORINGS))
VECTORS = np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)
CONTEXT = ScoringContext(EntityEmbeddings(VECTORS, np.ones(12, dtype=bool)), 0.05, 10, torch.device("cpu"))
Drawn = tuple[CandidateGraph, FloatArray]


def with_csls(drawn: Drawn) -> CandidateGraph:
    """What the channel `structure` gives: cosines and CSLS."""
    graph, _ = drawn
    return graph.with_evidence(csls=2 * graph.column("cosine") - np.float32(0.5))


@every_scoring
@given(drawn=scored_graphs())
def test_scores_every_edge_and_changes_nothing(name: str, drawn: Drawn) -> None:
    graph, added = with_csls(drawn), np.asarray(np.abs(drawn[1]) / 4, dtype=np.float32)
    before = added.copy()
    added.flags.writeable = False
    scores = scoring_of(name).score(graph, added, CONTEXT)
    assert scores.dtype == np.float32
    assert scores.shape == (len(graph),)
    assert bool(np.isfinite(scores).all())
    assert np.array_equal(added, before)
    assert np.array_equal(scoring_of(name).score(graph, added, CONTEXT), scores), "the same every time"


@every_scoring
@given(drawn=scored_graphs(), data=st.data())
def test_more_evidence_never_lowers_a_pair(name: str, drawn: Drawn, data: st.DataObject) -> None:
    graph = with_csls(drawn)
    if not len(graph):
        return
    edge = data.draw(st.integers(0, len(graph) - 1))
    none = np.zeros(len(graph), dtype=np.float32)
    more = none.copy()
    more[edge] = 0.5
    before, after = (scoring_of(name).score(graph, added, CONTEXT) for added in (none, more))
    assert after[edge] >= before[edge] - 1e-4
    rivals = np.flatnonzero((graph.sources == graph.sources[edge]) | (graph.targets == graph.targets[edge]))
    rivals = rivals[rivals != edge]
    gained = after[edge] - before[edge]
    assert bool((gained >= after[rivals] - before[rivals] - 1e-4).all()), "and no rival gains more by it"


@every_scoring
def test_nothing_of_nothing(name: str) -> None:
    none = np.empty(0, dtype=np.float32)
    nothing = CandidateGraph(none, none, {"cosine": none, "csls": none})
    assert scoring_of(name).score(nothing, none, CONTEXT).shape == (0,)


@every_scoring
def test_margins_have_a_bound_and_replacements_are_numbers(name: str) -> None:
    scoring = scoring_of(name)
    assert 0 < scoring.lone_margin < math.inf
    default = scoring.default_weights
    assert all(math.isfinite(value) for value in (*default.evidence.values(), *default.margins, default.offset))
    assert min(default.margins) > 0, "a pair ahead of its rivals is better than one behind"
