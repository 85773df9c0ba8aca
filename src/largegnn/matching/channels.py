"""Gather candidate pairs from channels, each with columns of evidence: structure, literals, rules.

In: the candidates of the channels before, and the input of the channels. Out: candidates with more pairs or more
evidence. `structure` proposes the pairs that the search found from either side, with `cosine` and `csls`; `literals`
proposes pairs with similar names and values; `rules` proposes pairs next to matched pairs, and adds `support`, the
number of matched neighbours of a pair. `structure` alone is exactly the system of the paper. A new channel is a
function here and a line in `CHANNELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from largegnn.artifacts import (
    AlignmentTask,
    CandidateGraph,
    EntityEmbeddings,
    IntArray,
    LiteralEvidence,
    Mask,
    Neighbors,
)
from largegnn.matching.candidates import csls, edge_cosines
from largegnn.matching.evidence import CSLS_PER_COSINE, LITERAL_PER_COSINE
from largegnn.matching.evidence_weights import localised
from largegnn.matching.scorings import csls_column
from largegnn.matching.support import SupportFinder
from largegnn.matching.union import build_candidates, grown_by, joined_with

__all__ = [
    "CHANNELS",
    "Channel",
    "ChannelContext",
    "gather_candidates",
    "literals",
    "relocalised",
    "rules",
    "similarity_weights",
    "structure",
]

_NUM_PROPOSALS = 2  # rounds of proposing pairs, each after a pass of support
_NUM_PASSES = 2  # passes of support after the proposals
_MAX_NEAREST = 5  # maximum neighbourhood of CSLS among candidates, which are few


@dataclass(frozen=True)
class ChannelContext:
    """The input of a channel: the graphs without test links, the seeds (k, 2), vectors, and the found neighbours.

    `weights` is what one unit of each kind of evidence adds to a cosine; `similarity_weights` are the weights of
    vectors and literals in their common similarity. Rules propose at most `rule_candidates` pairs for each source.
    """

    task: AlignmentTask
    seeds: IntArray
    embeddings: EntityEmbeddings
    source_neighbors: Neighbors
    target_neighbors: Neighbors
    csls_k: int
    weights: Mapping[str, float]
    literal_evidence: LiteralEvidence = field(default_factory=LiteralEvidence.empty)
    similarity_weights: Mapping[str, float] = field(default_factory=lambda: {"cosine": 1.0, "literal": 1.0})
    rule_candidates: int = 0


Channel = Callable[[CandidateGraph, ChannelContext], CandidateGraph]


def gather_candidates(names: Sequence[str], context: ChannelContext) -> CandidateGraph:
    """Gather the candidates of these channels; each channel adds to the candidates of the channels before."""
    # Popped, never held here: a channel can release the graph it was given, which is as large as the new graph.
    passed = [CandidateGraph(np.empty(0), np.empty(0))]
    for name in names:
        passed.append(CHANNELS[name](passed.pop(), context))
        passed.append(passed.pop().without(context.task.forbidden))
    return passed.pop()


def structure(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
    """Add the pairs that the search found, with cosine and CSLS."""
    found = build_candidates(context.source_neighbors, context.target_neighbors)
    if len(graph):
        graph = joined_with(graph, found.pairs())
        found = graph.with_evidence(cosine=edge_cosines(graph, context.embeddings))
    return found.with_evidence(csls=csls(found, context.source_neighbors, context.target_neighbors, context.csls_k))


def literals(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
    """Add the pairs proposed by names and values, with evidence; combine vectors and literals into one `similarity`.

    `similarity_csls` is the CSLS of the similarity.
    """
    evidence = context.literal_evidence
    if not len(evidence.pairs):
        return graph
    joined, is_new = grown_by(graph, evidence.pairs)
    if "cosine" in graph.evidence:
        joined = _with_cosines(joined, is_new, context)
    columns = {name: np.zeros(len(joined), dtype=np.float32) for name in evidence.columns}
    edges = joined.find(evidence.pairs)
    for name, values in zip(evidence.columns, evidence.evidence, strict=True):
        columns[name][edges] = values
    return _with_similarity(joined.with_evidence(**columns), context)


def relocalised(graph: CandidateGraph, k: int) -> CandidateGraph:
    """Compute `similarity_csls` again from the edges of the graph, if it has a similarity."""
    if "similarity" not in graph.evidence:
        return graph
    similarity = graph.column("similarity").astype(np.float64)
    return graph.with_evidence(similarity_csls=localised(graph, similarity, min(k, _MAX_NEAREST)))


def similarity_weights(
    links: IntArray, source_neighbors: Neighbors, literal_evidence: LiteralEvidence
) -> dict[str, float]:
    """Weigh vectors and literals by the shares of held-out links (l, 2) whose target is ranked first by either.

    Without links both weights are 1. Targets are ranked among all free entities, so evidence that cannot distinguish
    them gets no weight.
    """
    if not len(links):
        return {"cosine": 1.0, "literal": 1.0}
    row = source_neighbors.row_of(links[:, 0])
    first = np.full(len(links), -1, dtype=np.int64)
    if source_neighbors.k:
        first[row >= 0] = source_neighbors.ids[row[row >= 0], 0]
    return {
        "cosine": float((first == links[:, 1]).mean()),
        "literal": float((_best_by_literals(literal_evidence, links[:, 0]) == links[:, 1]).mean()),
    }


def _best_by_literals(evidence: LiteralEvidence, sources: IntArray) -> IntArray:
    """Find the target that names and values rank first for each of these sources (s,), -1 for none."""
    best = np.full(1 + max(int(evidence.pairs.max(initial=-1)), int(sources.max(initial=-1))), -1, dtype=np.int64)
    if "literal" in evidence.columns:
        # From the least to the most similar, so that the best is written last.
        order = np.argsort(evidence.evidence[evidence.columns.index("literal")], kind="stable")
        best[evidence.pairs[order, 0]] = evidence.pairs[order, 1]
    return best[sources]


def _with_cosines(joined: CandidateGraph, is_new: Mask, context: ChannelContext) -> CandidateGraph:
    """Compute cosine and CSLS of the joined candidates that are new, (e,)."""
    fresh = CandidateGraph(joined.sources[is_new], joined.targets[is_new])
    fresh = fresh.with_evidence(cosine=edge_cosines(fresh, context.embeddings))
    csls_scores = csls(fresh, context.source_neighbors, context.target_neighbors, context.csls_k)
    for name, values in (("cosine", fresh.column("cosine")), ("csls", csls_scores)):
        column = np.array(joined.column(name))
        column[is_new] = values
        joined = joined.with_evidence(**{name: column})  # one column at a time, to save memory
    return joined


def _with_similarity(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
    """Compute the similarity of the candidates by vectors and literals, and its CSLS."""
    similarity = np.zeros(len(graph), dtype=np.float64)
    for name, scale in (("cosine", 1.0), ("literal", LITERAL_PER_COSINE)):
        if name in graph.evidence:
            similarity += scale * context.similarity_weights[name] * np.maximum(graph.column(name), 0.0)
    return relocalised(graph.with_evidence(similarity=similarity), context.csls_k)


def rules(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
    """Add `support`: how many neighbours of each pair are matched, by the seeds and by likely pairs.

    If there are vectors, pairs next to matched pairs become candidates, too.
    """
    weight = context.weights.get("support", 0.0)
    if not weight or not len(graph):
        return graph.with_evidence(support=np.zeros(len(graph), dtype=np.float32))
    proposals = _NUM_PROPOSALS if context.rule_candidates and "cosine" in graph.evidence else 0
    # Support is added to a CSLS, which counts a cosine twice.
    finder = SupportFinder(context.task, context.seeds, CSLS_PER_COSINE * weight)
    matched = None
    for _ in range(proposals):
        matched = finder.matched(graph, finder.add_to(graph, graph.column(csls_column(graph)), 1, matched)[0])
        proposed = finder.propose(matched, _searched(context), context.rule_candidates)
        graph, is_new = grown_by(graph, proposed)
        del proposed
        graph = _with_cosines(graph, is_new, context)
        if "similarity" in graph.evidence:  # the new pairs have no literal evidence
            graph = _with_similarity(graph, context)
    passes = _NUM_PASSES if proposals else _NUM_PASSES + 1
    support = finder.add_to(graph, graph.column(csls_column(graph)), passes, matched)[1]
    return graph.with_evidence(support=support)


def _searched(context: ChannelContext) -> Mask:
    """Whether the search found neighbours of each entity, (n,): other entities have no vector."""
    searched = np.zeros(context.task.num_entities, dtype=bool)
    for neighbors in (context.source_neighbors, context.target_neighbors):
        searched[neighbors.queries[(neighbors.ids >= 0).any(axis=1)]] = True
    return searched


CHANNELS: dict[str, Channel] = {"structure": structure, "literals": literals, "rules": rules}
