"""Train in rounds: confident pairs become pseudo-seeds, the graph is merged and divided again, training resumes.

In: a trained model. Out: the model and the vectors of the last round that was kept, and a record of each round.
The idea (self-training, as BootEA): confident pairs teach the model more than the seeds alone. Every round starts from
the given seeds and selects new pseudo-seeds, so an early mistake can be undone; parameters carry over. Valid links
that are not seeds measure whether a round did harm: if it loses significantly more of them than it gains, it is undone
and training stops. Valid links are matched as in the run itself, among all entities that are not seeds. Without them
all rounds run. A finished round is kept in the work folder; an interrupted one resumes from its last checkpoint.

# Departs: not in the paper; off by default, and reported separately.
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
from largegnn.division.merge import merge
from largegnn.division.subgraphs import divide_again
from largegnn.embedding.encode import integrate
from largegnn.embedding.train import train
from largegnn.matching.match import match
from largegnn.matching.nearest import find_nearest
from largegnn.settings import ProtocolSettings, Settings

__all__ = ["RoundsOutcome", "RoundsResult", "advise_rounds", "run_rounds"]

_log = logging.getLogger(__name__)
_FEW_SEEDS = 0.05  # of the entities of the smaller graph


@dataclass(frozen=True)
class RoundsOutcome:
    """A record of each round."""

    history: tuple[RoundRecord, ...]


@dataclass(frozen=True)
class RoundsResult:
    """The model of the last round that was kept, and its vectors."""

    refined_model: TrainedModel
    refined_embeddings: EntityEmbeddings
    outcome: RoundsOutcome


@dataclass(frozen=True, eq=False)
class _PseudoSeeds:
    """Pairs (p, 2), how many of them touch a valid link, and the share of those that are right.

    `valid_found` (v, 2) marks the valid links that are the first choice of their source, and of their target.
    """

    pairs: IntArray
    num_judged: int
    share_right: float | None
    valid_found: Mask

    @property
    def valid_hits(self) -> float | None:
        """H@1 of the valid links among all entities that are not seeds, both directions; None without such links."""
        return float(self.valid_found.mean()) if self.valid_found.size else None


@dataclass(frozen=True, eq=False)
class _RoundRunner:
    """The inputs that all rounds share, and the two halves of a round."""

    task: AlignmentTask
    plan: DivisionPlan
    evidence: LiteralEvidence
    channels: tuple[str, ...]
    settings: Settings
    seed: int
    device: str

    def pseudo_seeds(self, embeddings: EntityEmbeddings, number: int) -> _PseudoSeeds:
        """Pairs that are confident enough to be seeds of round `number`, and how they agree with the valid links."""
        task, settings, protocol = self.task, self.settings, self.settings.protocol
        near = find_nearest(task, embeddings, protocol, settings.search, self.seed + number, device=self.device)
        sides = near.source_neighbors, near.target_neighbors
        # The precision the user wants of the final pairs is no measure for seeds.
        relaxed = settings.match.model_copy(update={"min_precision": 0.0})
        matched = match(task, embeddings, *sides, protocol, self.channels, relaxed, self.evidence, device=self.device)
        alignment = matched.alignment
        pairs = alignment.pairs[alignment.mutual & (alignment.confidence >= settings.rounds.min_confidence)]
        valid = task.held_out(protocol.seeds_from)
        touched = np.isin(pairs[:, 0], valid[:, 0]) | np.isin(pairs[:, 1], valid[:, 1])
        right = float(are_among(pairs[touched], valid).mean()) if touched.any() else None
        firsts = (alignment.source_ranks == 1, alignment.target_ranks == 1)
        found = np.stack([are_among(valid, alignment.pairs[first]) for first in firsts], axis=1)
        return _PseudoSeeds(pairs, int(touched.sum()), right, found)

    def train(
        self, pseudo: IntArray, number: int, start: TrainedModel, work: Path | None
    ) -> tuple[TrainedModel, EntityEmbeddings]:
        """Train on with pseudo-seeds, and encode; a round that was finished before is taken from its folder."""
        # Anchors count here only if they are among the pseudo-seeds.
        given, seed = self.task.given_seeds(self.settings.protocol.seeds_from), self.seed + number
        task = dataclasses.replace(
            self.task,
            train_links=np.unique(np.concatenate([given, pseudo]), axis=0),
            valid_links=self.task.held_out(self.settings.protocol.seeds_from),
            anchors=self.task.anchors[:0],
        )
        protocol, settings = ProtocolSettings(seeds_from="train"), self.settings
        round_settings = settings.train.model_copy(update={"epochs": settings.rounds.epochs})
        merged = merge(task)

        def divide(division: int) -> SubgraphSet:
            sections = protocol, settings.division, settings.landmarks
            return divide_again(task, merged, self.plan, *sections, seed + 1000 * division)

        # Where the whole graph is encoded, no subgraphs are needed to validate by.
        subgraphs = SubgraphSet.empty() if settings.integrate.method == "full" else divide(0)
        sections = protocol, round_settings, settings.integrate
        made = train(task, subgraphs, *sections, seed, divisions=divide, device=self.device, work=work, start=start)
        encoded = integrate(
            self.task, made.model, subgraphs, settings.train, settings.integrate, device=self.device, work=work
        )
        return made.model, encoded.embeddings


def run_rounds(
    task: AlignmentTask,
    model: TrainedModel,
    embeddings: EntityEmbeddings,
    plan: DivisionPlan,
    evidence: LiteralEvidence,
    channels: tuple[str, ...],
    settings: Settings,
    seed: int,
    *,
    device: str,
    work: Path | None = None,
) -> RoundsResult:
    """Train round by round, until all rounds are made or one did harm."""
    rounds = _RoundRunner(task, plan, evidence, channels, settings, seed, device)
    best = (model, embeddings)
    pseudo = rounds.pseudo_seeds(embeddings, 1)
    history: list[RoundRecord] = []
    for number in range(1, settings.rounds.number + 1):
        _log_round(number, pseudo)
        round_folder = None if work is None else work / f"round-{number:02d}"
        model, embeddings = rounds.train(pseudo.pairs, number, model, round_folder)
        before, is_last = pseudo, number == settings.rounds.number
        # The last round needs no new pseudo-seeds unless valid links can judge it.
        if pseudo.valid_found.size or not is_last:
            pseudo = rounds.pseudo_seeds(embeddings, number + 1)
        kept = not _did_harm(before.valid_found, pseudo.valid_found)
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
    return RoundsResult(*best, RoundsOutcome(tuple(history)))


def advise_rounds(task: AlignmentTask, channels: tuple[str, ...], protocol: ProtocolSettings) -> None:
    """Recommend rounds where structure alone has few seeds to start from."""
    num_seeds = len(task.given_seeds(protocol.seeds_from))
    fewest = min(task.num_source_entities, task.num_target_entities)
    if "literals" not in channels and num_seeds < _FEW_SEEDS * fewest:
        _log.info(
            "rounds: off. There are %s seeds for %s entities: --rounds 3 finds more pairs then, often several times "
            "as many",
            f"{num_seeds:,}",
            f"{fewest:,}",
        )


def _did_harm(before: Mask, after: Mask) -> bool:
    """Whether fewer links are found than before (v, 2), by more than the standard deviation of fair coin tosses."""
    lost, gained = int((before & ~after).sum()), int((after & ~before).sum())
    return lost - gained > math.sqrt(lost + gained)


def _log_round(number: int, pseudo: _PseudoSeeds) -> None:
    right = (
        ""
        if pseudo.share_right is None
        else f"; of {pseudo.num_judged:,} with valid ends {pseudo.share_right:.3f} are right"
    )
    _log.info("rounds: round %d with %s pseudo-seeds%s", number, f"{len(pseudo.pairs):,}", right)
