"""Evaluate an alignment by the test links, which no other step reads (section 6 of the paper).

In: the task with its test links, vectors, the alignment. Out: an `Evaluation`, figures with the protocol they were
measured under. Ideal setting: every test source ranks all test targets and every test target all test sources, for
each scoring; if the device would take too long, cosine and CSLS rank an even sample of the links among all candidates.
Real setting: pairs among all entities that are not seeds, compared with the test links. Valid links that are not seeds
are matched like other entities; a pair that is such a link counts neither as right nor as wrong.
Most ranks follow from the search, without a count: a pair that neither end lists has at most the last cosine of either
list, and at most that cosine less the end's mean by CSLS (`above_unlisted`). A link above that bound has all its rivals
in the lists.
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
    MAX_MULTIPLICATIONS,
    SCORE_TOLERANCE,
    SIMILARITIES,
    Ranks,
    Similarity,
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

_PLAN_TOLERANCE = 1e-4  # entries of a plan that are closer differ by rounding only
_CANDIDATES = 20  # nearest neighbours of each test entity, for rules and for transports too large for a matrix
_MIN_RANKED_LINKS = 2_000


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
    """Compute the figures of both settings, with their protocol; figures are None without test links."""
    task = task_with_test_links
    ideal, real, rows, num_ranked = None, None, None, None
    if len(task.test_links):
        valid = task.held_out(protocol.seeds_from)
        valid = valid[~are_among(valid, task.test_links)]
        real_figures = in_background(lambda: _real(task, valid, alignment, source_neighbors, target_neighbors, match))
        ranking = _TestRanking(task, final_embeddings, match, run_seed, choose_device(device), search.max_memory_gb)
        evidence = literal_evidence.among(task.free(protocol.seeds_from))
        weights = similarity_weights(task.held_out(protocol.seeds_from), source_neighbors, evidence)
        ranks = ranking.ranks(channels, task.seeds(protocol.seeds_from), evidence, weights)
        ideal = {name: summarise(scoring_ranks, evaluate.measures) for name, scoring_ranks in ranks.items()}
        num_ranked = len(ranks["cosine"].source_to_target)
        real = real_figures()
        judged = alignment.mutual & ~are_among(alignment.pairs, valid)
        is_correct = are_among(alignment.pairs[judged], task.test_links)
        rows = reliability(alignment.confidence[judged], is_correct)
    stated = _protocol(task, data, protocol, channels, match, rounds, evaluate, run_seed, num_ranked)
    kept = None if membership is None else share_kept(task.test_links, membership)
    return EvaluationResult(Evaluation(stated, ideal, real, rows, kept))


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
    """The protocol: everything that the figures of a run depend on."""
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
    """Ranks of the test links by every scoring, in both directions."""

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
        # A vector of zeros is no vector: a transport would match two of them with each other.
        self._covered = [
            embeddings.covered[ids] & embeddings.vectors[ids].any(axis=1) for ids in (self._sources, self._targets)
        ]
        self._near_targets, self._near_sources = self._search(
            SearchOptions(device=str(device), seed=run_seed % 2**31, max_memory_gb=max_memory_gb)
        )
        # The mean cosine of each test entity to its nearest of the other side; the row and column of each test link.
        self._means = mean_nearest(self._near_targets, match.csls_k), mean_nearest(self._near_sources, match.csls_k)
        sources, targets = self._links.T
        self._indices = (np.searchsorted(self._sources, sources), np.searchsorted(self._targets, targets))
        shape = (len(self._sources), len(self._targets))
        # Whether all scores fit into memory at once, and every pair has one.
        self._is_small = fits_dense(shape, device, self._max_bytes) and all(
            bool(covered.all()) for covered in self._covered
        )

    def _search(self, options: SearchOptions) -> tuple[Neighbors, Neighbors]:
        """Find the nearest test entities of each test entity; the vectors are read in place, not copied."""
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
        """Copy the vectors of the test sources and of the test targets."""
        return self._embeddings.vectors[self._sources], self._embeddings.vectors[self._targets]

    def ranks(
        self, channels: tuple[str, ...], seeds: IntArray, literals: LiteralEvidence, weights: Mapping[str, float]
    ) -> dict[str, Ranks]:
        """Rank the test links by each scoring, from the vectors alone and with the evidence of all channels."""
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
        other_channels = [name for name in channels if name != "structure"]
        # Rules use mostly one processor: their candidates are gathered while the vectors alone are ranked.
        all_candidates = in_background(lambda: gather_candidates(channels, context)) if other_channels else None
        self._graph = gather_candidates(("structure",), context)
        self._gold = self._graph.find(self._links)
        result: dict[str, Ranks] = {str(name): ranks for name, ranks in self._by_vectors().items()}
        result["transport"] = self._by_transport(self._graph.column("cosine"))
        if all_candidates is not None:
            self._graph = all_candidates()
            self._gold = self._graph.find(self._links)
            added = weighted_evidence(self._graph, match.weights)
            if added.any() or "similarity" in self._graph.evidence:
                label = "+".join(other_channels)
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

    def _by_vectors(self) -> dict[Similarity, Ranks]:
        """Rank by cosine and by CSLS as many links as the device ranks in minutes.

        Ranks that follow from the search, which are most, are not counted again.
        """
        known_ranks, is_known = self._by_search()
        width = self._embeddings.vectors.shape[1] * (1.0 - float(is_known.mean()))
        chosen = even_sample(len(self._links), width, self._device.type)
        is_open = ~is_known[chosen]
        result = {
            name: Ranks(ranks.source_to_target[chosen], ranks.target_to_source[chosen])
            for name, ranks in known_ranks.items()
        }
        for name, ranks in (self._count(chosen[is_open]) if is_open.any() else {}).items():
            result[name].source_to_target[is_open] = ranks.source_to_target
            result[name].target_to_source[is_open] = ranks.target_to_source
        return result

    def _by_search(self) -> tuple[dict[Similarity, Ranks], Mask]:
        """Rank by cosine and by CSLS among the pairs that the search found; and whether these ranks are right, (k,)."""
        searches = (self._near_targets, self._near_sources)
        is_exact = all(near.record.recall is None and near.k >= self._match.csls_k for near in searches)
        is_known = np.full(len(self._links), is_exact) & (self._gold >= 0)
        result: dict[Similarity, Ranks] = {}
        for name in SIMILARITIES:
            scores = self._graph.column(name)
            result[name] = self._by_edges(scores, SCORE_TOLERANCE if name == "cosine" else 2 * SCORE_TOLERANCE)
            gold = scores[np.maximum(self._gold, 0)] if len(scores) else np.zeros(len(self._links), dtype=np.float32)
            for near, means, indices in zip(searches, self._means, self._indices, strict=True):
                is_known &= above_unlisted(gold, near.scores[indices, -1], means[indices], name)
        return result, is_known

    def _count(self, chosen: IntArray) -> dict[Similarity, Ranks]:
        """Rank the `chosen` links by cosine and by CSLS, from all scores of their ends."""
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

    def _by_edges(self, scores: FloatArray, tolerance: float = SCORE_TOLERANCE) -> Ranks:
        """Rank the links among the candidates; a true partner that is no candidate is last."""
        gold = np.full(len(self._links), np.nan)
        gold[self._gold >= 0] = scores[self._gold[self._gold >= 0]]
        sources, targets = self._links.T
        return Ranks(
            rank_edges(self._graph.sources, scores, sources, gold, len(self._targets), tolerance),
            rank_edges(self._graph.targets, scores, targets, gold, len(self._sources), tolerance),
        )

    def _by_transport(self, edge_scores: FloatArray, cosine_weight: float = 1.0) -> Ranks:
        """Rank by the transport plan over all pairs, or over the candidates if there are too many pairs."""
        # A table from entity to index: edges are too many to search for each of them.
        index = np.zeros(self._task.num_entities, dtype=np.int64)
        index[self._sources], index[self._targets] = np.arange(len(self._sources)), np.arange(len(self._targets))
        rows, columns = index[self._graph.sources], index[self._graph.targets]
        shape, options = (len(self._sources), len(self._targets)), (self._match.temperature, self._match.iterations)
        if not self._is_small:
            return self._by_edges(transport_edges(rows, columns, edge_scores, shape, *options), _PLAN_TOLERANCE)
        weight = cosine_weight if "similarity" in self._graph.evidence else 1.0
        plan = dense_plan(*self._vectors(), (rows, columns), edge_scores, *options, self._device, weight)
        return rank_matrix(plan, *self._indices, _PLAN_TOLERANCE)


def _real(
    task: AlignmentTask,
    valid: IntArray,
    alignment: Alignment,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    match: MatchSettings,
) -> dict[str, PairFigures]:
    """Measure the pairs of the paper's selections, which use the vectors alone, and the pairs of the run."""
    graph = build_candidates(source_neighbors, target_neighbors)
    cosines = graph.column("cosine")
    csls_scores = csls(graph, source_neighbors, target_neighbors, match.csls_k)
    pairs = {
        "mutual_5nn": graph.pairs(mutual_knn(graph, cosines, 5)),
        "mutual_top1": graph.pairs(mutual_top1(graph, cosines)),
        "csls_mutual_top1": graph.pairs(mutual_top1(graph, csls_scores)),
        "scoring_mutual_top1": alignment.pairs[alignment.mutual],
        "accepted": alignment.pairs[alignment.accepted],
    }
    return {
        name: precision_recall_f1(found[~are_among(found, valid)], task.test_links) for name, found in pairs.items()
    }


def above_unlisted(gold: FloatArray, last: FloatArray, means: FloatArray, scoring: Similarity) -> Mask:
    """Whether the score of each link (k,) is above that of every pair that one end of the link does not list.

    `last` (k,) is the last cosine in the list of that end, -inf if it lists all candidates; `means` (k,) is the mean
    cosine r of that end. An unlisted pair has a CSLS, 2 cos - r - r', of at most last - r: its cosine is at most the
    last of either end, and the last cosine of the other end is at most the mean r' of that end.
    """
    bounds = last - means if scoring == "csls" else last
    is_above: Mask = gold > bounds + 4 * SCORE_TOLERANCE
    return is_above


def even_sample(num_links: int, products: float, device: str) -> IntArray:
    """Choose the links to rank: all, or an even sample if all would exceed `MAX_MULTIPLICATIONS` of the device.

    Ranking a link costs `num_links * products` multiplications in each direction.
    """
    max_links = int(MAX_MULTIPLICATIONS[device] // max(2 * num_links * products, 1))
    if max_links >= num_links:
        return np.arange(num_links)
    return np.unique(np.linspace(0, num_links - 1, max(max_links, _MIN_RANKED_LINKS)).astype(np.int64))
