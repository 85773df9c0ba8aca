"""The contest of the test entities: each ranks all test entities of the other side, by every scoring (ideal setting).

In: the test links, the vectors, what channels give. Out: the ranks of the links both ways, for each scoring.
The idea: up to some ten thousand links all scores are one matrix. Beyond, a search gives the nearest of each; a link
whose partner is near enough has its rank from there, and only the others are counted among all.
Cost: a search, and the products of the links it does not settle; rules and transports are linear in the candidates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import torch

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, FloatArray, IntArray, Mask, Neighbors
from largegnn.artifacts.literal_evidence import LiteralEvidence
from largegnn.evaluation.metrics import (
    MOST_PRODUCTS,
    SAME_SCORE,
    Ranks,
    Scoring,
    have_direction,
    rank_edges,
    rank_links_by,
    rank_matrix,
)
from largegnn.machine.pieces import by_all_processors, piece_size
from largegnn.matching.candidates import mean_nearest
from largegnn.matching.channels import ChannelContext, gather_candidates
from largegnn.matching.dense import cosine_matrix, dense_plan, fits_dense
from largegnn.matching.scorings import ScoringContext, scoring_of, weighted_evidence
from largegnn.matching.searchers import SearchOptions, search_both
from largegnn.matching.transport import transport_sparse
from largegnn.settings import MatchSettings

__all__ = ["Contest"]

_SCORINGS: tuple[Scoring, ...] = ("cosine", "csls")
_SAME_PLAN = 1e-4  # closer entries of a plan differ in rounding only
_LEAST_RANKED = 2_000
_CANDIDATES = 20  # nearest of each test entity that rules and large transports look at


class Contest:
    """The test entities of either side rank each other, each among its nearest candidates."""

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
            np.asarray(embeddings.covered[ids]) & have_direction(embeddings.vectors, ids)
            for ids in (self._sources, self._targets)
        ]
        self._near_targets, self._near_sources = self._search(
            SearchOptions(device=str(device), seed=run_seed % 2**31, max_memory_gb=max_memory_gb)
        )
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
        """The vectors of the test entities of either side, copied: for few of them."""
        return self._embeddings.vectors[self._sources], self._embeddings.vectors[self._targets]

    def ranks(
        self, channels: tuple[str, ...], seeds: IntArray, literals: LiteralEvidence, weights: Mapping[str, float]
    ) -> dict[str, Ranks]:
        """The ranks of the test links by each scoring: of the vectors alone, and with the evidence of all channels."""
        match = self._match
        context = ChannelContext(
            dataclasses.replace(self._task, test_links=self._links[:0]),
            seeds,
            self._embeddings,
            self._near_targets,
            self._near_sources,
            match.csls_k,
            match.weights,
            literals.among(self._is_ranked()),
            weights,
            match.rule_candidates,
        )
        self._graph = gather_candidates(("structure",), context)
        self._gold = self._graph.find(self._links)
        plain = self._by_matrix() if self._is_small else self._by_chunks()
        result: dict[str, Ranks] = {str(name): ranks for name, ranks in plain.items()}
        result["transport"] = self._by_transport(self._graph.column("cosine"))
        others = [name for name in channels if name != "structure"]
        if others:
            self._graph = gather_candidates(channels, context)
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

    def _is_ranked(self) -> Mask:
        """Which entities are ends of test links, (n,)."""
        found = np.zeros(self._task.num_entities, dtype=bool)
        found[self._links.ravel()] = True
        return found

    def _score(self, name: str, added: FloatArray) -> FloatArray:
        match = self._match
        context = ScoringContext(self._embeddings, match.temperature, match.iterations, self._device)
        return scoring_of(name).score(self._graph, added, context)

    def _by_matrix(self) -> dict[Scoring, Ranks]:
        """Ranks by cosine and by CSLS from one matrix of all scores."""
        matrix = cosine_matrix(*self._vectors(), self._device)
        result: dict[Scoring, Ranks] = {"cosine": rank_matrix(matrix, *self._gold_indices())}
        row_means, column_means = (torch.from_numpy(means).to(self._device) for means in self._near_means())
        matrix.sub_(row_means[:, None] / 2).sub_(column_means / 2)  # half of CSLS
        result["csls"] = rank_matrix(matrix, *self._gold_indices())
        return result

    def _by_chunks(self) -> dict[Scoring, Ranks]:
        """Ranks by cosine and by CSLS of as many links as the device ranks in minutes, a chunk of them at a time.

        What the search has shown already is not counted again, which is most of it.
        """
        shown, is_shown = self._by_search()
        share = 1.0 - float(is_shown.mean())
        chosen = _sample(len(self._links), self._embeddings.vectors.shape[1] * share, self._device)
        is_open = ~is_shown[chosen]
        counted = self._count(chosen[is_open]) if is_open.any() else None
        result: dict[Scoring, Ranks] = {}
        for name in _SCORINGS:
            both = np.stack([shown[name].source_to_target, shown[name].target_to_source])[:, chosen]
            if counted is not None:
                both[:, is_open] = counted[name].source_to_target, counted[name].target_to_source
            result[name] = Ranks(*both)
        return result

    def _by_search(self) -> tuple[dict[Scoring, Ranks], Mask]:
        """Ranks by cosine and by CSLS among what the search found, and for which links (k,) all of them are right.

        A pair that neither end lists is no nearer than the last that either end does list. So no cosine that an end
        does not list is above its last one, and no CSLS above its last cosine less its mean: what the other end could
        add, its own last less its own mean, is never above 0.
        """
        found = (self._near_targets, self._near_sources)
        is_exact = all(near.record.recall is None and near.k >= self._match.csls_k for near in found)
        is_one_to_one = len(self._sources) == len(self._targets) == len(self._links)
        is_shown = np.full(len(self._links), is_exact and is_one_to_one) & (self._gold >= 0)
        result: dict[Scoring, Ranks] = {}
        for name, same in zip(_SCORINGS, (SAME_SCORE, 2 * SAME_SCORE), strict=True):
            scores = self._graph.column(name)
            result[name] = self._by_edges(scores, same)
            gold = scores[np.maximum(self._gold, 0)] if len(scores) else np.zeros(len(self._links))
            for near, means, indices in zip(found, self._near_means(), self._gold_indices(), strict=True):
                # Whoever lists fewer than it was asked for lists all there are.
                bounds = np.where(np.isfinite(near.scores[:, -1]), near.scores[:, -1], -np.inf)
                bounds = bounds - means if name == "csls" else bounds
                is_shown &= gold > bounds[indices] + 2 * same
        return result, is_shown

    def _count(self, chosen: IntArray) -> dict[Scoring, Ranks]:
        """Ranks by cosine and by CSLS of some links, from all scores of their ends."""
        rows, columns = self._gold_indices()
        source_means, target_means = self._near_means()
        vectors = self._embeddings.vectors
        return rank_links_by(
            _taken(vectors, self._links[:, 0]),
            _taken(vectors, self._links[:, 1]),
            means=(source_means[rows], target_means[columns]),
            ranked=chosen,
            source_covered=self._covered[0][rows],
            target_covered=self._covered[1][columns],
            device=self._device,
            chunk_bytes=min(1 << 28, self._max_bytes // 4) if self._device.type == "cpu" else 4 << 30,
        )

    def _near_means(self) -> tuple[FloatArray, FloatArray]:
        """The mean cosine of each source, and of each target, to its nearest of the other side."""
        k = self._match.csls_k
        return mean_nearest(self._near_targets, k), mean_nearest(self._near_sources, k)

    def _gold_indices(self) -> tuple[IntArray, IntArray]:
        """Row and column of each test link."""
        rows, columns = (
            np.searchsorted(ids, self._links[:, side]) for side, ids in enumerate((self._sources, self._targets))
        )
        return rows, columns

    def _by_edges(self, scores: FloatArray, same: float = SAME_SCORE) -> Ranks:
        """Ranks among the candidates; a partner that is none of them is last."""
        gold = np.full(len(self._links), np.nan)
        gold[self._gold >= 0] = scores[self._gold[self._gold >= 0]]
        return Ranks(
            rank_edges(self._graph.sources, scores, self._links[:, 0], gold, len(self._targets), same),
            rank_edges(self._graph.targets, scores, self._links[:, 1], gold, len(self._sources), same),
        )

    def _by_transport(self, edge_scores: FloatArray, cosine_weight: float = 1.0) -> Ranks:
        """Ranks by the transport plan over all pairs, or over the candidates where those are too many."""
        index = np.zeros(self._task.num_entities, dtype=np.int64)  # edges are many: looked up, not searched for
        index[self._sources], index[self._targets] = np.arange(len(self._sources)), np.arange(len(self._targets))
        rows, columns = index[self._graph.sources], index[self._graph.targets]
        shape, how = (len(self._sources), len(self._targets)), (self._match.temperature, self._match.iterations)
        if not self._is_small:
            return self._by_edges(transport_sparse(rows, columns, edge_scores, shape, *how), _SAME_PLAN)
        weight = cosine_weight if "similarity" in self._graph.evidence else 1.0
        everywhere = dense_plan(*self._vectors(), (rows, columns), edge_scores, *how, self._device, weight)
        return rank_matrix(everywhere, *self._gold_indices(), _SAME_PLAN)


def _taken(vectors: FloatArray, ids: IntArray) -> FloatArray:
    """A copy of the vectors with these ids (k,), by all processors."""
    taken = np.empty((len(ids), vectors.shape[1]), dtype=np.float32)

    def take(first: int, last: int) -> None:
        taken[first:last] = vectors[ids[first:last]]

    by_all_processors(take, len(ids), piece_size(len(ids)))
    return taken


def _sample(num_links: int, products: float, device: torch.device) -> IntArray:
    """Which of so many links to rank at `products` for each end: all, or evenly spread ones if that takes hours."""
    most = int(MOST_PRODUCTS[device.type] // max(2 * num_links * products, 1))
    if most >= num_links:
        return np.arange(num_links)
    return np.unique(np.linspace(0, num_links - 1, max(most, _LEAST_RANKED)).astype(np.int64))
