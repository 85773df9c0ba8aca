"""Make tasks of a given size, for estimates that depend on sizes alone."""

from __future__ import annotations

import numpy as np

from largegnn.artifacts import AlignmentTask


def sized_task(
    num_entities: int, *, num_triples: int = 0, num_train: int = 1, num_valid: int = 0, num_test: int = 0
) -> AlignmentTask:
    """Make a task of the given sizes; all triples are (0, 0, 0) of the source, and links are i = i."""
    triples = np.zeros((num_triples, 3), dtype=np.int32)
    ids = np.arange(num_train + num_valid + num_test, dtype=np.int32)
    links = np.stack([ids, ids + num_entities], axis=1)
    train, valid, test = np.split(links, [num_train, num_train + num_valid])
    return AlignmentTask(num_entities, num_entities, 1, 1, triples, train, valid, test)
