"""Add landmarks to the parts: entities near a part that connect it to seeds (CLG, section 4.2 and Algorithm 2).

In: the merged graph, any partition of its entities, the seeds, and the maximum number of entities in a part (the cap).
Out: a `Partition` in which each part includes its landmarks; parts overlap.
The idea: an entity is valuable if many of its neighbours are seeds or near seeds (influence), and more valuable the
closer it is to the part (benefit). An entity two hops away is connected by an entity in between, so the two are valued
as a pair.

- importance  phi(v) = 1 / (eta + hops from v to the nearest seed), up to 2 hops, else 0
- influence   Phi(v) = sum of phi over the distinct neighbours of v
- benefit     Omega(v, S) = Phi(v) * decay ** (hops from v to the part S)

The algorithm works on nodes of the merged graph. A node belongs to a part, at zero hops, if one of its entities does. A
landmark node adds all its entities that the part lacks, so a seed node usually costs two entities of the cap. CPS and
SBP may put an entity into a part without its seed partner; such a node is a candidate at zero hops, and adds the
missing partner.

Cost: three sparse products and one sort for the scores; per part one search of two hops and a walk that ends when the
budget is used: O(edges at the part and one hop around it), O(nodes) byte reads, O(log) for each held pair. Memory:
about fifteen bytes per node and thread, and the result.

# Paper: eta 0.001, decay (lambda) 0.01, two hops; the stop value 0.49 belongs to phi and means "2 hops, else 0".
#     The paper calls the result of Algorithm 2 optimal; it is greedy.
# Departs: hops are counted on the merged graph, not in each graph separately; the cap applies to a part as a whole. In
#     the walk, the current node is not lost when a pair is taken before it; any taken neighbour connects, not only the
#     best; pairs are kept in a heap, not in a dictionary keyed by score; held pairs are released and flushed; the last
#     candidate is considered; a pair that no longer fits does not block the pairs after it; costs are in entities.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from largegnn.artifacts import AlignmentTask, DivisionPlan, IntArray, MergedGraph, Partition
from largegnn.machine.compiled import compiled
from largegnn.machine.pieces import map_pieces

if TYPE_CHECKING:
    from largegnn.settings import LandmarkSettings, ProtocolSettings

__all__ = ["LandmarksOutcome", "LandmarksResult", "add_landmarks", "choose_landmarks", "influence", "landmarks"]

_MAX_SEED_HOPS = 2  # importance is zero beyond
_NOT_REACHED = np.uint8(255)
# States of a node in the walk; the initial state is 0.
_HELD = np.uint8(1)  # in a pair that waits in the heap
_RELEASED = np.uint8(2)  # connected since it was held: waits in the heap without a partner
_TAKEN = np.uint8(3)
_NO_NODE = np.int32(-1)

FloatArray = npt.NDArray[np.float64]
Heap = list[tuple[float, np.int32, np.int32]]


@dataclass(frozen=True)
class LandmarksOutcome:
    """The total number of landmarks in all parts."""

    num_landmarks: int


@dataclass(frozen=True)
class LandmarksResult:
    """The entities of each subgraph: the part and its landmarks."""

    membership: Partition
    outcome: LandmarksOutcome


def landmarks(
    task: AlignmentTask,
    merged: MergedGraph,
    parts: Partition,
    partition_outcome: DivisionPlan,
    protocol: ProtocolSettings,
    landmarks: LandmarkSettings,
) -> LandmarksResult:
    """Fill every part up to the cap with its most valuable landmarks; if disabled, return the parts unchanged."""
    if not landmarks.enabled:
        return LandmarksResult(parts, LandmarksOutcome(0))
    seeds, cap = task.seeds(protocol.seeds_from), partition_outcome.cap
    membership = add_landmarks(merged, parts, seeds, cap, eta=landmarks.eta, decay=landmarks.decay, hops=landmarks.hops)
    return LandmarksResult(membership, LandmarksOutcome(len(membership.entities) - len(parts.entities)))


def add_landmarks(
    graph: MergedGraph,
    partition: Partition,
    seeds: IntArray,
    cap: int,
    *,
    eta: float = 0.001,
    decay: float = 0.01,
    hops: int = 2,
) -> Partition:
    """Fill each part with landmarks up to `cap` entities; `seeds` (k, 2). A part at or over the cap gets none."""
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
        nodes = choose_landmarks(
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
        return np.union1d(part, _rows_of(entities_by_node, entity_ptr, nodes))

    parts = list(map_pieces(fill, ((index,) for index in range(partition.num_parts)), send=False))
    part_ptr = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    return Partition(partition.num_entities, np.concatenate(parts), part_ptr)


def influence(graph: MergedGraph, seeds: IntArray, eta: float = 0.001) -> npt.NDArray[np.float64]:
    """Compute Phi of each node, (num_nodes,): the sum of the importance of its neighbours; `seeds` (k, 2)."""
    binary = sparse.csr_array(
        (np.ones(len(graph.neighbors), dtype=np.int32), graph.neighbors, graph.neighbor_ptr),
        shape=(graph.num_nodes, graph.num_nodes),
    )
    is_at_distance = np.zeros(graph.num_nodes, dtype=bool)
    is_at_distance[graph.node_of_entity[seeds.ravel()]] = True
    is_reached = is_at_distance.copy()
    result = np.zeros(graph.num_nodes)
    for distance in range(_MAX_SEED_HOPS + 1):
        # Neighbours are counted per distance before they are weighted, so that equal nodes get equal floats.
        count = binary @ is_at_distance.astype(np.int32)
        result += count / (eta + distance)
        is_at_distance = (count > 0) & ~is_reached
        is_reached |= is_at_distance
    return result


def _rows_of(rows: IntArray, row_ptr: IntArray, groups: IntArray) -> IntArray:
    """Concatenate the rows of some groups of a CSR array."""
    lengths = row_ptr[groups + 1] - row_ptr[groups]
    starts = np.repeat(row_ptr[groups] - (np.cumsum(lengths) - lengths), lengths)
    return rows[starts + np.arange(len(starts))]


# The walk of one part: Algorithm 2 of the paper, corrected and compiled. It visits the candidates, all nodes up to two
# hops from the part, by decreasing benefit.
#
# - A node one hop away is taken, but held pairs of higher benefit are taken before it, as long as both fit.
# - A node two hops away is taken if a node between it and the part is taken already. If not, it is held as a pair with
#   the best node in between; the benefit of a pair is the mean of both.
# - When a node one hop away is taken, held nodes next to it are released: they no longer need a partner.
# - At the end held nodes are taken by decreasing benefit, as far as they fit.
#
# A node that has some of its entities in the part is treated as a node one hop away. An example, with one entity per
# node, decay 1/10, and influence in brackets:
#
#     a --- b [4] --- c [90]      the part is {a}; b and d are one hop away, c and e two
#     |                           benefit: b 0.4   c 0.9   d 0.2   e 0.58
#     d [2] --- e [58]            pairs: (c, b) 0.65   (e, d) 0.39
#
# The walk visits c and holds (c, b), visits e and holds (e, d), then visits b. Budget 1: no pair fits, b is taken.
# Budget 2: (c, b) has a higher benefit than b and fits: b, c. Budget 3: after b and c, d is visited; the benefit of
# (e, d) is higher but the pair does not fit, so d is taken: b, c, d. Budget 4: all nodes.
#
# The order of nodes at one distance is the order of their influence in every part, so candidates are not sorted: they
# are marked at their rank by influence in one array, which the walk scans once for each distance.


class _Walk(NamedTuple):
    """The graph and the state of the walk of one part; arrays are per node, except for edges and `decay_of_hop`.

    `cost`: how many entities a node would add to the part; `hop`: its distance from the part; `state`: 0, `_HELD`,
    `_RELEASED` or `_TAKEN`.
    """

    neighbor_ptr: IntArray
    neighbors: IntArray
    influence: FloatArray
    decay_of_hop: FloatArray
    cost: IntArray
    hop: IntArray
    state: IntArray


@compiled
def choose_landmarks(
    neighbor_ptr: IntArray,
    neighbors: IntArray,
    node_weights: IntArray,
    node_of_member: IntArray,
    influence: FloatArray,
    rank: IntArray,
    by_influence: IntArray,
    decay_of_hop: FloatArray,
    hops: int,
    budget: int,
) -> IntArray:
    """Choose the landmark nodes of a part, which add at most `budget` entities.

    `node_of_member` (k,): the node of each entity in the part.
    """
    num_nodes = len(rank)
    cost = node_weights.copy()
    for node in node_of_member:
        cost[node] -= 1
    hop = np.full(num_nodes, _NOT_REACHED)
    reached = _search(neighbor_ptr, neighbors, node_of_member, hops, hop)
    # At the rank of a candidate its distance plus 1; 0 at all other ranks.
    marks = np.zeros(num_nodes, dtype=np.uint8)
    for node in reached:
        if cost[node] > 0:
            marks[rank[node]] = hop[node] + 1
    walk = _Walk(neighbor_ptr, neighbors, influence, decay_of_hop, cost, hop, np.zeros(num_nodes, dtype=np.uint8))
    _take_best(walk, by_influence, marks, budget)
    taken: IntArray = reached[walk.state[reached] == _TAKEN]
    return taken


@compiled
def _search(
    neighbor_ptr: IntArray, neighbors: IntArray, node_of_member: IntArray, hops: int, hop: IntArray
) -> IntArray:
    """Write the distances of nodes from the part into `hop`; returns the nodes up to `hops` away, nearest first."""
    queue = np.empty(len(hop), dtype=np.int32)
    tail = 0
    for node in node_of_member:
        if hop[node] == _NOT_REACHED:
            hop[node] = 0
            queue[tail] = node
            tail += 1
    head = 0
    while head < tail and hop[queue[head]] < hops:
        node = queue[head]
        head += 1
        for slot in range(neighbor_ptr[node], neighbor_ptr[node + 1]):
            neighbor = neighbors[slot]
            if hop[neighbor] == _NOT_REACHED:
                hop[neighbor] = hop[node] + 1
                queue[tail] = neighbor
                tail += 1
    return queue[:tail].copy()


@compiled
def _take_best(walk: _Walk, by_influence: IntArray, marks: IntArray, budget: int) -> None:
    """Visit the candidates by decreasing benefit, and mark the nodes that are taken in `walk.state`."""
    heap = [(0.0, _NO_NODE, _NO_NODE)]
    heap.pop()
    positions = np.zeros(3, dtype=np.int64)
    remaining = budget
    while remaining > 0:
        node = _next_candidate(walk, by_influence, marks, positions)
        if node == _NO_NODE:
            break
        if walk.hop[node] == 2:
            partner = _best_connecting(walk, node)
            if partner == _NO_NODE:
                if walk.cost[node] <= remaining:
                    remaining -= _take(walk, node, heap)
            else:
                walk.state[node] = _HELD
                value = (_benefit(walk, node) + _benefit(walk, partner)) / 2
                heapq.heappush(heap, (-value, node, partner))
        else:
            remaining = _take_held(walk, heap, node, _benefit(walk, node), remaining)
            if walk.state[node] != _TAKEN and walk.cost[node] <= remaining:
                remaining -= _take(walk, node, heap)
    _take_held(walk, heap, _NO_NODE, -1.0, remaining)


@compiled
def _next_candidate(walk: _Walk, by_influence: IntArray, marks: IntArray, positions: IntArray) -> np.int32:
    """The next candidate by decreasing benefit, then by node; `positions`: the next rank to read for each distance."""
    best, best_benefit, best_hop = _NO_NODE, -1.0, 0
    for hop in range(3):
        position = positions[hop]
        while position < len(marks) and marks[position] != hop + 1:
            position += 1
        positions[hop] = position
        if position < len(marks):
            node = by_influence[position]
            benefit = _benefit(walk, node)
            if benefit > best_benefit or (benefit == best_benefit and node < best):
                best, best_benefit, best_hop = node, benefit, hop
    positions[best_hop] += 1
    return best


@compiled
def _take_held(walk: _Walk, heap: Heap, current: np.int32, min_benefit: float, remaining: int) -> int:
    """Take held nodes with a benefit above `min_benefit` while `current` still fits; returns the remaining budget."""
    while len(heap) > 0 and -heap[0][0] > min_benefit and remaining > 0:
        _, node, partner = heap[0]
        if partner != _NO_NODE and walk.state[node] != _HELD:
            heapq.heappop(heap)  # released meanwhile, so the heap has it a second time without a partner
            continue
        needed = walk.cost[node] + (walk.cost[partner] if partner != _NO_NODE else 0)
        if needed > remaining:
            heapq.heappop(heap)
            continue
        if (
            current not in (_NO_NODE, partner)
            and walk.state[current] != _TAKEN
            and needed + walk.cost[current] > remaining
        ):
            break
        heapq.heappop(heap)
        remaining -= _take(walk, node, heap)
        if partner != _NO_NODE:
            remaining -= _take(walk, partner, heap)
    return remaining


@compiled
def _take(walk: _Walk, node: np.int32, heap: Heap) -> int:
    """Take a node and release the held nodes it connects; returns its cost."""
    walk.state[node] = _TAKEN
    if walk.hop[node] == 1:
        for slot in range(walk.neighbor_ptr[node], walk.neighbor_ptr[node + 1]):
            neighbor = walk.neighbors[slot]
            if walk.state[neighbor] == _HELD:
                walk.state[neighbor] = _RELEASED
                heapq.heappush(heap, (-_benefit(walk, neighbor), neighbor, _NO_NODE))
    return int(walk.cost[node])


@compiled
def _best_connecting(walk: _Walk, node: np.int32) -> np.int32:
    """The best node between a node two hops away and the part, or `_NO_NODE` if a node in between is already taken."""
    best, highest_influence = _NO_NODE, -1.0
    for slot in range(walk.neighbor_ptr[node], walk.neighbor_ptr[node + 1]):
        neighbor = walk.neighbors[slot]
        if walk.hop[neighbor] == 1:
            if walk.state[neighbor] == _TAKEN:
                return _NO_NODE
            if walk.influence[neighbor] > highest_influence:
                best, highest_influence = neighbor, walk.influence[neighbor]
    return best


@compiled
def _benefit(walk: _Walk, node: np.int32) -> float:
    """The benefit Omega of a node for the part."""
    return float(walk.influence[node] * walk.decay_of_hop[walk.hop[node]])
