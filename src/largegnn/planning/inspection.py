"""Count and measure a task before training: degrees, components, seeds, predicates, sizes.

In: an `AlignmentTask`, its merged graph and the counts of loading. Out: an `Inspection` of plain values.
Cost: a few passes over the triples, and one search for connected components.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from largegnn.artifacts import AlignmentTask, IntArray, MergedGraph, SeedsFrom
from largegnn.artifacts.literals import Literals
from largegnn.datasets.benchmarks import name_benchmark
from largegnn.literals.profiles import PredicateProfile, profile_predicates
from largegnn.planning.plan import SizeEstimate, estimate_size

__all__ = ["GraphFacts", "Inspection", "SeedFacts", "inspect_task"]


@dataclasses.dataclass(frozen=True)
class GraphFacts:
    """Facts of one graph: counts, degrees (the number of triples of an entity) and connected components."""

    entities: int
    relations: int
    triples: int
    attribute_triples: int
    isolated_entities: int
    mean_degree: float
    median_degree: float
    degree_99th_percentile: float
    max_degree: int
    degree_histogram: dict[str, int]
    components: int
    largest_component_share: float


@dataclasses.dataclass(frozen=True)
class SeedFacts:
    """Counts of links, and shares of all entities that are seeds or within one or two hops of a seed."""

    train_links: int
    valid_links: int
    test_links: int
    many_to_one_links: int
    seeds_from: str
    source_share: float
    target_share: float
    within_one_hop: float
    within_two_hops: float


@dataclasses.dataclass(frozen=True)
class Inspection:
    """All facts that `largegnn inspect` prints."""

    benchmark: str | None
    source: GraphFacts
    target: GraphFacts
    seeds: SeedFacts
    merged_nodes: int
    merged_edges: int
    merged_components: int
    size: SizeEstimate
    source_predicates: tuple[PredicateProfile, ...] = ()
    target_predicates: tuple[PredicateProfile, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)


def inspect_task(
    task: AlignmentTask,
    graph: MergedGraph,
    seeds_from: SeedsFrom,
    attribute_triples: tuple[int, int] = (0, 0),
    many_to_one_links: int = 0,
    memory_mb: float | None = None,
    literals: Literals | None = None,
) -> Inspection:
    """Count and measure a task and its literals; `memory_mb` limits the size estimate."""
    num_entities = (task.num_source_entities, task.num_target_entities)
    source_ends, target_ends = np.split(task.triples[:, ::2], [task.num_source_triples])
    target_ends = target_ends - task.num_source_entities
    profiles: list[tuple[PredicateProfile, ...]] = [(), ()]
    if literals is not None:
        rows = literals.rows_of_sides(task.num_source_entities)
        of_sides = (profile_predicates(literals, *side).values() for side in zip(rows, num_entities, strict=True))
        profiles = [tuple(sorted(of_side, key=lambda profile: -profile.coverage)) for of_side in of_sides]
    neighbours = sparse.csr_array(
        (np.ones(len(graph.neighbors), dtype=np.int32), graph.neighbors, graph.neighbor_ptr),
        shape=(graph.num_nodes, graph.num_nodes),
    )
    return Inspection(
        benchmark=name_benchmark(task),
        source=_graph_facts(source_ends, num_entities[0], task.num_source_relations, attribute_triples[0]),
        target=_graph_facts(target_ends, num_entities[1], task.num_target_relations, attribute_triples[1]),
        seeds=_seed_facts(task, graph, neighbours, seeds_from, many_to_one_links),
        merged_nodes=graph.num_nodes,
        merged_edges=graph.num_edges,
        merged_components=int(csgraph.connected_components(neighbours, directed=False)[0]),
        size=estimate_size(task.num_entities, len(task.triples), memory_mb),
        source_predicates=profiles[0],
        target_predicates=profiles[1],
    )


def _graph_facts(ends: IntArray, num_entities: int, num_relations: int, attribute_triples: int) -> GraphFacts:
    """Count and measure one graph; `ends` are the heads and tails of its triples, (m, 2)."""
    heads, tails = ends.T
    degrees = np.bincount(heads, minlength=num_entities) + np.bincount(tails, minlength=num_entities)
    edges = sparse.coo_array((np.ones(len(ends), dtype=np.int8), (heads, tails)), shape=(num_entities, num_entities))
    components, label = csgraph.connected_components(edges, directed=False)
    return GraphFacts(
        entities=num_entities,
        relations=num_relations,
        triples=len(ends),
        attribute_triples=attribute_triples,
        isolated_entities=int((degrees == 0).sum()),
        mean_degree=float(degrees.mean()),
        median_degree=float(np.median(degrees)),
        degree_99th_percentile=float(np.percentile(degrees, 99)),
        max_degree=int(degrees.max()),
        degree_histogram=_histogram(degrees),
        components=int(components),
        largest_component_share=float(np.bincount(label).max() / num_entities),
    )


def _histogram(degrees: IntArray) -> dict[str, int]:
    """Count entities by degree, in classes that double: 0, 1, 2-3, 4-7 and so on."""
    steps, counts = np.unique(np.frexp(degrees)[1], return_counts=True)  # the binary exponent is the class
    names = ["0" if step == 0 else "1" if step == 1 else f"{2 ** (step - 1)}-{2**step - 1}" for step in steps.tolist()]
    return dict(zip(names, counts.tolist(), strict=True))


def _seed_facts(
    task: AlignmentTask, graph: MergedGraph, neighbours: Any, seeds_from: SeedsFrom, many_to_one_links: int
) -> SeedFacts:
    """Count the links, and the share of entities that are near seeds in the merged graph."""
    seeds = task.seeds(seeds_from)
    reached = np.zeros(graph.num_nodes, dtype=bool)
    reached[graph.node_of_entity[seeds.ravel()]] = True
    shares = []
    for _ in range(2):
        reached = reached | (neighbours @ reached.astype(np.int32) > 0)
        shares.append(float(graph.node_weights[reached].sum() / task.num_entities))
    return SeedFacts(
        train_links=len(task.train_links),
        valid_links=len(task.valid_links),
        test_links=len(task.test_links),
        many_to_one_links=many_to_one_links,
        seeds_from=seeds_from,
        source_share=float(len(np.unique(seeds[:, 0])) / task.num_source_entities),
        target_share=float(len(np.unique(seeds[:, 1])) / task.num_target_entities),
        within_one_hop=shares[0],
        within_two_hops=shares[1],
    )
