"""Two graphs that mirror each other, their vectors in a file, and what search and rules make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from largegnn.artifacts import AlignmentTask, CandidateGraph, EntityEmbeddings, RelationAlignment
from largegnn.matching.channels import ChannelContext, gather_candidates
from largegnn.matching.relations import align_relations
from largegnn.matching.search import search_both

__all__ = ["SIDE", "assert_equal", "matched", "mirrored_task", "mirrored_vectors"]

SIDE = 700


def mirrored_task() -> AlignmentTask:
    """Two graphs of which one has most triples of the other, with hubs; a fifth of the links are seeds."""
    rng = np.random.default_rng(0)
    heads, tails = (rng.random((2, 5 * SIDE)) ** [[3], [1]] * SIDE).astype(np.int32)
    source = np.stack([heads, rng.integers(0, 4, len(heads)), tails], axis=1)
    target = (source + np.array([SIDE, 4, SIDE]))[rng.random(len(source)) < 0.8]
    links = np.stack([np.arange(SIDE), np.arange(SIDE) + SIDE], axis=1)
    none = np.empty((0, 2), dtype=np.int32)
    triples = np.unique(np.concatenate([source, target]), axis=0)
    return AlignmentTask(SIDE, SIDE, 4, 4, triples, links[::5], none, none)


def mirrored_vectors(folder: Path) -> EntityEmbeddings:
    """Vectors by which counterparts are near each other, but seldom nearest; mapped, as those of a run are."""
    rng = np.random.default_rng(1)
    same = rng.normal(size=(SIDE, 8))
    vectors = np.concatenate([same + rng.normal(scale=0.6, size=same.shape) for _ in range(2)]).astype(np.float32)
    np.save(folder / "vectors.npy", vectors)
    covered = rng.random(2 * SIDE) < 0.95
    return EntityEmbeddings(np.lib.format.open_memmap(folder / "vectors.npy", mode="r"), covered)


def matched(task: AlignmentTask, found: EntityEmbeddings) -> tuple[CandidateGraph, RelationAlignment]:
    """Candidates with evidence by search and rules, and the relations that are aligned by the best."""
    sides = found.vectors[:SIDE], found.vectors[SIDE:]
    ids = np.arange(SIDE), np.arange(SIDE, 2 * SIDE)
    near = search_both(*sides, 5, "torch", source_ids=ids[0], target_ids=ids[1])
    context = ChannelContext(task, task.train_links, found, *near, 5, {"support": 0.3}, rule_candidates=3)
    graph = gather_candidates(("structure", "rules"), context)
    best = graph.pairs(np.flatnonzero(graph.column("support") > 0.3))
    return graph, align_relations(task, best, np.ones(len(best), dtype=np.float32))


def assert_equal(
    found: tuple[CandidateGraph, RelationAlignment], expected: tuple[CandidateGraph, RelationAlignment]
) -> None:
    """Equal to the bit."""
    (graph, relations), (other, other_relations) = found, expected
    assert np.array_equal(graph.pairs(), other.pairs())
    assert list(graph.evidence) == list(other.evidence) == ["cosine", "csls", "support"]
    for name in graph.evidence:
        assert np.array_equal(graph.column(name), other.column(name)), name
    assert len(relations.pairs)
    for name, values in vars(relations).items():
        assert np.array_equal(getattr(other_relations, name), values), name
