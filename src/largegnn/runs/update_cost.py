"""What an update costs against training on everything, measured on the run itself.

Some entities of valid links are given rows as if they had come later, and it is counted how many of their links are
still found. Cost: one more encoding of the graph.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from largegnn.artifacts import AlignmentTask, EntityEmbeddings, Mask, SubgraphSet, TrainedModel
from largegnn.artifacts.update import UpdateCost
from largegnn.embedding.new_rows import fill_rows
from largegnn.evaluation.metrics import rank_links
from largegnn.machine.devices import choose_device
from largegnn.settings import Settings
from largegnn.stages import derived_seed
from largegnn.stages.integrate import integrate

__all__ = ["cost_of_adding"]

_SIDES = ("source", "target")
# Entities given a row as if they were new: enough to measure, few enough to leave most neighbours known.
_HIDDEN_SHARE, _FEWEST_HIDDEN = 0.05, 50
_MOST_LINKS = 10_000  # valid links the measurement ranks among


def cost_of_adding(
    task: AlignmentTask,
    model: TrainedModel,
    trained: Mask,
    embeddings: EntityEmbeddings,
    subgraphs: SubgraphSet,
    settings: Settings,
    sides: tuple[int, ...],
    folder: Path | None = None,
) -> UpdateCost | None:
    """How many valid links are found by CSLS with trained rows, and with a row as if one end had come later.

    `trained` (n,) are the entities training saw, `sides` where the ends that are hidden lie. None where there are no
    valid links, or where they are seeds.
    """
    links = task.held_out(settings.protocol.seeds_from)
    usable = (trained & embeddings.covered & (task.degrees() > 0))[links].all(axis=1)
    rng = np.random.default_rng(derived_seed(settings.seed, "update"))
    links = rng.permutation(links[usable])[:_MOST_LINKS]
    if not len(links):
        return None
    share = _HIDDEN_SHARE * min(task.num_source_entities, task.num_target_entities)
    rows = np.arange(min(len(links), max(_FEWEST_HIDDEN, int(share))))
    # One end of a link only, in turn on either side: rows that are not trained are alike, so two hidden ends would find
    # each other too easily.
    columns = np.resize(np.array(sides), len(rows))
    known = trained.copy()
    known[links[rows, columns]] = False
    _hide_as_many(known, task, settings, sides, rng)
    found = fill_rows(model.entity_rows, known, task.triples)
    hidden = dataclasses.replace(model, entity_rows=found.rows)
    made = integrate(task, hidden, subgraphs, settings.train, settings.integrate, settings.device, folder).embeddings
    as_new = dataclasses.replace(made, covered=made.covered & found.reached)
    ranks = [
        rank_links(
            vectors.vectors[links[:, 0]],
            vectors.vectors[links[:, 1]],
            "csls",
            settings.match.csls_k,
            source_covered=np.asarray(vectors.covered[links[:, 0]]),
            target_covered=np.asarray(vectors.covered[links[:, 1]]),
            device=choose_device(settings.device),
        )
        for vectors in (embeddings, as_new)
    ]
    before, after = (
        int((np.where(columns == 0, rank.source_to_target[rows], rank.target_to_source[rows]) == 1).sum())
        for rank in ranks
    )
    return UpdateCost(tuple(_SIDES[side] for side in sides), len(links), len(rows), before, after)


def _hide_as_many(
    known: Mask, task: AlignmentTask, settings: Settings, sides: tuple[int, ...], rng: np.random.Generator
) -> None:
    """Forget so many more entities of each side as are new there: a new entity has new neighbours too."""
    split, spoken_for = task.num_source_entities, np.zeros(task.num_entities, dtype=bool)
    spoken_for[task.seeds(settings.protocol.seeds_from).ravel()] = True
    spoken_for[task.valid_links.ravel()] = True
    for side in sides:
        inside = np.arange(split) if side == 0 else np.arange(split, task.num_entities)
        free = inside[known[inside] & ~spoken_for[inside]]
        num_new = int((~known[inside]).sum())
        known[rng.permutation(free)[:num_new]] = False
