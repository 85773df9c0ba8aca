"""Scorings: what evidence adds to each, transport against a slow reference, functions of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.special import logsumexp

from largegnn.artifacts import CandidateGraph, EntityEmbeddings, FloatArray
from largegnn.errors import InputError
from largegnn.matching import scorings
from largegnn.matching.scorings import (
    COSINE,
    CSLS,
    PARTIAL_TRANSPORT,
    RECIPROCAL,
    TRANSPORT,
    Scoring,
    ScoringContext,
    scoring_of,
    weighted_evidence,
)
from largegnn.matching.transport import partial_plan
from largegnn.parts import SCORINGS

TEMPERATURE, ITERATIONS = 0.05, 12


@pytest.fixture
def graph() -> CandidateGraph:
    """Sources 0, 1, 3 and targets 4, 5, 7: nine pairs, of which six are candidates."""
    ends = np.array([(0, 4), (0, 5), (1, 4), (1, 7), (3, 5), (3, 7)])
    columns = {
        "cosine": [0.9, 0.5, 0.8, 0.3, 0.6, 0.1],
        "csls": [0.4, -0.2, 0.3, -0.5, 0.1, -0.9],
        "support": [1.0, 0.0, 2.0, 0.0, 0.5, 0.0],
        "name": [0.0, 1.0, 0.0, 0.5, 0.0, 0.0],
    }
    return CandidateGraph(
        ends[:, 0], ends[:, 1], {name: np.array(values, dtype=np.float32) for name, values in columns.items()}
    )


@pytest.fixture
def context() -> ScoringContext:
    vectors = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    embeddings = EntityEmbeddings(vectors, np.ones(8, dtype=bool))
    return ScoringContext(embeddings, TEMPERATURE, ITERATIONS, torch.device("cpu"))


def test_evidence_is_weighed_and_summed(graph: CandidateGraph) -> None:
    added = weighted_evidence(graph, {"support": 0.25, "name": 0.5, "cosine": 0.0, "what is not there": 9.0})
    assert added.dtype == np.float32
    assert added.tolist() == pytest.approx([0.25, 0.5, 0.5, 0.25, 0.125, 0.0])
    assert weighted_evidence(graph, {}).tolist() == [0.0] * 6
    assert weighted_evidence(CandidateGraph(np.empty(0), np.empty(0)), {"support": 1.0}).shape == (0,)


def test_cosine_counts_what_is_added_once_and_csls_twice(graph: CandidateGraph, context: ScoringContext) -> None:
    added = np.array([0.1, 0.0, 0.2, 0.0, -0.1, 0.5], dtype=np.float32)
    assert COSINE.score(graph, added, context).tolist() == pytest.approx([1.0, 0.5, 1.0, 0.3, 0.5, 0.6])
    assert CSLS.score(graph, added, context).tolist() == pytest.approx([0.6, -0.2, 0.7, -0.5, -0.1, 0.1])
    none = np.zeros(6, dtype=np.float32)
    assert np.array_equal(COSINE.score(graph, none, context), graph.column("cosine"))
    assert np.array_equal(CSLS.score(graph, none, context), graph.column("csls"))


def balance_slowly(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The log-plan of (q, c) in float64, -inf where there is nothing to score."""
    logits = scores / TEMPERATURE
    columns: npt.NDArray[Any] = np.zeros((1, scores.shape[1]))
    rows: npt.NDArray[Any] = np.zeros((scores.shape[0], 1))
    for _ in range(ITERATIONS):
        rows = -np.asarray(logsumexp(logits + columns, axis=1, keepdims=True))
        columns = -np.asarray(logsumexp(logits + rows, axis=0, keepdims=True))
    result: npt.NDArray[Any] = logits + rows + columns
    return result


def matrix_of(graph: CandidateGraph, scores: FloatArray, rest: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Scores of edges in place of what a matrix over all sources and targets holds for them."""
    matrix = rest.astype(np.float64)
    sources, targets = np.unique(graph.sources).tolist(), np.unique(graph.targets).tolist()
    for source, target, score in zip(graph.sources.tolist(), graph.targets.tolist(), scores.tolist(), strict=True):
        matrix[sources.index(source), targets.index(target)] = score
    return matrix


def at_edges(graph: CandidateGraph, plan: npt.NDArray[Any]) -> list[float]:
    sources, targets = np.unique(graph.sources).tolist(), np.unique(graph.targets).tolist()
    ends = zip(graph.sources.tolist(), graph.targets.tolist(), strict=True)
    return [float(plan[sources.index(source), targets.index(target)]) for source, target in ends]


def test_transport_lets_all_pairs_compete(graph: CandidateGraph, context: ScoringContext) -> None:
    """Pairs that are no candidates have the cosine of their vectors, candidates that of the graph and what is added."""
    added = np.array([0.1, 0.0, 0.2, 0.0, -0.1, 0.5], dtype=np.float32)
    units = context.embeddings.vectors / np.linalg.norm(context.embeddings.vectors, axis=1, keepdims=True)
    rest = units[[0, 1, 3]] @ units[[4, 5, 7]].T
    expected = balance_slowly(matrix_of(graph, graph.column("cosine") + added, rest))
    found = TRANSPORT.score(graph, added, context)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx(at_edges(graph, expected), abs=1e-4)


def test_transport_looks_at_candidates_alone_where_all_are_too_many(
    graph: CandidateGraph, context: ScoringContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorings, "fits_dense", lambda shape, device: False)
    added = np.array([0.1, 0.0, 0.2, 0.0, -0.1, 0.5], dtype=np.float32)
    nothing = np.full((3, 3), -np.inf)
    expected = balance_slowly(matrix_of(graph, graph.column("cosine") + added, nothing))
    assert TRANSPORT.score(graph, added, context).tolist() == pytest.approx(at_edges(graph, expected), abs=1e-4)


def half_cosine(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    return np.asarray(graph.column("cosine") / 2 + added, dtype=np.float32)


def test_a_plain_function_is_a_scoring(graph: CandidateGraph, context: ScoringContext) -> None:
    scoring = scoring_of(f"{__name__}:half_cosine")
    assert scoring.score is half_cosine
    usual = Scoring(half_cosine)
    assert (scoring.lone_margin, scoring.default_weights) == (usual.lone_margin, usual.default_weights)
    added = weighted_evidence(graph, {"support": 0.5})
    assert scoring.score(graph, added, context).tolist() == pytest.approx([0.95, 0.25, 1.4, 0.15, 0.55, 0.05])


def test_a_scoring_of_ones_own_with_margins_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Scoring(half_cosine, lone_margin=0.125)
    monkeypatch.setattr(SCORINGS, "_registered", {})
    assert scoring_of(SCORINGS.name_of(mine)) is mine
    with pytest.raises(InputError, match="one of cosine, csls, transport"):
        scoring_of("nonsense")


def test_partial_transport_of_half_the_csls(graph: CandidateGraph, context: ScoringContext) -> None:
    added = np.array([0.1, 0.0, 0.2, 0.0, -0.1, 0.5], dtype=np.float32)
    expected = partial_plan(graph, graph.column("csls") / np.float32(2) + added, TEMPERATURE, ITERATIONS)
    assert PARTIAL_TRANSPORT.score(graph, added, context).tolist() == pytest.approx(expected.tolist(), abs=1e-4)


def test_reciprocal_ranks(graph: CandidateGraph, context: ScoringContext) -> None:
    """CSLS of 0: 4 .4, 5 -.2; of 1: 4 .3, 7 -.5; of 3: 5 .1, 7 -.9. Best at 4 .4, 5 .1, 7 -.5; at 0 .4, 1 .3, 3 .1.

    Less the best of the target: 0: 0, -.3; 1: -.1, 0; 3: 0, -.4, so 1 looks at 7 first. Less the best of the source:
    at 4: 0 and 0, 0 the first; at 5: -.6 of 0, 0 of 3; at 7: -.8 of 1, -1 of 3.
    """
    found = RECIPROCAL.score(graph, np.zeros(6, dtype=np.float32), context)
    ranks = np.array([(1 + 1) / 2, (2 + 2) / 2, (2 + 2) / 2, (1 + 1) / 2, (1 + 1) / 2, (2 + 2) / 2])
    assert found.tolist() == pytest.approx((-ranks + 0.2 * np.tanh(graph.column("csls"))).tolist(), abs=1e-5)
