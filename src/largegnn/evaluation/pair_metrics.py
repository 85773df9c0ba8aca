"""Compute precision, recall and F1 of accepted pairs (the real setting).

In: pairs and true links, as entity ids. Out: the shares, None where the denominator is 0. Cost: a few
sorts of pairs and links.
"""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask, IntArray, Mask, SeedsFrom, pair_keys
from largegnn.artifacts.report import PairFigures

__all__ = ["is_complete", "kind_of_gold", "precision_recall_f1", "touches_link"]


def precision_recall_f1(pairs: IntArray, test_links: IntArray) -> PairFigures:
    """Compare pairs (p, 2), without seeds, with all test links (k, 2); shares of nothing are None."""
    output, links = _distinct_keys(pairs), _distinct_keys(test_links)
    num_right = len(np.intersect1d(output, links, assume_unique=True))
    judged = int(touches_link(pairs, test_links)[_first_occurrences(pairs)].sum())
    return PairFigures(
        precision=num_right / len(output) if len(output) else None,
        recall=num_right / len(links) if len(links) else None,
        f1=2 * num_right / (len(output) + len(links)) if len(output) + len(links) else None,
        pairs=len(pairs),
        partial_precision=num_right / judged if judged else None,
        partial_f1=2 * num_right / (judged + len(links)) if judged + len(links) else None,
        judged=judged,
    )


def touches_link(pairs: IntArray, links: IntArray) -> Mask:
    """Whether each of the pairs (p, 2) has an end in one of the links (k, 2), (p,)."""
    found: Mask = np.isin(pairs[:, 0], links[:, 0]) | np.isin(pairs[:, 1], links[:, 1])
    return found


def kind_of_gold(task: AlignmentTask, seeds_from: SeedsFrom) -> str:
    """Return `full` if the test links may be all links there are, `partial` if they cannot be."""
    free = task.free(seeds_from)
    free[task.held_out(seeds_from).ravel()] = False
    return "full" if is_complete(free, task.num_source_entities, task.test_links) else "partial"


def is_complete(free: Mask, num_sources: int, links: IntArray) -> bool:
    """Whether links (k, 2) may be all links: on one side, every entity that is `free` (n,) to be matched has a link.

    A side without free entities is ignored.
    """
    linked = np.zeros(len(free), dtype=bool)
    linked[links.ravel()] = True
    sides = (slice(0, num_sources), slice(num_sources, None))
    return any(bool(free[side].any()) and bool(linked[side][free[side]].all()) for side in sides)


def _first_occurrences(pairs: IntArray) -> IntArray:
    """The index at which each distinct pair of (p, 2) occurs first."""
    keys = pair_keys(pairs)
    order = np.argsort(keys, kind="stable")  # alignments come sorted, and a stable sort is fast on them
    first: IntArray = order[np.diff(keys[order], prepend=-1) != 0]
    return first


def _distinct_keys(pairs: IntArray) -> IntArray:
    """Encode each distinct row of (p, 2) as one number; ascending."""
    # Not np.unique: it hashes, and packed numbers like these collide, which is a hundred times slower.
    keys: IntArray = np.sort(pair_keys(pairs))
    distinct: IntArray = keys[np.diff(keys, prepend=-1) != 0]
    return distinct
