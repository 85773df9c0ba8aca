"""The stage `rounds`: confident pairs become seeds, the graph is merged and divided anew, and training goes on.

In: a trained model. Out: the model of the best round and its vectors, and what each round was like.
The idea: what the model is sure of teaches it more than what it was given. Every round starts with the given seeds and
takes its pseudo-seeds anew, so that an early mistake can be undone; the parameters are carried on. The valid links,
where they are no seeds, say how many pseudo-seeds are right and whether the round helped: the first one that does not
ends it. Without valid links all rounds asked for are made.
A finished round is kept in the work folder; a killed one goes on from its last checkpoint.

# Departs: not in the paper; off by default, and reported apart.
"""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any

import numpy as np

from largegnn.aligning import match, search
from largegnn.artifacts import AlignmentTask, EntityEmbeddings, IntArray, SubgraphSet, TrainedModel, are_among
from largegnn.division.merge import merge
from largegnn.evaluation.metrics import rank_links
from largegnn.runs.repartition import divide_once
from largegnn.runs.store import RunStore
from largegnn.settings import Settings
from largegnn.training import choose_device, integrate, train

__all__ = ["run_rounds"]

_log = logging.getLogger(__name__)


def run_rounds(
    task: AlignmentTask,
    model: TrainedModel,
    embeddings: EntityEmbeddings,
    settings: Settings,
    plan: dict[str, Any],
    seed: int,
    store: RunStore | None = None,
    folder: Path | None = None,
) -> tuple[TrainedModel, EntityEmbeddings, list[dict[str, Any]]]:
    """Train on, round by round, and keep the best; `plan` has num_parts and cap of the division."""
    best = (model, embeddings)
    score = _valid_hits(task, embeddings, settings)
    history: list[dict[str, Any]] = []
    for number in range(1, settings.rounds.number + 1):
        pseudo, facts = _pseudo_seeds(task, embeddings, settings, seed + number)
        _log.info("rounds: round %d with %s pseudo-seeds%s", number, f"{len(pseudo):,}", _said(facts))
        file = None if folder is None or store is None else f"{folder.relative_to(store.folder)}/round-{number:02d}.npz"
        model = _train_on(task, model, pseudo, settings, plan, seed + number, store, folder, file)
        embeddings = _integrate(task, model, pseudo, settings, plan, seed + number)
        before, score = score, _valid_hits(task, embeddings, settings)
        history.append({"round": number, "num_pseudo_seeds": len(pseudo), **facts, "valid_hits": score})
        if score is not None and before is not None:
            _log.info("rounds: valid H@1 %.4f, was %.4f", score, before)
            if score <= before:
                history[-1]["kept"] = False
                _log.info("rounds: round %d did not help; the one before is kept", number)
                break
        history[-1]["kept"] = True
        best = (model, embeddings)
    return *best, history


def _pseudo_seeds(
    task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings, seed: int
) -> tuple[IntArray, dict[str, Any]]:
    """Pairs that are sure enough, (p, 2), and how many of those with valid ends are right."""
    device = choose_device(settings.device)
    found = search(task, embeddings, settings, device, seed)
    # A precision asked of the final output is no measure for seeds.
    relaxed = settings.model_copy(update={"match": settings.match.model_copy(update={"min_precision": 0.0})})
    alignment, _ = match(task, embeddings, found[0], found[1], relaxed, device)
    sure = alignment.mutual & (alignment.confidence >= settings.rounds.min_confidence)
    pairs = alignment.pairs[sure]
    facts: dict[str, Any] = {"num_judged": 0, "judged_right": None}
    if settings.protocol.seeds_from == "train" and len(task.valid_links):
        valid = task.valid_links
        judged = np.isin(pairs[:, 0], valid[:, 0]) | np.isin(pairs[:, 1], valid[:, 1])
        facts["num_judged"] = int(judged.sum())
        facts["judged_right"] = float(are_among(pairs[judged], valid).mean()) if judged.any() else None
    return pairs, facts


def _train_on(
    task: AlignmentTask,
    model: TrainedModel,
    pseudo: IntArray,
    settings: Settings,
    plan: dict[str, Any],
    seed: int,
    store: RunStore | None,
    folder: Path | None,
    file: str | None,
) -> TrainedModel:
    """One round of training from the present parameters; taken from `file` if it was finished before."""
    if store is not None and file is not None:
        kept = store.load_scratch(file, TrainedModel, {"encoder": model.encoder})
        if kept is not None:
            _log.info("rounds: this round was finished before")
            return kept
    more, options = _taught(task, pseudo, settings)
    graph = merge(more, "train")
    trained, _ = train(
        more,
        options,
        lambda number: divide_once(more, graph, options, plan["num_parts"], plan["cap"], seed + 1000 * number),
        seed,
        None if folder is None else folder / f"round-{seed}",
        start=model,
    )
    if store is not None and file is not None:
        store.save_scratch(file, trained)
    return trained


def _integrate(
    task: AlignmentTask, model: TrainedModel, pseudo: IntArray, settings: Settings, plan: dict[str, Any], seed: int
) -> EntityEmbeddings:
    """Vectors of all entities; the whole graph as it is, or the subgraphs of this round."""
    if settings.integrate.method == "full":
        nothing = np.empty((0, 2), dtype=np.int32)
        none = SubgraphSet(np.empty(0), np.zeros(1), np.empty((0, 3)), np.zeros(1), nothing, np.zeros(1))
        return integrate(task, model, none, settings)
    more, options = _taught(task, pseudo, settings)
    subgraphs = divide_once(more, merge(more, "train"), options, plan["num_parts"], plan["cap"], seed)
    return integrate(task, model, subgraphs, settings)


def _taught(task: AlignmentTask, pseudo: IntArray, settings: Settings) -> tuple[AlignmentTask, Settings]:
    """The task with pseudo-seeds among its train links, and the settings of a round."""
    seeds = np.concatenate([task.seeds(settings.protocol.seeds_from), pseudo])
    seeds = np.unique(seeds, axis=0)
    valid = task.valid_links if settings.protocol.seeds_from == "train" else task.valid_links[:0]
    more = dataclasses.replace(task, train_links=seeds, valid_links=valid)
    training = settings.train.model_copy(update={"epochs": settings.rounds.epochs})
    protocol = settings.protocol.model_copy(update={"seeds_from": "train"})
    return more, settings.model_copy(update={"train": training, "protocol": protocol})


def _valid_hits(task: AlignmentTask, embeddings: EntityEmbeddings, settings: Settings) -> float | None:
    """H@1 of the valid links among themselves by CSLS, both directions; None where they are seeds or none."""
    links = task.valid_links
    if settings.protocol.seeds_from != "train" or not len(links):
        return None
    vectors = embeddings.vectors[links[:, 0]], embeddings.vectors[links[:, 1]]
    ranks = rank_links(*vectors, "csls", device=choose_device(settings.device))
    return float(np.mean([(ranks.source_to_target == 1).mean(), (ranks.target_to_source == 1).mean()]))


def _said(facts: dict[str, Any]) -> str:
    if facts["judged_right"] is None:
        return ""
    return f"; of {facts['num_judged']:,} with valid ends {facts['judged_right']:.3f} are right"
