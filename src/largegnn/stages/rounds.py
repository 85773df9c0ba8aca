"""The stage `rounds`: confident pairs become pseudo-seeds, the graph is merged and divided again, and training resumes.

In: a trained model. Out: the model of the best round and its vectors, and what each round was like.
The idea (self-training, as BootEA): what the model is sure of teaches it more than what it was given. Every round
starts with the given seeds and takes its pseudo-seeds anew, so that an early mistake can be undone; the parameters are
carried on. The valid links, where they are no seeds, say how many pseudo-seeds are right and whether the round helped:
the first one that does not ends it. Without valid links all rounds asked for are made.
A finished round is kept in the work folder; an interrupted one resumes from its last checkpoint.

# Departs: not in the paper; off by default, and reported apart.
"""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from largegnn.artifacts import (
    AlignmentTask,
    DivisionPlan,
    EntityEmbeddings,
    IntArray,
    RoundRecord,
    SubgraphSet,
    TrainedModel,
    are_among,
)
from largegnn.artifacts.literal_evidence import LiteralEvidence
from largegnn.machine.devices import choose_device
from largegnn.settings import Settings
from largegnn.stages.integrate import integrate
from largegnn.stages.match import match
from largegnn.stages.merge import merge
from largegnn.stages.search import search
from largegnn.stages.subgraphs import divide_again
from largegnn.stages.train import train

__all__ = ["Refined", "RoundsOutcome", "rounds"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoundsOutcome:
    """What each round was like."""

    history: tuple[RoundRecord, ...]


@dataclass(frozen=True)
class Refined:
    """The model of the best round and its vectors; None without rounds."""

    refined_model: TrainedModel | None
    refined_embeddings: EntityEmbeddings | None
    outcome: RoundsOutcome


@dataclass(frozen=True)
class _Judged:
    """Pseudo-seeds (p, 2), how many of them touch a valid link, and the share of those that are right."""

    pairs: IntArray
    num_judged: int
    share_right: float | None


def rounds(
    task: AlignmentTask,
    model: TrainedModel,
    embeddings: EntityEmbeddings,
    partition_outcome: DivisionPlan,
    literal_evidence: LiteralEvidence,
    channels: tuple[str, ...],
    settings: Settings,
    seed: int,
    work: Path | None = None,
) -> Refined:
    """Train on, round by round, and keep the best."""
    if not settings.rounds.number:
        return Refined(None, None, RoundsOutcome(()))
    best = (model, embeddings)
    score = _valid_hits(task, embeddings, settings)
    history: list[RoundRecord] = []
    for number in range(1, settings.rounds.number + 1):
        pseudo = _pseudo_seeds(task, embeddings, literal_evidence, channels, settings, seed + number)
        _log_round(number, pseudo)
        one = _Round(task, pseudo.pairs, partition_outcome, settings, seed + number)
        model = one.train(model, None if work is None else work / f"round-{number:02d}")
        embeddings = one.integrate(model)
        before, score = score, _valid_hits(task, embeddings, settings)
        helped = score is None or before is None or score > before
        history.append(
            RoundRecord(number, len(pseudo.pairs), pseudo.num_judged, pseudo.share_right, score, kept=helped)
        )
        if score is not None and before is not None:
            _log.info("rounds: valid H@1 %.4f, was %.4f", score, before)
        if not helped:
            _log.info("rounds: round %d did not help; the one before is kept", number)
            break
        best = (model, embeddings)
    return Refined(*best, RoundsOutcome(tuple(history)))


class _Round:
    """One round: the task with pseudo-seeds among its train links, merged and divided as often as training asks."""

    def __init__(
        self, task: AlignmentTask, pseudo: IntArray, plan: DivisionPlan, settings: Settings, seed: int
    ) -> None:
        # Anchors that nothing confirmed are not trained on again.
        seeds = np.unique(np.concatenate([task.given_seeds(settings.protocol.seeds_from), pseudo]), axis=0)
        self._given, self._given_settings, self._seed, self._plan = task, settings, seed, plan
        self._task = dataclasses.replace(
            task,
            train_links=seeds,
            valid_links=task.held_out(settings.protocol.seeds_from),
            anchors=task.anchors[:0],
        )
        self._settings = settings.model_copy(
            update={
                "train": settings.train.model_copy(update={"epochs": settings.rounds.epochs}),
                "protocol": settings.protocol.model_copy(update={"seeds_from": "train"}),
            }
        )

    def train(self, start: TrainedModel, work: Path | None) -> TrainedModel:
        """Train on from the present parameters; a round that was finished before is taken from its folder."""
        settings = self._settings
        merged = merge(self._task, settings.protocol).merged

        def divide(number: int) -> SubgraphSet:
            how = (settings.protocol, settings.division, settings.landmarks, self._seed + 1000 * number)
            return divide_again(self._task, merged, self._plan, *how)

        return train(
            self._task,
            SubgraphSet.empty() if settings.integrate.method == "full" else divide(0),
            divide,
            settings.protocol,
            settings.train,
            settings.integrate,
            self._seed,
            settings.device,
            work,
            start=start,
        ).model

    def integrate(self, model: TrainedModel) -> EntityEmbeddings:
        """Vectors of all entities; the whole graph as it is, or the subgraphs of this round."""
        settings = self._given_settings
        subgraphs = SubgraphSet.empty()
        if settings.integrate.method != "full":
            merged, own = merge(self._task, self._settings.protocol).merged, self._settings
            how = (own.protocol, own.division, own.landmarks, self._seed)
            subgraphs = divide_again(self._task, merged, self._plan, *how)
        return integrate(self._given, model, subgraphs, settings.train, settings.integrate, settings.device).embeddings


def _pseudo_seeds(
    task: AlignmentTask,
    embeddings: EntityEmbeddings,
    literal_evidence: LiteralEvidence,
    channels: tuple[str, ...],
    settings: Settings,
    seed: int,
) -> _Judged:
    """Pairs that are sure enough, and how many of those with valid ends are right."""
    found = search(task, embeddings, settings.protocol, settings.search, seed, settings.device)
    # A precision asked of the final output is no measure for seeds.
    relaxed = settings.match.model_copy(update={"min_precision": 0.0})
    alignment = match(
        task,
        embeddings,
        found.source_neighbors,
        found.target_neighbors,
        settings.protocol,
        channels,
        relaxed,
        settings.device,
        literal_evidence,
    ).alignment
    pairs = alignment.pairs[alignment.mutual & (alignment.confidence >= settings.rounds.min_confidence)]
    valid = task.held_out(settings.protocol.seeds_from)
    touched = np.isin(pairs[:, 0], valid[:, 0]) | np.isin(pairs[:, 1], valid[:, 1])
    right = float(are_among(pairs[touched], valid).mean()) if touched.any() else None
    return _Judged(pairs, int(touched.sum()), right)


def _valid_hits(task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings) -> float | None:
    """H@1 of the valid links among themselves by CSLS, both directions; None where they are seeds or none."""
    from largegnn.evaluation.metrics import rank_links

    links = task.held_out(settings.protocol.seeds_from)
    if not len(links):
        return None
    vectors = embeddings.vectors[links[:, 0]], embeddings.vectors[links[:, 1]]
    return rank_links(*vectors, "csls", device=choose_device(settings.device)).both_ways_hits()


def _log_round(number: int, pseudo: _Judged) -> None:
    right = (
        ""
        if pseudo.share_right is None
        else f"; of {pseudo.num_judged:,} with valid ends {pseudo.share_right:.3f} are right"
    )
    _log.info("rounds: round %d with %s pseudo-seeds%s", number, f"{len(pseudo.pairs):,}", right)
