"""A generated pair of graphs, divided, for the tests that need something to learn."""

from __future__ import annotations

from largegnn.artifacts import AlignmentTask, Partition, SubgraphSet
from largegnn.datasets.generator import generate_pair
from largegnn.division.landmarks import add_landmarks
from largegnn.division.merge import merge
from largegnn.division.subgraphs import build_subgraphs
from largegnn.parts import PARTITIONERS
from largegnn.settings import WorldSettings


def generated_pair(
    num_entities: int, num_parts: int, partitioner: str = "metis"
) -> tuple[AlignmentTask, Partition, SubgraphSet]:
    """A pair of this many entities a side, which is not hard; METIS gets landmarks, the others none."""
    world = WorldSettings(
        source_entities=num_entities,
        target_entities=num_entities,
        links=num_entities,
        source_triples=4 * num_entities + 200,
        target_triples=4 * num_entities,
        source_relations=30,
        target_relations=25,
        missing=0.05,
    )
    task = generate_pair(world, 0).task
    graph = merge(task)
    parts = PARTITIONERS[partitioner](task, graph, "train", num_parts, 0)
    if partitioner == "metis":
        parts = add_landmarks(graph, parts, task.train_links, cap=5 * task.num_entities // (4 * num_parts))
    return task, parts, build_subgraphs(task, task.train_links, parts)
