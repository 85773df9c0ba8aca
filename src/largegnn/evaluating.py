"""The stage `evaluate`: how good an alignment is by the test links, which no other stage reads (section 6).

Ideal setting: every test source ranks all test targets and the other way round, for each decoding; where that is too
much work for the device, cosine and CSLS rank an even sample of the test links, still among all of them. Real setting:
pairs put out among all entities that are no seeds, judged by the test links. Every figure comes with its protocol.

Valid links that are no seeds take part in the real setting like any other entity; a pair that is one of them is known,
and counts neither way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from largegnn.artifacts import Alignment, AlignmentTask, EntityEmbeddings, IntArray, Neighbors, are_among
from largegnn.evaluation.metrics import (
    SAME_SCORE,
    Ranks,
    Scoring,
    rank_edges,
    rank_links_by,
    rank_matrix,
    summarise,
)
from largegnn.evaluation.pair_metrics import precision_recall_f1
from largegnn.matching import SearchOptions, SearchResult, search_both
from largegnn.matching.candidates import FloatArray, build_candidates, csls, mean_nearest
from largegnn.matching.confidence import reliability
from largegnn.matching.dense import cosine_matrix, dense_plan, fits_dense
from largegnn.matching.selection import mutual_knn, mutual_top1
from largegnn.matching.support import SUPPORT_PER_SCORE, SupportFinder
from largegnn.matching.transport import transport_sparse
from largegnn.settings import Settings

__all__ = ["MOST_PRODUCTS", "evaluate", "protocol_of"]

_SAME_PLAN = 1e-4  # closer entries of a plan differ in rounding only
# Multiplications for the ranks by cosine and CSLS: some ten minutes on two cores, on a GPU one or two.
MOST_PRODUCTS = {"cpu": 1e13, "cuda": 2e15}
_LEAST_RANKED = 2_000
_CANDIDATES = 20  # nearest of each test entity that support and large transports look at


def evaluate(
    task: AlignmentTask,
    embeddings: EntityEmbeddings,
    alignment: Alignment,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    settings: Settings,
    device: torch.device,
) -> dict[str, Any]:
    """Figures of both settings with their protocol; None for what there are no test links to measure by."""
    report: dict[str, Any] = {"protocol": protocol_of(task, settings), "ideal": None, "real": None, "reliability": None}
    if len(task.test_links):
        report["ideal"], report["protocol"]["num_ranked_links"] = _ideal(task, embeddings, settings, device)
        report["real"] = _real(task, alignment, source_neighbors, target_neighbors, settings)
        report["reliability"] = _true_reliability(task, alignment, settings)
    return report


def protocol_of(task: AlignmentTask, settings: Settings) -> dict[str, Any]:
    """What every figure of a run was measured under."""
    match, seeds = settings.match, task.seeds(settings.protocol.seeds_from)
    num_links = len(task.train_links) + len(task.valid_links) + len(task.test_links)
    return {
        "seeds_from": settings.protocol.seeds_from,
        "num_seeds": len(seeds),
        "seed_share": len(seeds) / num_links if num_links else None,
        "fold": settings.data.fold,
        "num_test_links": len(task.test_links),
        "ideal_candidates": "all test targets for each test source, and the other way round; ties count against us",
        "real_candidates": "all entities of either side that are no seeds",
        "csls_k": match.csls_k,
        "transport": {"temperature": match.temperature, "iterations": match.iterations},
        "support_weight": match.support_weight,
        "rounds": settings.rounds.number,
        "seed": settings.seed,
        "features": "structure only",
    }


def _ideal(
    task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings, device: torch.device
) -> tuple[dict[str, Any], int]:
    """The figures of each decoding, and how many test links cosine and CSLS were measured by."""
    options = settings.match
    contest = _Contest(task, embeddings, settings, device)
    ranks = contest.by_matrix() if contest.is_small else contest.by_chunks()
    num_ranked = len(ranks["cosine"].source_to_target)
    result: dict[str, Any] = {scoring: summarise(found) for scoring, found in ranks.items()}
    result["transport"] = summarise(contest.by_transport(contest.graph.cosines))
    if options.support_weight:
        plain = csls(contest.graph, contest.near_targets, contest.near_sources, options.csls_k)
        weight = options.support_weight * SUPPORT_PER_SCORE["csls"]
        finder = SupportFinder(task, task.seeds(settings.protocol.seeds_from), weight)
        supported, support = finder.add_to(contest.graph, plain)
        result["csls+support"] = summarise(contest.by_edges(supported))
        helped = np.asarray(contest.graph.cosines + options.support_weight * support, dtype=np.float32)
        result["transport+support"] = summarise(contest.by_transport(helped))
    return result, num_ranked


class _Contest:
    """The test entities of either side against each other, each with its nearest candidates."""

    def __init__(
        self, task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings, device: torch.device
    ) -> None:
        self._links, self._options, self._device = task.test_links, settings.match, device
        self._sources, self._targets = (np.unique(self._links[:, side]) for side in (0, 1))
        self._vectors = embeddings.vectors[self._sources], embeddings.vectors[self._targets]
        # A vector of zeros is none; balanced, two of them would find each other.
        self._covered = [
            np.asarray(embeddings.covered[ids]) & vectors.any(axis=1)
            for ids, vectors in zip((self._sources, self._targets), self._vectors, strict=True)
        ]
        found = search_both(
            self._vectors[0],
            self._vectors[1],
            max(_CANDIDATES, settings.match.csls_k),
            source_covered=self._covered[0],
            target_covered=self._covered[1],
            options=SearchOptions(device=str(device), seed=settings.seed % 2**31),
        )
        self.near_targets = _named(self._sources, self._targets, found[0])
        self.near_sources = _named(self._targets, self._sources, found[1])
        self.graph = build_candidates(self.near_targets, self.near_sources)
        self._gold = self.graph.find(self._links)
        shape = (len(self._sources), len(self._targets))
        # Whether all scores may be held at once, and there is one for every pair.
        self.is_small = fits_dense(shape, device) and all(bool(covered.all()) for covered in self._covered)

    def by_matrix(self) -> dict[Scoring, Ranks]:
        """Ranks by cosine and by CSLS from one matrix of all scores."""
        matrix = cosine_matrix(self._vectors[0], self._vectors[1], self._device)
        result: dict[Scoring, Ranks] = {"cosine": rank_matrix(matrix, *self._gold_places())}
        row_means, column_means = (torch.from_numpy(means).to(self._device) for means in self._near_means())
        matrix.sub_(row_means[:, None] / 2).sub_(column_means / 2)  # half of CSLS
        result["csls"] = rank_matrix(matrix, *self._gold_places())
        return result

    def by_chunks(self) -> dict[Scoring, Ranks]:
        """Ranks by cosine and by CSLS of as many links as the device ranks in minutes, a chunk of them at a time."""
        rows, columns = self._gold_places()
        source_means, target_means = self._near_means()
        return rank_links_by(
            self._vectors[0][rows],
            self._vectors[1][columns],
            means=(source_means[rows], target_means[columns]),
            ranked=_sample(len(self._links), self._vectors[0].shape[1], self._device),
            source_covered=self._covered[0][rows],
            target_covered=self._covered[1][columns],
            device=self._device,
            chunk_bytes=1 << 28 if self._device.type == "cpu" else 4 << 30,
        )

    def _near_means(self) -> tuple[FloatArray, FloatArray]:
        """The mean cosine of each source, and of each target, to its nearest of the other side."""
        k = self._options.csls_k
        return mean_nearest(self.near_targets, k), mean_nearest(self.near_sources, k)

    def _gold_places(self) -> tuple[IntArray, IntArray]:
        """Row and column of each test link."""
        rows, columns = (
            np.searchsorted(ids, self._links[:, side]) for side, ids in enumerate((self._sources, self._targets))
        )
        return rows, columns

    def by_edges(self, scores: FloatArray, same: float = SAME_SCORE) -> Ranks:
        """Ranks among the candidates; a partner that is none of them is last."""
        gold = np.full(len(self._links), np.nan)
        gold[self._gold >= 0] = scores[self._gold[self._gold >= 0]]
        return Ranks(
            rank_edges(self.graph.sources, scores, self._links[:, 0], gold, len(self._targets), same),
            rank_edges(self.graph.targets, scores, self._links[:, 1], gold, len(self._sources), same),
        )

    def by_transport(self, edge_scores: FloatArray) -> Ranks:
        """Ranks by the transport plan over all pairs, or over the candidates where those are too many."""
        options = self._options
        rows = np.searchsorted(self._sources, self.graph.sources)
        columns = np.searchsorted(self._targets, self.graph.targets)
        shape = (len(self._sources), len(self._targets))
        if not self.is_small:
            plan = transport_sparse(rows, columns, edge_scores, shape, options.temperature, options.iterations)
            return self.by_edges(plan, _SAME_PLAN)
        how = options.temperature, options.iterations
        everywhere = dense_plan(*self._vectors, (rows, columns), edge_scores, *how, self._device)
        return rank_matrix(everywhere, *self._gold_places(), _SAME_PLAN)


def _sample(num_links: int, dim: int, device: torch.device) -> IntArray:
    """Which of so many links to rank: all, or evenly spread ones where all would take hours."""
    most = int(MOST_PRODUCTS[device.type] // (2 * num_links * dim))
    if most >= num_links:
        return np.arange(num_links)
    return np.unique(np.linspace(0, num_links - 1, max(most, _LEAST_RANKED)).astype(np.int64))


def _named(queries: IntArray, corpus: IntArray, result: SearchResult) -> Neighbors:
    """What was found among rows, as entities."""
    return Neighbors(queries, np.where(result.positions >= 0, corpus[result.positions], -1), result.scores)


def _real(
    task: AlignmentTask,
    alignment: Alignment,
    source_neighbors: Neighbors,
    target_neighbors: Neighbors,
    settings: Settings,
) -> dict[str, Any]:
    graph = build_candidates(source_neighbors, target_neighbors)
    plain = csls(graph, source_neighbors, target_neighbors, settings.match.csls_k)
    chosen = {
        "mutual_5nn": mutual_knn(graph, graph.cosines, 5),
        "mutual_top1": mutual_top1(graph, graph.cosines),
        "csls_mutual_top1": mutual_top1(graph, plain),
    }
    pairs = {name: np.stack([graph.sources[edges], graph.targets[edges]], axis=1) for name, edges in chosen.items()}
    pairs["decoding_mutual_top1"] = alignment.pairs[alignment.mutual]
    pairs["threshold"] = alignment.pairs[alignment.accepted]
    result = {}
    for name, output in pairs.items():
        judged = output[~are_among(output, _known_links(task, settings))]
        result[name] = {**precision_recall_f1(judged, task.test_links), "pairs": len(judged)}
    return result


def _true_reliability(task: AlignmentTask, alignment: Alignment, settings: Settings) -> list[dict[str, Any]]:
    """How often pairs of each tenth of the confidence were right, by the test links."""
    rows = alignment.mutual & ~are_among(alignment.pairs, _known_links(task, settings))
    return reliability(alignment.confidence[rows], are_among(alignment.pairs[rows], task.test_links))


def _known_links(task: AlignmentTask, settings: Settings) -> IntArray:
    """Links that are neither seeds nor to be found."""
    return task.valid_links if settings.protocol.seeds_from == "train" else task.valid_links[:0]
