"""Evaluate an alignment by the test links, which no other step reads (section 6).

In: the task with its test links, vectors, the alignment. Out: an `Evaluation`, figures with the protocol they were
measured under. Ideal setting: every test source ranks all test targets and the other way round, for each scoring; where
that is too much work for the device, cosine and CSLS rank an even sample of the test links, still among all of them.
Real setting: pairs among all entities that are no seeds, compared with the test links. Valid links that are no seeds
take part like any other entity; a pair that is one of them counts neither way.
Most ranks need no count: a pair that neither end lists among its nearest is no nearer than the last that either end
lists. So a cosine that an end does not list is at most its last one; and a CSLS, 2 cos - r - r', at most its last
cosine less its mean r, since the other end adds its own last less its own mean, which is at most 0. A link that scores
higher has all its rivals in the lists, and its rank there is its rank.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from largegnn.artifacts import (
    Alignment,
    AlignmentTask,
    EntityEmbeddings,
    Evaluation,
    FloatArray,
    IntArray,
    LiteralEvidence,
    Mask,
    Neighbors,
    PairFigures,
    Partition,
    Protocol,
    are_among,
)
from largegnn.division.subgraphs import share_kept
from largegnn.evaluation.metrics import (
    MOST_PRODUCTS,
    SAME_SCORE,
    SCORINGS,
    Ranks,
    Scoring,
    rank_edges,
    rank_links_by,
    rank_matrix,
    summarise,
)
from largegnn.evaluation.pair_metrics import kind_of_gold, precision_recall_f1
from largegnn.machine.devices import choose_device
from largegnn.machine.pieces import in_background
from largegnn.matching.candidates import csls, mean_nearest
from largegnn.matching.channels import ChannelContext, gather_candidates, similarity_weights
from largegnn.matching.confidence.reliability import reliability
from largegnn.matching.scorings import ScoringContext, scoring_of, weighted_evidence
from largegnn.matching.search import SearchOptions, search_both
from largegnn.matching.selection import mutual_knn, mutual_top1
from largegnn.matching.transport import dense_plan, fits_dense, transport_edges
from largegnn.matching.union import build_candidates

if TYPE_CHECKING:
    from largegnn.settings import (
        DataSettings,
        EvaluateSettings,
        MatchSettings,
        ProtocolSettings,
        RoundSettings,
        SearchSettings,
    )

__all__ = ["EvaluationResult", "evaluate"]

_SAME_PLAN = 1e-4  # closer entries of a plan differ in rounding only
_CANDIDATES = 20  # nearest of each test entity that rules and large transports use
_LEAST_RANKED = 2_000


@dataclass(frozen=True)
class EvaluationResult:
    """The figures of a run."""

    outcome: Evaluation


def evaluate(
    task_with_test_links: AlignmentTask,
    final_embeddings: EntityEmbeddings,
    alignment: Alignment,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    membership: Partition | None,
    literal_evidence: LiteralEvidence,
    data: DataSettings,
    protocol: ProtocolSettings,
    channels: tuple[str, ...],
    match: MatchSettings,
    rounds: RoundSettings,
    evaluate: EvaluateSettings,
    search: SearchSettings,
    run_seed: int,
    *,
    device: str,
) -> EvaluationResult:
    """Figures of both settings with their protocol; None for what there are no test links to measure by."""
    task = task_with_test_links
    ideal, real, rows, num_ranked = None, None, None, None
    if len(task.test_links):
        known = task.held_out(protocol.seeds_from)
        known = known[~are_among(known, task.test_links)]
        of_pairs = in_background(lambda: _real(task, known, alignment, source_neighbors, target_neighbors, match))
        ranking = _TestRanking(task, final_embeddings, match, run_seed, choose_device(device), search.max_memory_gb)
        evidence = literal_evidence.among(task.free(protocol.seeds_from))
        weights = similarity_weights(task.held_out(protocol.seeds_from), source_neighbors, evidence)
        ranks = ranking.ranks(channels, task.seeds(protocol.seeds_from), evidence, weights)
        ideal = {name: summarise(found, evaluate.measures) for name, found in ranks.items()}
        num_ranked = len(ranks["cosine"].source_to_target)
        real = of_pairs()
        judged = alignment.mutual & ~are_among(alignment.pairs, known)
        right = are_among(alignment.pairs[judged], task.test_links)
        rows = reliability(alignment.confidence[judged], right)
    measured = _protocol(task, data, protocol, channels, match, rounds, evaluate, run_seed, num_ranked)
    kept = None if membership is None else share_kept(task.test_links, membership)
    return EvaluationResult(Evaluation(measured, ideal, real, rows, kept))


def _protocol(
    task: AlignmentTask,
    data: DataSettings,
    protocol: ProtocolSettings,
    channels: tuple[str, ...],
    match: MatchSettings,
    rounds: RoundSettings,
    evaluate: EvaluateSettings,
    run_seed: int,
    num_ranked: int | None,
) -> Protocol:
    """What every figure of a run was measured under."""
    num_seeds = len(task.given_seeds(protocol.seeds_from))
    num_links = len(task.train_links) + len(task.valid_links) + len(task.test_links)
    return Protocol(
        seeds_from=protocol.seeds_from,
        num_seeds=num_seeds,
        num_anchors=len(task.anchors),
        seed_share=num_seeds / num_links if num_links else None,
        fold=data.fold,
        num_test_links=len(task.test_links),
        num_ranked_links=num_ranked,
        gold=kind_of_gold(task, protocol.seeds_from) if evaluate.gold == "auto" else evaluate.gold,
        ideal_candidates="all test targets for each test source, and the other way round; ties count against us",
        real_candidates="all entities of either side that are no seeds",
        channels=channels,
        csls_k=match.csls_k,
        transport_temperature=match.temperature,
        transport_iterations=match.iterations,
        evidence_weights=dict(match.weights),
        rounds=rounds.number,
        seed=run_seed,
    )


class _TestRanking:
    """Ranks of the test entities of either side, each among its nearest candidates."""

    def __init__(
        self,
        task: AlignmentTask,
        embeddings: EntityEmbeddings,
        match: MatchSettings,
        run_seed: int,
        device: torch.device,
        max_memory_gb: float,
    ) -> None:
        self._task, self._embeddings = task, embeddings
        self._links, self._match, self._device = task.test_links, match, device
        self._max_bytes = int(max_memory_gb * 1e9)
        self._sources, self._targets = (np.unique(self._links[:, side]) for side in (0, 1))
        # A vector of zeros is none; balanced, two of them would find each other.
        self._covered = [
            embeddings.covered[ids] & embeddings.vectors[ids].any(axis=1) for ids in (self._sources, self._targets)
        ]
        self._near_targets, self._near_sources = self._search(
            SearchOptions(device=str(device), seed=run_seed % 2**31, max_memory_gb=max_memory_gb)
        )
        # The mean cosine of each to its nearest of the other side, and the row and column of each test link.
        self._means = mean_nearest(self._near_targets, match.csls_k), mean_nearest(self._near_sources, match.csls_k)
        sources, targets = self._links.T
        self._indices = (np.searchsorted(self._sources, sources), np.searchsorted(self._targets, targets))
        shape = (len(self._sources), len(self._targets))
        # Whether all scores may be held at once, and there is one for every pair.
        self._is_small = fits_dense(shape, device, self._max_bytes) and all(
            bool(covered.all()) for covered in self._covered
        )

    def _search(self, options: SearchOptions) -> tuple[Neighbors, Neighbors]:
        """The nearest test entities of each test entity; the vectors are read where they lie, not copied."""
        split = self._task.num_source_entities
        masks = [np.zeros(size, dtype=bool) for size in (split, self._task.num_target_entities)]
        masks[0][self._sources], masks[1][self._targets - split] = self._covered
        near_targets, near_sources = search_both(
            self._embeddings.vectors[:split],
            self._embeddings.vectors[split:],
            max(_CANDIDATES, self._match.csls_k),
            source_ids=np.arange(split),
            target_ids=np.arange(split, self._task.num_entities),
            source_covered=masks[0],
            target_covered=masks[1],
            options=options,
        )
        return near_targets.of(self._sources), near_sources.of(self._targets)

    def _vectors(self) -> tuple[FloatArray, FloatArray]:
        """The vectors of the test entities of either side, copied."""
        return self._embeddings.vectors[self._sources], self._embeddings.vectors[self._targets]

    def ranks(
        self, channels: tuple[str, ...], seeds: IntArray, literals: LiteralEvidence, weights: Mapping[str, float]
    ) -> dict[str, Ranks]:
        """The ranks of the test links by each scoring: of the vectors alone, and with the evidence of all channels."""
        match = self._match
        is_ranked = np.zeros(self._task.num_entities, dtype=bool)
        is_ranked[self._links.ravel()] = True
        context = ChannelContext(
            dataclasses.replace(self._task, test_links=self._links[:0]),
            seeds,
            self._embeddings,
            self._near_targets,
            self._near_sources,
            match.csls_k,
            match.weights,
            literals.among(is_ranked),
            weights,
            match.rule_candidates,
        )
        others = [name for name in channels if name != "structure"]
        # Rules are mostly one processor's work: they are found while the vectors alone are ranked.
        with_others = in_background(lambda: gather_candidates(channels, context)) if others else None
        self._graph = gather_candidates(("structure",), context)
        self._gold = self._graph.find(self._links)
        result: dict[str, Ranks] = {str(name): ranks for name, ranks in self._by_vectors().items()}
        result["transport"] = self._by_transport(self._graph.column("cosine"))
        if with_others is not None:
            self._graph = with_others()
            self._gold = self._graph.find(self._links)
            added = weighted_evidence(self._graph, match.weights)
            if added.any() or "similarity" in self._graph.evidence:
                label = "+".join(others)
                result[f"csls+{label}"] = self._by_edges(self._score("csls", added))
                result[f"transport+{label}"] = self._by_transport(self._score("cosine", added), weights["cosine"])
        if match.scoring not in ("cosine", "csls", "transport"):
            result[match.scoring] = self._by_edges(
                self._score(match.scoring, weighted_evidence(self._graph, match.weights))
            )
        return result

    def _score(self, name: str, added: FloatArray) -> FloatArray:
        match = self._match
        context = ScoringContext(self._embeddings, match.temperature, match.iterations, self._device)
        return scoring_of(name).score(self._graph, added, context)

    def _by_vectors(self) -> dict[Scoring, Ranks]:
        """Ranks by cosine and by CSLS of as many links as the device ranks in minutes, a chunk of them at a time.

        What the search has shown already, most of it, is not counted again.
        """
        shown, is_shown = self._by_search()
        width = self._embeddings.vectors.shape[1] * (1.0 - float(is_shown.mean()))
        chosen = even_sample(len(self._links), width, self._device.type)
        is_open = ~is_shown[chosen]
        result = {
            name: Ranks(ranks.source_to_target[chosen], ranks.target_to_source[chosen]) for name, ranks in shown.items()
        }
        for name, ranks in (self._count(chosen[is_open]) if is_open.any() else {}).items():
            result[name].source_to_target[is_open] = ranks.source_to_target
            result[name].target_to_source[is_open] = ranks.target_to_source
        return result

    def _by_search(self) -> tuple[dict[Scoring, Ranks], Mask]:
        """Ranks by cosine and by CSLS among what the search found, and for which links (k,) all of them are right."""
        found = (self._near_targets, self._near_sources)
        is_exact = all(near.record.recall is None and near.k >= self._match.csls_k for near in found)
        is_shown = np.full(len(self._links), is_exact) & (self._gold >= 0)
        result: dict[Scoring, Ranks] = {}
        for name in SCORINGS:
            scores = self._graph.column(name)
            result[name] = self._by_edges(scores, SAME_SCORE if name == "cosine" else 2 * SAME_SCORE)
            gold = scores[np.maximum(self._gold, 0)] if len(scores) else np.zeros(len(self._links), dtype=np.float32)
            for near, means, indices in zip(found, self._means, self._indices, strict=True):
                is_shown &= above_unlisted(gold, near.scores[indices, -1], means[indices], name)
        return result, is_shown

    def _count(self, chosen: IntArray) -> dict[Scoring, Ranks]:
        """Ranks by cosine and by CSLS of some links, from all scores of their ends."""
        rows, columns = self._indices
        return rank_links_by(
            *self._vectors(),
            links=(rows[chosen], columns[chosen]),
            means=self._means,
            source_covered=self._covered[0],
            target_covered=self._covered[1],
            device=self._device,
            chunk_bytes=min(1 << 28, self._max_bytes // 4) if self._device.type == "cpu" else 4 << 30,
        )

    def _by_edges(self, scores: FloatArray, same: float = SAME_SCORE) -> Ranks:
        """Ranks among the candidates; a partner that is none of them is last."""
        gold = np.full(len(self._links), np.nan)
        gold[self._gold >= 0] = scores[self._gold[self._gold >= 0]]
        sources, targets = self._links.T
        return Ranks(
            rank_edges(self._graph.sources, scores, sources, gold, len(self._targets), same),
            rank_edges(self._graph.targets, scores, targets, gold, len(self._sources), same),
        )

    def _by_transport(self, edge_scores: FloatArray, cosine_weight: float = 1.0) -> Ranks:
        """Ranks by the transport plan over all pairs, or over the candidates where those are too many."""
        index = np.zeros(self._task.num_entities, dtype=np.int64)  # edges are many: a table, not a search
        index[self._sources], index[self._targets] = np.arange(len(self._sources)), np.arange(len(self._targets))
        rows, columns = index[self._graph.sources], index[self._graph.targets]
        shape, options = (len(self._sources), len(self._targets)), (self._match.temperature, self._match.iterations)
        if not self._is_small:
            return self._by_edges(transport_edges(rows, columns, edge_scores, shape, *options), _SAME_PLAN)
        weight = cosine_weight if "similarity" in self._graph.evidence else 1.0
        everywhere = dense_plan(*self._vectors(), (rows, columns), edge_scores, *options, self._device, weight)
        return rank_matrix(everywhere, *self._indices, _SAME_PLAN)


def _real(
    task: AlignmentTask,
    known: IntArray,
    alignment: Alignment,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    match: MatchSettings,
) -> dict[str, PairFigures]:
    """The figures of the paper's selections by the vectors alone, and of the run's own pairs."""
    graph = build_candidates(source_neighbors, target_neighbors)
    cosines = graph.column("cosine")
    local = csls(graph, source_neighbors, target_neighbors, match.csls_k)
    pairs = {
        "mutual_5nn": graph.pairs(mutual_knn(graph, cosines, 5)),
        "mutual_top1": graph.pairs(mutual_top1(graph, cosines)),
        "csls_mutual_top1": graph.pairs(mutual_top1(graph, local)),
        "scoring_mutual_top1": alignment.pairs[alignment.mutual],
        "accepted": alignment.pairs[alignment.accepted],
    }
    return {
        name: precision_recall_f1(found[~are_among(found, known)], task.test_links) for name, found in pairs.items()
    }


def above_unlisted(gold: FloatArray, last: FloatArray, means: FloatArray, scoring: Scoring) -> Mask:
    """Whether the score of each link (k,) is above all that one end does not list.

    `last` (k,) is the last cosine that end lists, -inf where it lists all there are, `means` (k,) its mean cosine.
    """
    bounds = last - means if scoring == "csls" else last
    is_above: Mask = gold > bounds + 4 * SAME_SCORE
    return is_above


def even_sample(num_links: int, products: float, device: str) -> IntArray:
    """Which of so many links to rank at `products` for each end: all, or evenly spread ones if that takes hours."""
    most = int(MOST_PRODUCTS[device] // max(2 * num_links * products, 1))
    if most >= num_links:
        return np.arange(num_links)
    return np.unique(np.linspace(0, num_links - 1, max(most, _LEAST_RANKED)).astype(np.int64))
