"""Landmarks: entities recalled into a part for what they connect (CLG, section 4.2 and Algorithm 2 of the paper).

In: the merged graph, any partition of its entities, the seeds, and the number of entities a part may reach (the cap).
Out: a `Partition` again, each part with its landmarks; parts now overlap.
The idea: an entity is worth recalling if many of its neighbours are seeds or near seeds (influence), the more the
closer it is to the part (benefit). An entity two hops away needs one in between, so the two are weighed as a pair.

- importance  phi(v) = 1 / (eta + hops from v to the nearest seed), up to 2 hops, else 0
- influence   Phi(v) = sum of phi over the distinct neighbours of v
- benefit     Omega(v, S) = Phi(v) * decay ** (hops from v to the part S)

Everything happens on nodes. A node belongs to a part if any of its entities does, and is zero hops away from it. A
recalled node brings every entity it has and the part lacks, so a seed node costs two or more of the cap. A partitioner
other than METIS may put an entity into a part without its seed partner; such a half-present node is itself a candidate
at zero hops, and what it brings is the missing partner.

Cost: three sparse products and one sort for the scores; per part one search two hops wide and a walk that ends with the
budget. Memory: about fifteen bytes per node and thread, and the result.

# Paper: eta 0.001, decay (lambda) 0.01, two hops; the stop value 0.49 belongs to phi and means "2 hops, else 0".
# Departs: hops are counted on the merged graph, not in each graph apart; the cap holds for a part as a whole.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import IntArray, MergedGraph, Partition
from largegnn.division.landmark_walk import choose_landmarks
from largegnn.errors import InputError
from largegnn.machine.devices import num_processors

__all__ = ["add_landmarks", "influence"]

_IMPORTANT_HOPS = 2


def add_landmarks(
    graph: MergedGraph,
    partition: Partition,
    seeds: IntArray,
    cap: int,
    *,
    eta: float = 0.001,
    decay: float = 0.01,
    hops: int = 2,
    num_threads: int | None = None,
) -> Partition:
    """Fill each part with landmarks up to `cap` entities; `seeds` (k, 2). A part at or over the cap gets none.

    The result does not depend on the number of threads (default: one for each processor there is).
    """
    _check_settings(eta, decay, hops)
    scores = influence(graph, seeds, eta)
    by_influence = np.argsort(-scores, kind="stable").astype(np.int32)
    rank = np.empty_like(by_influence)
    rank[by_influence] = np.arange(len(rank), dtype=np.int32)
    entities_by_node = np.argsort(graph.node_of_entity, kind="stable").astype(np.int32)
    entity_ptr = np.concatenate([[0], np.cumsum(graph.node_weights, dtype=np.int64)])
    decay_of_hop = decay ** np.arange(3.0)

    def fill(index: int) -> IntArray:
        part = partition.part(index)
        if len(part) >= cap:
            return part
        landmarks = choose_landmarks(
            graph.neighbor_ptr,
            graph.neighbors,
            graph.node_weights,
            graph.node_of_entity[part],
            scores,
            rank,
            by_influence,
            decay_of_hop,
            hops,
            cap - len(part),
        )
        return np.union1d(part, _rows_of(entities_by_node, entity_ptr, landmarks))

    with ThreadPoolExecutor(num_threads or num_processors()) as pool:
        parts = list(pool.map(fill, range(partition.num_parts)))
    part_ptr = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    return Partition(partition.num_entities, np.concatenate(parts), part_ptr)


def influence(graph: MergedGraph, seeds: IntArray, eta: float = 0.001) -> npt.NDArray[np.float64]:
    """Phi of each node, (num_nodes,): what its distinct neighbours are worth; `seeds` (k, 2)."""
    binary = sparse.csr_array(
        (np.ones(len(graph.neighbors), dtype=np.int32), graph.neighbors, graph.neighbor_ptr),
        shape=(graph.num_nodes, graph.num_nodes),
    )
    at_distance = np.zeros(graph.num_nodes, dtype=bool)
    at_distance[graph.node_of_entity[seeds.ravel()]] = True
    reached = at_distance.copy()
    result = np.zeros(graph.num_nodes)
    for distance in range(_IMPORTANT_HOPS + 1):
        # Neighbours are counted per distance, not summed one by one, so that equal nodes get equal floats.
        count = binary @ at_distance.astype(np.int32)
        result += count / (eta + distance)
        at_distance = (count > 0) & ~reached
        reached |= at_distance
    return result


def _rows_of(rows: IntArray, row_ptr: IntArray, groups: IntArray) -> IntArray:
    """The rows of these groups of a CSR array, one group after the other."""
    lengths = row_ptr[groups + 1] - row_ptr[groups]
    starts = np.repeat(row_ptr[groups] - (np.cumsum(lengths) - lengths), lengths)
    return rows[starts + np.arange(len(starts))]


def _check_settings(eta: float, decay: float, hops: int) -> None:
    """Refuse settings for which benefit is not defined."""
    for name, value, fine, expected in (
        ("eta", eta, eta > 0, "a number above 0"),
        ("decay", decay, 0 < decay <= 1, "a number above 0, at most 1"),
        ("hops", hops, hops in (1, 2), "1 or 2"),
    ):
        if not fine:
            raise InputError(f"landmarks cannot be chosen with this {name}", expected=expected, found=str(value))
