"""The landmarks of one part: Algorithm 2 of the paper, repaired and compiled.

In: the merged graph, one part, the influence of each node and the order it gives. Out: the nodes to recall.
The idea: walk the candidates, all nodes up to two hops from the part, by decreasing benefit.

- A node next to the part is taken, but first any held pair that is worth more, as long as both fit.
- A node two hops away is taken if a node between it and the part is taken already. If not, it is held as a pair with
  the best of the nodes between; the pair is worth the mean of both.
- When a node next to the part is taken, the held nodes it touches need no partner any more: they compete alone.
- At the end what is held is taken best first, as far as it fits.

A node the part holds in half counts as next to it. A toy, one entity per node, decay 1/10, influence in brackets:

    a --- b [4] --- c [90]      the part is {a}; b and d are one hop away, c and e two
    |                           benefit: b 0.4   c 0.9   d 0.2   e 0.58
    d [2] --- e [58]            pairs: (c, b) 0.65   (e, d) 0.39

The walk meets c and holds (c, b), meets e and holds (e, d), meets b. Room for 1: no pair fits, b is taken. Room for 2:
(c, b) is worth more than b and fits: b, c. Room for 3: the same, then d is met; (e, d) is worth more than d but does
not fit, so d is taken: b, c, d. Room for 4: everything.

Since influence orders the nodes of one distance alike in every part, the candidates need no sort: they are marked at
their rank in one array, which the walk reads once for each distance.
Cost: O(edges at the part and one hop around it) for the search, O(nodes) byte reads, O(log) for each pair held.

# Paper: Algorithm 2, which calls the result optimal; it is greedy.
# Departs: the current node is not lost when a pair goes before it; any taken neighbour connects, not the best only;
#     pairs live in a heap, not in a dictionary keyed by score; held pairs are released and flushed as above; the last
#     candidate is looked at; a pair that can never fit again does not block those behind it; costs are in entities.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from largegnn.artifacts import IntArray
from largegnn.machine.compiled import compiled

__all__ = ["choose_landmarks"]

_FAR = np.uint8(255)
_OPEN, _HELD, _ALONE, _TAKEN = np.uint8(0), np.uint8(1), np.uint8(2), np.uint8(3)
_NOBODY = np.int32(-1)

FloatArray = npt.NDArray[np.float64]
Heap = list[tuple[float, np.int32, np.int32]]


class _Walk(NamedTuple):
    """The graph as one part sees it; arrays are per node unless they say otherwise.

    `cost` is the number of entities a node would bring, `hop` its distance from the part, `state` what became of it.
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
    """The nodes to recall, which bring at most `budget` entities; `node_of_member` has one entry per entity inside."""
    num_nodes = len(rank)
    cost = node_weights.copy()
    for node in node_of_member:
        cost[node] -= 1
    hop = np.full(num_nodes, _FAR)
    reached = _spread(neighbor_ptr, neighbors, node_of_member, hops, hop)
    # One more than its distance stands where a candidate ranks, zero where there is none.
    marks = np.zeros(num_nodes, dtype=np.uint8)
    for node in reached:
        if cost[node] > 0:
            marks[rank[node]] = hop[node] + 1
    walk = _Walk(neighbor_ptr, neighbors, influence, decay_of_hop, cost, hop, np.zeros(num_nodes, dtype=np.uint8))
    _take_best(walk, by_influence, marks, budget)
    taken: IntArray = reached[walk.state[reached] == _TAKEN]
    return taken


@compiled
def _spread(
    neighbor_ptr: IntArray, neighbors: IntArray, node_of_member: IntArray, hops: int, hop: IntArray
) -> IntArray:
    """Write into `hop` how far nodes are from the part; returns the nodes up to `hops` away, nearest first."""
    queue = np.empty(len(hop), dtype=np.int32)
    tail = 0
    for node in node_of_member:
        if hop[node] == _FAR:
            hop[node] = 0
            queue[tail] = node
            tail += 1
    head = 0
    while head < tail and hop[queue[head]] < hops:
        node = queue[head]
        head += 1
        for slot in range(neighbor_ptr[node], neighbor_ptr[node + 1]):
            neighbor = neighbors[slot]
            if hop[neighbor] == _FAR:
                hop[neighbor] = hop[node] + 1
                queue[tail] = neighbor
                tail += 1
    return queue[:tail].copy()


@compiled
def _take_best(walk: _Walk, by_influence: IntArray, marks: IntArray, budget: int) -> None:
    """Walk the candidates by decreasing benefit and mark in `walk.state` what is taken."""
    heap = [(0.0, _NOBODY, _NOBODY)]
    heap.pop()
    positions = np.zeros(3, dtype=np.int64)
    room = budget
    while room > 0:
        node = _next_candidate(walk, by_influence, marks, positions)
        if node == _NOBODY:
            break
        if walk.hop[node] == 2:
            partner = _best_between(walk, node)
            if partner == _NOBODY:
                if walk.cost[node] <= room:
                    room -= _take(walk, node, heap)
            else:
                walk.state[node] = _HELD
                value = (_benefit(walk, node) + _benefit(walk, partner)) / 2
                heapq.heappush(heap, (-value, node, partner))
        else:
            room = _take_held(walk, heap, node, _benefit(walk, node), room)
            if walk.state[node] != _TAKEN and walk.cost[node] <= room:
                room -= _take(walk, node, heap)
    _take_held(walk, heap, _NOBODY, -1.0, room)


@compiled
def _next_candidate(walk: _Walk, by_influence: IntArray, marks: IntArray, positions: IntArray) -> np.int32:
    """The next candidate by decreasing benefit, then by node; `positions` says how far each distance was read."""
    best, best_benefit, best_hop = _NOBODY, -1.0, 0
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
def _take_held(walk: _Walk, heap: Heap, current: np.int32, bar: float, room: int) -> int:
    """Take what is held and worth more than `bar` while room for `current` remains; returns the room left."""
    while len(heap) > 0 and -heap[0][0] > bar and room > 0:
        _, node, partner = heap[0]
        if partner != _NOBODY and walk.state[node] != _HELD:
            heapq.heappop(heap)  # it was released meanwhile and competes alone
            continue
        needed = walk.cost[node] + (walk.cost[partner] if partner != _NOBODY else 0)
        if needed > room:
            heapq.heappop(heap)
            continue
        if current not in (_NOBODY, partner) and walk.state[current] != _TAKEN and needed + walk.cost[current] > room:
            break
        heapq.heappop(heap)
        room -= _take(walk, node, heap)
        if partner != _NOBODY:
            room -= _take(walk, partner, heap)
    return room


@compiled
def _take(walk: _Walk, node: np.int32, heap: Heap) -> int:
    """Take a node and release the held nodes it connects; returns what it costs."""
    walk.state[node] = _TAKEN
    if walk.hop[node] == 1:
        for slot in range(walk.neighbor_ptr[node], walk.neighbor_ptr[node + 1]):
            neighbor = walk.neighbors[slot]
            if walk.state[neighbor] == _HELD:
                walk.state[neighbor] = _ALONE
                heapq.heappush(heap, (-_benefit(walk, neighbor), neighbor, _NOBODY))
    return int(walk.cost[node])


@compiled
def _best_between(walk: _Walk, node: np.int32) -> np.int32:
    """The best node between a node two hops away and the part, or nobody if one of them is taken already."""
    best, most = _NOBODY, -1.0
    for slot in range(walk.neighbor_ptr[node], walk.neighbor_ptr[node + 1]):
        neighbor = walk.neighbors[slot]
        if walk.hop[neighbor] == 1:
            if walk.state[neighbor] == _TAKEN:
                return _NOBODY
            if walk.influence[neighbor] > most:
                best, most = neighbor, walk.influence[neighbor]
    return best


@compiled
def _benefit(walk: _Walk, node: np.int32) -> float:
    """Omega of a node."""
    return float(walk.influence[node] * walk.decay_of_hop[walk.hop[node]])
