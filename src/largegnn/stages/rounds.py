"""The stage `rounds`: confident pairs become pseudo-seeds, the graph is merged and divided again, and training resumes.

In: a trained model. Out: the model of the best round and its vectors, and what each round was like.
The idea (self-training, as BootEA): what the model is sure of teaches it more than what it was given. Every round
starts with the given seeds and takes its pseudo-seeds anew, so that an early mistake can be undone; the parameters are
carried on. The valid links, where they are no seeds, say how many pseudo-seeds are right and whether a round did harm:
one that loses more of them than it gains, by more than chance does, is undone and ends it. They are judged as the run
itself would match them, among all entities that are no seeds: among themselves a few of them are too easy to find to
tell rounds apart. Without valid links all rounds asked for are made.
A finished round is kept in the work folder; an interrupted one resumes from its last checkpoint.

# Departs: not in the paper; off by default, and reported apart.
"""

from __future__ import annotations

import dataclasses
import logging
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from largegnn.artifacts import (
    AlignmentTask,
    DivisionPlan,
    EntityEmbeddings,
    IntArray,
    LiteralEvidence,
    Mask,
    RoundRecord,
    SubgraphSet,
    TrainedModel,
    are_among,
)
from largegnn.machine.worker_pool import worker_pool
from largegnn.settings import Settings
from largegnn.stages.integrate import integrate
from largegnn.stages.match import match
from largegnn.stages.merge import merge
from largegnn.stages.search import search
from largegnn.stages.subgraphs import divide_again
from largegnn.stages.train import train

__all__ = ["Refined", "RoundsOutcome", "rounds"]

_log = logging.getLogger(__name__)
_FEW_SEEDS = 0.05  # of the entities of the smaller graph


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


@dataclass(frozen=True, eq=False)
class _Judged:
    """Pseudo-seeds (p, 2), how many of them touch a valid link, and the share of those that are right.

    `found` (v, 2) says which valid links are the first choice of their source, and of their target.
    """

    pairs: IntArray
    num_judged: int
    share_right: float | None
    found: Mask

    @property
    def valid_hits(self) -> float | None:
        """H@1 of the valid links among all entities that are no seeds, both directions; None where there are none."""
        return float(self.found.mean()) if self.found.size else None


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
        _advise(task, channels, settings)
        return Refined(None, None, RoundsOutcome(()))
    best = (model, embeddings)
    pseudo = _pseudo_seeds(task, embeddings, literal_evidence, channels, settings, seed + 1)
    history: list[RoundRecord] = []
    for number in range(1, settings.rounds.number + 1):
        _log_round(number, pseudo)
        one = _Round(task, pseudo.pairs, partition_outcome, settings, seed + number)
        own = None if work is None else work / f"round-{number:02d}"
        model = one.train(model, own)
        embeddings = one.integrate(model, own)
        before, is_last = pseudo, number == settings.rounds.number
        if pseudo.found.size or not is_last:
            pseudo = _pseudo_seeds(task, embeddings, literal_evidence, channels, settings, seed + number + 1)
        kept = not _did_harm(before.found, pseudo.found)
        record = RoundRecord(
            number, len(before.pairs), before.num_judged, before.share_right, pseudo.valid_hits, kept=kept
        )
        history.append(record)
        if pseudo.valid_hits is not None:
            _log.info("rounds: valid H@1 %.4f, was %.4f", pseudo.valid_hits, before.valid_hits)
        if not kept:
            _log.info("rounds: round %d did harm; the one before is kept", number)
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

    def integrate(self, model: TrainedModel, work: Path | None) -> EntityEmbeddings:
        """Vectors of all entities; the whole graph as it is, or the subgraphs of this round.

        The workers of a cluster meet in the folder `work`; one machine needs none.
        """
        settings = self._given_settings
        subgraphs = SubgraphSet.empty()
        if settings.integrate.method != "full":
            merged, own = merge(self._task, self._settings.protocol).merged, self._settings
            how = (own.protocol, own.division, own.landmarks, self._seed)
            subgraphs = divide_again(self._task, merged, self._plan, *how)
        work = work if worker_pool() is not None else None
        sections = settings.train, settings.integrate, settings.device
        return integrate(self._given, model, subgraphs, *sections, work).embeddings


def _pseudo_seeds(
    task: AlignmentTask,
    embeddings: EntityEmbeddings,
    literal_evidence: LiteralEvidence,
    channels: tuple[str, ...],
    settings: Settings,
    seed: int,
) -> _Judged:
    """Pairs that are sure enough, how many of those with valid ends are right, and which valid links are found."""
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
    firsts = (alignment.source_ranks == 1, alignment.target_ranks == 1)
    is_found = np.stack([are_among(valid, alignment.pairs[first]) for first in firsts], axis=1)
    return _Judged(pairs, int(touched.sum()), right, is_found)


def _did_harm(before: Mask, after: Mask) -> bool:
    """Whether fewer links are found than before (v, 2), by more than the deviation of as many tosses of a coin."""
    lost, gained = int((before & ~after).sum()), int((after & ~before).sum())
    return lost - gained > math.sqrt(lost + gained)


def _advise(task: AlignmentTask, channels: tuple[str, ...], settings: Settings) -> None:
    """Say that rounds would help, where structure alone has few seeds to start from."""
    num_seeds = len(task.given_seeds(settings.protocol.seeds_from))
    fewest = min(task.num_source_entities, task.num_target_entities)
    if "literals" not in channels and num_seeds < _FEW_SEEDS * fewest:
        _log.info(
            "rounds: none asked for. There are %s seeds for %s entities: --rounds 3 finds more pairs then, often "
            "several times as many",
            f"{num_seeds:,}",
            f"{fewest:,}",
        )


def _log_round(number: int, pseudo: _Judged) -> None:
    right = (
        ""
        if pseudo.share_right is None
        else f"; of {pseudo.num_judged:,} with valid ends {pseudo.share_right:.3f} are right"
    )
    _log.info("rounds: round %d with %s pseudo-seeds%s", number, f"{len(pseudo.pairs):,}", right)
