"""What there is to know about a task before anything is trained: counts, degrees, components, seeds, sizes.

In: an `AlignmentTask`, its merged graph and what loading noticed. Out: an `Inspection` of plain values.
Cost: a few passes over the triples, connected components once.
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
from largegnn.planning.sizes import SizeEstimate, estimate_size

__all__ = ["GraphFacts", "Inspection", "SeedFacts", "inspect_task"]


@dataclasses.dataclass(frozen=True)
class GraphFacts:
    """One side: counts, degrees (triples an entity takes part in) and connected components."""

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
    """The links, and how far the seeds reach: shares of all entities that are a seed, or that many hops from one."""

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
    """Everything `largegnn inspect` shows."""

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
        """Plain values for JSON."""
        values = dataclasses.asdict(self)
        values["size"]["training_mb"] = self.size.training_mb
        return values


def inspect_task(
    task: AlignmentTask,
    graph: MergedGraph,
    seeds_from: SeedsFrom,
    attribute_triples: tuple[int, int] = (0, 0),
    many_to_one_links: int = 0,
    memory_mb: float | None = None,
    literals: Literals | None = None,
) -> Inspection:
    """Count and measure a task and its literals; `memory_mb` is what the size estimate may use."""
    first = task.num_source_triples
    profiles = _predicates(task, Literals.empty() if literals is None else literals)
    components, _ = csgraph.connected_components(_matrix(graph.neighbor_ptr, graph.neighbors), directed=False)
    return Inspection(
        benchmark=name_benchmark(task),
        source=_graph_facts(
            task.triples[:first], 0, task.num_source_entities, task.num_source_relations, attribute_triples[0]
        ),
        target=_graph_facts(
            task.triples[first:],
            task.num_source_entities,
            task.num_target_entities,
            task.num_target_relations,
            attribute_triples[1],
        ),
        seeds=_seed_facts(task, graph, seeds_from, many_to_one_links),
        merged_nodes=graph.num_nodes,
        merged_edges=graph.num_edges,
        merged_components=int(components),
        size=estimate_size(task.num_entities, len(task.triples), memory_mb),
        source_predicates=profiles[0],
        target_predicates=profiles[1],
    )


def _predicates(
    task: AlignmentTask, literals: Literals
) -> tuple[tuple[PredicateProfile, ...], tuple[PredicateProfile, ...]]:
    """What the predicates of either side hold, those of most entities first."""
    at = int(np.searchsorted(literals.entities, task.num_source_entities))
    sides = ((slice(0, at), task.num_source_entities), (slice(at, len(literals)), task.num_target_entities))
    source, target = (
        tuple(sorted(profile_predicates(literals, *side).values(), key=lambda profile: -profile.coverage))
        for side in sides
    )
    return source, target


def _graph_facts(
    triples: IntArray, first_entity: int, num_entities: int, num_relations: int, attribute_triples: int
) -> GraphFacts:
    heads, tails = triples[:, 0] - first_entity, triples[:, 2] - first_entity
    degrees = np.bincount(heads, minlength=num_entities) + np.bincount(tails, minlength=num_entities)
    edges = sparse.coo_array((np.ones(len(triples), dtype=np.int8), (heads, tails)), shape=(num_entities, num_entities))
    components, label = csgraph.connected_components(edges, directed=False)
    return GraphFacts(
        entities=num_entities,
        relations=num_relations,
        triples=len(triples),
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
    """Entities by degree, in steps of powers of two."""
    histogram = {"0": int((degrees == 0).sum())} if bool((degrees == 0).any()) else {}
    low = 1
    while low <= int(degrees.max()):
        count = int(((degrees >= low) & (degrees < 2 * low)).sum())
        histogram[str(low) if low == 1 else f"{low}-{2 * low - 1}"] = count
        low *= 2
    return histogram


def _seed_facts(task: AlignmentTask, graph: MergedGraph, seeds_from: SeedsFrom, many_to_one_links: int) -> SeedFacts:
    seeds = task.seeds(seeds_from)
    reached = np.zeros(graph.num_nodes, dtype=bool)
    reached[graph.node_of_entity[seeds.ravel()]] = True
    matrix = _matrix(graph.neighbor_ptr, graph.neighbors)
    shares = []
    for _ in range(2):
        reached = reached | (matrix @ reached.astype(np.int32) > 0)
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


def _matrix(ptr: IntArray, neighbors: IntArray) -> Any:
    """The merged graph as a sparse matrix of ones, sharing its index arrays."""
    num_nodes = len(ptr) - 1
    return sparse.csr_array((np.ones(len(neighbors), dtype=np.int32), neighbors, ptr), shape=(num_nodes, num_nodes))
