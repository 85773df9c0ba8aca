"""Random small tasks and partitions for the property tests of this folder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from largegnn.artifacts import AlignmentTask, IntArray, Partition

# The first call of a compiled function compiles it, which no deadline should count.
unhurried = settings(deadline=None)


def make_task(
    num_source: int,
    num_target: int,
    edges: list[tuple[int, int]],
    train: list[tuple[int, int]],
    valid: list[tuple[int, int]] | None = None,
    test: list[tuple[int, int]] | None = None,
) -> AlignmentTask:
    """A task with one relation per side; `edges` are (head, tail) of either side."""
    relations = [int(head >= num_source) for head, _ in edges]
    triples = sorted({(head, relation, tail) for (head, tail), relation in zip(edges, relations, strict=True)})
    return AlignmentTask(
        num_source, num_target, 1, 1, _rows(triples, 3), _rows(train, 2), _rows(valid or [], 2), _rows(test or [], 2)
    )


@st.composite
def tasks(draw: st.DrawFn, max_side: int = 9, one_to_one: bool = False) -> AlignmentTask:
    """Two graphs of a few entities, dense or sparse, with links that need not be one-to-one."""
    num_source, num_target = draw(st.integers(1, max_side)), draw(st.integers(1, max_side))
    sources, targets = st.integers(0, num_source - 1), st.integers(num_source, num_source + num_target - 1)
    edges = draw(st.lists(st.tuples(sources, sources), max_size=24)) + draw(
        st.lists(st.tuples(targets, targets), max_size=24)
    )
    unique_by = (lambda link: link[0], lambda link: link[1]) if one_to_one else None
    links = draw(st.lists(st.tuples(sources, targets), max_size=8, unique_by=unique_by, unique=unique_by is None))
    train, rest = links[: len(links) // 2 + 1], links[len(links) // 2 + 1 :]
    return make_task(num_source, num_target, edges, train, rest[::2], rest[1::2])


@st.composite
def partitions(draw: st.DrawFn, num_entities: int) -> Partition:
    """One to three parts that may overlap, split seed pairs, be empty, or leave entities out."""
    entity = st.integers(0, num_entities - 1)
    parts = draw(st.lists(st.sets(entity, max_size=max(1, num_entities // 2)), min_size=1, max_size=3))
    return make_partition(num_entities, [sorted(part) for part in parts])


def make_partition(num_entities: int, parts: list[list[int]]) -> Partition:
    """A partition from lists."""
    flat = np.array([entity for part in parts for entity in part], dtype=np.int32)
    return Partition(num_entities, flat, np.cumsum([0] + [len(part) for part in parts]))


def _rows(rows: Sequence[tuple[int, ...]], width: int) -> IntArray:
    return np.array(sorted(rows), dtype=np.int32).reshape(-1, width)
