"""Score the edges of a candidate graph: cosine, CSLS, transport, partial transport, reciprocal ranks.

In: a `CandidateGraph` and the weighted evidence that is added to a cosine. Out: one score for each edge.
`cosine` is the plain similarity; `csls` subtracts how near an entity is to all others (Lample et al., 2018);
`transport` lets all entities of both sides compete (Sinkhorn), for graphs in which nearly every entity has a
counterpart; `partial_transport` also if many have none; `reciprocal` combines the ranks of both ends, where each end
prefers candidates that prefer it (RInf, Zeng et al., 2021).
A scoring also has a margin for edges without a rival, and default weights for scores without valid links. A plain
function with the arguments of a scoring is a scoring, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from largegnn.artifacts import CandidateGraph, EntityEmbeddings, FloatArray, IntArray
from largegnn.matching.candidates import edge_ranks
from largegnn.matching.evidence import CSLS_PER_COSINE
from largegnn.matching.transport import dense_plan, fits_dense, partial_plan, transport_edges
from largegnn.parts import SCORINGS

__all__ = [
    "COSINE",
    "CSLS",
    "PARTIAL_TRANSPORT",
    "RECIPROCAL",
    "TRANSPORT",
    "DefaultWeights",
    "Scoring",
    "ScoringContext",
    "csls_column",
    "scoring_of",
    "weighted_evidence",
]


@dataclass(frozen=True)
class ScoringContext:
    """The input of a scoring besides the graph: vectors, and options of a transport.

    `num_links` is the expected number of links among the entities (None if unknown), `cosine_weight` the weight of a
    cosine in the similarity of a pair.
    """

    embeddings: EntityEmbeddings
    temperature: float
    iterations: int
    device: torch.device
    num_links: float | None = None
    cosine_weight: float = 1.0


ScoreFunction = Callable[[CandidateGraph, FloatArray, ScoringContext], FloatArray]


@dataclass(frozen=True)
class DefaultWeights:
    """Weights for too few valid links: of columns of evidence, of both margins, and an offset."""

    evidence: Mapping[str, float]
    margins: tuple[float, float]
    offset: float


@dataclass(frozen=True)
class Scoring:
    """A scoring of edges; `lone_margin` is the margin of a pair without a rival, and the maximum of other margins."""

    score: ScoreFunction
    lone_margin: float = 0.5
    default_weights: DefaultWeights = DefaultWeights({"csls": 3.2, "support": 0.8}, (6.5, 5.0), -2.1)


def scoring_of(name: str) -> Scoring:
    """Look up a scoring by name; a plain function becomes a scoring with the default margin and weights."""
    scoring = SCORINGS[name]
    return scoring if isinstance(scoring, Scoring) else Scoring(scoring)


def weighted_evidence(graph: CandidateGraph, weights: Mapping[str, float]) -> FloatArray:
    """Compute what the evidence besides the vectors adds to the cosine of each edge, (e,)."""
    added = np.zeros(len(graph), dtype=np.float32)
    for name, weight in weights.items():
        if weight and name in graph.evidence:
            added += np.float32(weight) * graph.column(name)
    return added


def _cosine(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    base = graph.column("similarity" if "similarity" in graph.evidence else "cosine")
    return np.asarray(base + added, dtype=np.float32)


def _csls(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    # CSLS counts the cosine twice, hence also the evidence that is added to it.
    return np.asarray(graph.column(csls_column(graph)) + CSLS_PER_COSINE * added, dtype=np.float32)


def csls_column(graph: CandidateGraph) -> str:
    """The column of CSLS in use: of the similarity of vectors and literals if there is one, else of the vectors."""
    return "similarity_csls" if "similarity_csls" in graph.evidence else "csls"


def _transport(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    """Compute the logarithm of the plan, over all pairs if they fit into memory, else over the candidates."""
    cosines = _cosine(graph, added, context)
    if not len(graph):
        return cosines
    sources, rows = np.unique(graph.sources, return_inverse=True)
    targets, columns = np.unique(graph.targets, return_inverse=True)
    shape, options = (len(sources), len(targets)), (context.temperature, context.iterations)
    if not fits_dense(shape, context.device):
        return transport_edges(rows, columns, cosines, shape, *options)
    vectors = context.embeddings.vectors[sources], context.embeddings.vectors[targets]
    weight = context.cosine_weight if "similarity" in graph.evidence else 1.0
    plan = dense_plan(*vectors, (rows, columns), cosines, *options, context.device, weight)
    ends = (torch.from_numpy(rows).to(context.device), torch.from_numpy(columns).to(context.device))
    values: FloatArray = plan[ends].cpu().numpy()
    return values


def _partial_transport(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    """Compute the logarithm of the plan over the candidates and "no counterpart"."""
    scores = _csls(graph, added, context) / np.float32(2)
    return partial_plan(graph, scores, context.temperature, context.iterations, num_links=context.num_links)


def _reciprocal(graph: CandidateGraph, added: FloatArray, context: ScoringContext) -> FloatArray:
    """Score by minus the mean of two ranks: each end ranks candidates by its score less the best score they have."""
    scores = _csls(graph, added, context)
    # 1.01: among candidates that prefer this end, whose difference is 0, the higher score decides.
    gains = [np.float32(1.01) * scores - _best_scores(ends, scores) for ends in (graph.targets, graph.sources)]
    ranks = edge_ranks(graph, gains[0], gains[1])
    # Among equal ranks the score decides; it adds less than half a rank.
    return np.asarray(-(ranks.source + ranks.target) / 2 + 0.2 * np.tanh(scores), dtype=np.float32)


def _best_scores(ends: IntArray, scores: FloatArray) -> FloatArray:
    """Compute the best score among the edges of the end of each edge (e,)."""
    best = np.full(int(ends.max(initial=-1)) + 1, -np.inf, dtype=np.float32)
    np.maximum.at(best, ends, scores)
    return best[ends]


# The default weights were fitted by valid links: those of CSLS and cosine on ContEA_FR_EN, and no others order the
# pairs of other sets better; all others are means of fits on two of three sets at a time.
# Scores of a transport are logarithms, and ranks are whole numbers, so their margins are large.
COSINE = Scoring(_cosine, 0.25, DefaultWeights({"csls": 3.2, "support": 0.8}, (13.0, 10.0), -2.1))
CSLS = Scoring(_csls)
PARTIAL_TRANSPORT = Scoring(_partial_transport, 5.0, DefaultWeights({"csls": 2.0, "support": 1.1}, (0.42, 0.34), -1.7))
RECIPROCAL = Scoring(_reciprocal, 5.0, DefaultWeights({"csls": 2.7, "support": 1.9}, (0.41, 0.29), -2.1))
TRANSPORT = Scoring(_transport, 5.0, DefaultWeights({"csls": 3.4, "support": 1.9}, (0.45, 0.26), -2.2))
