"""Gather candidate pairs from channels, each with columns of evidence: structure, literals, rules.

In: the candidates so far and what is known of the graphs. Out: the candidates with more pairs, more evidence, or both.
`structure` proposes the pairs that the search found from either side, with `cosine` and `csls`; `literals` those with
similar names and values; `rules` pairs next to matched pairs, with `support`, the matched neighbours of a pair. With
`structure` alone the result is exactly the system of the paper. A new channel is a function here and a line in
`CHANNELS`.
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

_PROPOSALS = 2  # times that pairs are proposed, after one pass of support each
_PASSES = 2  # of support in the end
_NEAREST = 5  # neighbourhood of CSLS over few candidates


@dataclass(frozen=True)
class ChannelContext:
    """The input of a channel: the graphs without test links, the seeds (k, 2), vectors, and what the search found.

    `weights` is what one unit of each kind of evidence adds to a cosine, `similarity_weights` how much vectors and
    literals count in the similarity of both. `rule_candidates` is how many pairs rules may propose for each source.
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
    """The candidates of these channels, each of which adds to those of the channels before."""
    # Passed on, never held here: a channel can release what it was given, which is as large as what it makes.
    passed = [CandidateGraph(np.empty(0), np.empty(0))]
    for name in names:
        passed.append(CHANNELS[name](passed.pop(), context))
        passed.append(passed.pop().without(context.task.forbidden))
    return passed.pop()


def structure(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
    """The pairs found near each other in the space of the vectors, by cosine and CSLS."""
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
    """The graph with `similarity_csls` by the edges it has, where it has a similarity."""
    if "similarity" not in graph.evidence:
        return graph
    similarity = graph.column("similarity").astype(np.float64)
    return graph.with_evidence(similarity_csls=localised(graph, similarity, min(k, _NEAREST)))


def similarity_weights(
    links: IntArray, source_neighbors: Neighbors, literal_evidence: LiteralEvidence
) -> dict[str, float]:
    """How much vectors and literals count: the share of held-out links (l, 2) whose target each ranks first.

    Without links both count fully. Both are ranked among all free entities, so a view that cannot distinguish links
    counts for nothing.
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
    """The target that names and values rank first for each of these sources (s,), -1 for none."""
    best = np.full(1 + max(int(evidence.pairs.max(initial=-1)), int(sources.max(initial=-1))), -1, dtype=np.int64)
    if "literal" in evidence.columns:
        # From the least to the most similar, so that the best is written last.
        order = np.argsort(evidence.evidence[evidence.columns.index("literal")], kind="stable")
        best[evidence.pairs[order, 0]] = evidence.pairs[order, 1]
    return best[sources]


def _with_cosines(joined: CandidateGraph, is_new: Mask, context: ChannelContext) -> CandidateGraph:
    """The joined candidates with cosine and CSLS for those that are new, (e,)."""
    fresh = CandidateGraph(joined.sources[is_new], joined.targets[is_new])
    fresh = fresh.with_evidence(cosine=edge_cosines(fresh, context.embeddings))
    local = csls(fresh, context.source_neighbors, context.target_neighbors, context.csls_k)
    for name, values in (("cosine", fresh.column("cosine")), ("csls", local)):
        column = np.array(joined.column(name))
        column[is_new] = values
        joined = joined.with_evidence(**{name: column})  # one column at a time: they are long
    return joined


def _with_similarity(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
    """The candidates with the similarity by vectors and literals, and its CSLS."""
    similarity = np.zeros(len(graph), dtype=np.float64)
    for name, scale in (("cosine", 1.0), ("literal", LITERAL_PER_COSINE)):
        if name in graph.evidence:
            similarity += scale * context.similarity_weights[name] * np.maximum(graph.column(name), 0.0)
    return relocalised(graph.with_evidence(similarity=similarity), context.csls_k)


def rules(graph: CandidateGraph, context: ChannelContext) -> CandidateGraph:
    """How many matched neighbours support each pair, by the seeds and by the pairs that are best at both ends.

    Where there are vectors to compare by, pairs next to matched pairs become candidates too.
    """
    weight = context.weights.get("support", 0.0)
    if not weight or not len(graph):
        return graph.with_evidence(support=np.zeros(len(graph), dtype=np.float32))
    proposals = _PROPOSALS if context.rule_candidates and "cosine" in graph.evidence else 0
    # CSLS counts a cosine twice.
    finder, matched = SupportFinder(context.task, context.seeds, CSLS_PER_COSINE * weight), None
    for _ in range(proposals):
        matched = finder.matched(graph, finder.add_to(graph, graph.column(csls_column(graph)), 1, matched)[0])
        proposed = finder.propose(matched, _searched(context), context.rule_candidates)
        graph, is_new = grown_by(graph, proposed)
        del proposed
        graph = _with_cosines(graph, is_new, context)
        if "similarity" in graph.evidence:  # the new pairs have no literal evidence
            graph = _with_similarity(graph, context)
    passes = _PASSES if proposals else _PASSES + 1
    support = finder.add_to(graph, graph.column(csls_column(graph)), passes, matched)[1]
    return graph.with_evidence(support=support)


def _searched(context: ChannelContext) -> Mask:
    """The entities that a search found neighbours for, (n,): others have no vector to compare."""
    searched = np.zeros(context.task.num_entities, dtype=bool)
    for found in (context.source_neighbors, context.target_neighbors):
        searched[found.queries[(found.ids >= 0).any(axis=1)]] = True
    return searched


CHANNELS: dict[str, Channel] = {"structure": structure, "literals": literals, "rules": rules}
