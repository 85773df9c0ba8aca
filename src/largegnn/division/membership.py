"""Look up the parts of each entity, and the parts that two entities share.

In: parts as flat arrays. Out: a CSR table from entities to parts; for pairs of entities, the parts that hold both.
The idea: most entities are in one to three parts, so merging two short ascending lists finds the shared parts of a
pair, whatever the number of parts. The entities may also be nodes of a merged graph.
Cost: O(members) for the table, O(pairs) for the shared parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from largegnn.artifacts import IntArray
from largegnn.machine.compiled import compiled

__all__ = ["Membership", "Placement", "count_sharing", "invert_parts", "place_pairs", "share_part"]


class Membership(NamedTuple):
    """The parts of entity e, ascending, and its index in each of these parts: rows `ptr[e]:ptr[e + 1]`."""

    ptr: IntArray
    parts: IntArray
    places: IntArray


class Placement(NamedTuple):
    """Pairs grouped by the parts that hold both ends: part p has rows `part_ptr[p]:part_ptr[p + 1]`.

    `rows` are indices into the list of pairs, ascending within a part; `firsts` and `seconds` are local ids.
    """

    part_ptr: IntArray
    rows: IntArray
    firsts: IntArray
    seconds: IntArray


@compiled
def invert_parts(num_entities: int, entities: IntArray, part_ptr: IntArray) -> Membership:
    """Invert parts, given as members and offsets, to the parts of each entity; an entity may repeat within a part."""
    ptr = np.zeros(num_entities + 1, dtype=np.int64)
    for entity in entities:
        ptr[entity + 1] += 1
    for entity in range(num_entities):
        ptr[entity + 1] += ptr[entity]
    free = ptr[:-1].copy()
    parts = np.empty(len(entities), dtype=np.int32)
    places = np.empty(len(entities), dtype=np.int32)
    for part in range(len(part_ptr) - 1):
        for row in range(part_ptr[part], part_ptr[part + 1]):
            entity = entities[row]
            parts[free[entity]] = part
            places[free[entity]] = row - part_ptr[part]
            free[entity] += 1
    return Membership(ptr, parts, places)


@compiled
def share_part(membership: Membership, first: int, second: int) -> bool:
    """Whether two entities are together in at least one part."""
    left, left_end = membership.ptr[first], membership.ptr[first + 1]
    right, right_end = membership.ptr[second], membership.ptr[second + 1]
    while left < left_end and right < right_end:
        difference = membership.parts[left] - membership.parts[right]
        if difference == 0:
            return True
        if difference < 0:
            left += 1
        else:
            right += 1
    return False


@compiled
def count_sharing(membership: Membership, firsts: IntArray, seconds: IntArray) -> int:
    """Count the pairs (firsts[i], seconds[i]) that are together in at least one part."""
    count = 0
    for row in range(len(firsts)):
        if share_part(membership, firsts[row], seconds[row]):
            count += 1
    return count


@compiled
def place_pairs(membership: Membership, num_parts: int, firsts: IntArray, seconds: IntArray) -> Placement:
    """Assign each pair to every part that holds both its ends: one pass counts, a second pass writes."""
    nothing = np.empty(0, dtype=np.int32)
    part_ptr = np.zeros(num_parts + 1, dtype=np.int64)
    _join(membership, firsts, seconds, part_ptr[1:], Placement(part_ptr, nothing, nothing, nothing), True)
    for part in range(num_parts):
        part_ptr[part + 1] += part_ptr[part]
    total = part_ptr[-1]
    placement = Placement(
        part_ptr, np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32), np.empty(total, dtype=np.int32)
    )
    _join(membership, firsts, seconds, part_ptr[:-1].copy(), placement, False)
    return placement


@compiled
def _join(
    membership: Membership,
    firsts: IntArray,
    seconds: IntArray,
    free: IntArray,
    placement: Placement,
    only_count: bool,
) -> None:
    """Increment `free[part]` for each pair that the part holds and, unless `only_count`, first write the pair there."""
    for row in range(len(firsts)):
        left, left_end = membership.ptr[firsts[row]], membership.ptr[firsts[row] + 1]
        right, right_end = membership.ptr[seconds[row]], membership.ptr[seconds[row] + 1]
        while left < left_end and right < right_end:
            part = membership.parts[left]
            difference = part - membership.parts[right]
            if difference == 0:
                if not only_count:
                    placement.rows[free[part]] = row
                    placement.firsts[free[part]] = membership.places[left]
                    placement.seconds[free[part]] = membership.places[right]
                free[part] += 1
            if difference <= 0:
                left += 1
            if difference >= 0:
                right += 1
