"""How many parts there may be, and that none is empty: what holds for every partitioner of the merged graph."""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import IntArray
from largegnn.errors import InputError

__all__ = ["check_num_parts", "without_empty_parts"]


def check_num_parts(num_parts: int, num_nodes: int) -> None:
    """Refuse a number of parts that would leave a part without a node."""
    if num_nodes == 0:
        raise InputError("there is nothing to divide: the graph has no entities", fix="check the triple files")
    if not 1 <= num_parts <= num_nodes:
        raise InputError(
            "the graph cannot be divided into that many parts",
            expected=f"1 to {num_nodes} parts, as the graph has {num_nodes} nodes",
            found=f"{num_parts} parts",
            fix="choose a number of parts in that range",
        )


def without_empty_parts(part_of_node: IntArray, num_parts: int) -> IntArray:
    """Give each empty part one node of the parts with the most nodes; `part_of_node` (num_nodes,).

    METIS leaves parts empty where there are hardly more nodes than parts, or hardly any edges.
    """
    sizes = np.bincount(part_of_node, minlength=num_parts)
    empty = np.flatnonzero(sizes == 0)
    if len(empty) == 0:
        return part_of_node
    by_part = np.argsort(part_of_node, kind="stable")
    rank_in_part = np.arange(len(by_part)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    # The nodes that stand last in their parts move; whoever stands first stays, so that no part is emptied.
    moved = by_part[np.argsort(-rank_in_part, kind="stable")[: len(empty)]]
    result = part_of_node.copy()
    result[moved] = empty
    return result
